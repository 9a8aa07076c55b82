"""Queries that run elsewhere, as the command line asks them."""

from __future__ import annotations

import csv
import signal
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from fixtures import Behaviour, Fault, Web
from pipeline.spread.given import given
from tests.cli.kit import SPARKS, at, bag, called, finished, started, truth
from tests.cli.test_interruptions import eventually
from tests.pipeline.killing import alive, below

SQL = "SELECT b.isbn, a.name FROM books b JOIN authors a ON a.id = b.author_id"
pytestmark = [pytest.mark.xdist_group("spark apart"), pytest.mark.timeout(400)]


def test_the_answers_are_the_same_in_a_folder_of_files(calm: Web, tmp_path: Path) -> None:
    folder = tmp_path / "answers"
    code, out, said = finished(
        started("query", SQL, "--engine", "spark", "--into", str(folder), *at(calm)), SPARKS
    )
    assert (code, out) == (0, b""), said
    true = truth(calm, SQL)
    assert f"{true.num_rows:,} rows" in said
    found = pq.read_table(sorted(folder.glob("part-*.parquet")), partitioning=None)
    assert bag([list(map(str, row.values())) for row in found.to_pylist()]) == bag(
        [list(map(str, row.values())) for row in true.to_pylist()]
    )


def test_the_answers_are_the_same_where_it_may_move(calm: Web) -> None:
    code, out, said = finished(started("query", SQL, "--engine", "auto", *at(calm)), SPARKS)
    assert code == 0, said
    assert "\ncomplete · " in f"\n{said}"
    rows = list(csv.reader(out.decode().splitlines()))
    assert rows[0] == ["isbn", "name"]
    assert bag(rows[1:]) == bag([list(row.values()) for row in truth(calm, SQL).to_pylist()])


def test_what_a_store_has_is_not_asked_again(calm: Web, tmp_path: Path) -> None:
    asking = ("query", SQL, "--store", str(tmp_path / "store"), *at(calm))
    code, here, said = finished(started(*asking), SPARKS)
    assert code == 0, said
    before = calm.requests
    code, there, said = finished(started(*asking, "--engine", "spark"), SPARKS)
    assert code == 0, said
    assert calm.requests == before
    assert "1 served from the store" in said
    assert sorted(there.splitlines()) == sorted(here.splitlines())


def test_ctrl_c_ends_it_with_what_was_found(trade: Web, tmp_path: Path) -> None:
    trade.behave("authors", Behaviour(faults=(Fault("hang", probability=1.0),)))
    sql = f"SELECT isbn, NULL AS name FROM books UNION ALL {SQL}"
    folder = tmp_path / "kept"
    process = started("query", sql, "--engine", "spark", "--checkpoint", str(folder), *at(trade))
    begun = below(process.pid)
    while sum(file.rows for one in given(folder / "given") for file in one.files) < 60:
        assert process.poll() is None
        begun = below(process.pid) or begun
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    code, out, said = finished(process, SPARKS)
    assert code == 130
    assert "partial: interrupted" in said
    assert len(out.splitlines()) == 1 + 60
    assert begun
    eventually(lambda: not any(map(alive, begun)))


def test_what_goes_with_one_engine_only() -> None:
    for arguments, said in (
        (["--checkpoint", "c"], "--checkpoint goes with --engine spark"),
        (["--engine", "spark", "--partials"], "--partials goes with --engine local"),
        (["--engine", "auto", "--trace", "t"], "--trace goes with --engine local"),
        (["--into", "d"], "--into goes with --engine spark"),
        (["--engine", "auto", "--into", "d"], "--into goes with --engine spark"),
        (["--engine", "spark", "--into", "d", "--format", "csv"], "leave out --output and --format"),
        (["--engine", "spark", "--into", "d", "--output", "f.parquet"], "leave out --output and --format"),
    ):
        result = called("query", SQL, "--demo", *arguments)
        assert result.exit_code == 2
        assert said in result.stderr


def test_a_folder_of_another_query_is_refused_in_one_sentence(calm: Web, tmp_path: Path) -> None:
    folder = tmp_path / "c"
    folder.mkdir()
    (folder / "spread.json").write_text('{"format": 0}')
    result = called("query", SQL, "--engine", "spark", "--checkpoint", str(folder), *at(calm))
    assert result.exit_code == 2
    assert "begun by another version" in result.stderr
    assert len(result.stderr.splitlines()) <= 2
