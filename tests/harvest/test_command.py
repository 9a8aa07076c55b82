"""`mediator harvest`, as it is typed."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from fixtures import Behaviour, Fault, Fixed, Web
from tests.cli.kit import at, called, finished, started
from tests.harvest.kit import ISBNS, truth, written


def test_it_says_what_came_where_it_is_and_which_engine_ran(trade: Web, tmp_path: Path) -> None:
    result = called("harvest", "books", "--store", str(tmp_path), *at(trade))
    assert result.exit_code == 0, result.output
    assert "complete · 60 rows came in" in result.stderr
    assert "in this process" in result.stderr
    assert f"60 rows in {tmp_path}" in result.stderr.replace("\n", "")
    assert result.stdout == ""
    rows = called(
        "query", "SELECT count(*) AS n FROM books", "--store", str(tmp_path), "--format", "csv", *at(trade)
    )
    assert rows.stdout.split() == ["n", "60"]
    assert trade.requests == 6


def test_bindings_that_are_a_query(trade: Web, tmp_path: Path) -> None:
    result = called("harvest", "reviews", "-q", "--bindings", ISBNS, "--store", str(tmp_path), *at(trade))
    assert (result.exit_code, result.output) == (0, "")
    isbns = [book["isbn"] for book in truth(trade, "books")]
    assert written(tmp_path, "reviews") == truth(trade, "reviews", isbn=isbns)


def test_what_is_missing_makes_it_partial(trade: Web, tmp_path: Path) -> None:
    bad = str(truth(trade, "authors")[0]["id"])
    trade.behave("authors", Behaviour(faults=(Fault("error", lookups=(bad,), status=403),)))
    ids = "SELECT author_id AS id FROM books"
    result = called("harvest", "authors", "-b", ids, "--store", str(tmp_path), *at(trade))
    assert result.exit_code == 3
    assert f"missing: by_id(id) for {bad}: refused" in result.stderr
    assert "only what is missing is asked for" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["books"], "--store DIR"),
        (["bookz", "--store", "S"], "did you mean 'books'"),
        (["reviews", "--store", "S"], "cannot be walked as a whole"),
        (["reviews", "--store", "S", "-b", "nowhere.csv"], "there is no such file"),
        (["reviews", "--store", "S", "-b", "SELECT isbn FROM bookz"], "bookz"),
        (["books", "--store", "S", "--tasks", "2"], "it goes with --engine spark"),
        (["books", "--store", "S", "--max-age", "soon"], "--max-age soon"),
    ],
)
def test_a_mistake_is_one_message(trade: Web, tmp_path: Path, arguments: list[str], said: str) -> None:
    arguments = [str(tmp_path / "store") if a == "S" else a for a in arguments]
    result = called("harvest", *arguments, *at(trade))
    assert result.exit_code == 2
    assert said in result.stderr
    assert trade.requests == 0


def test_ctrl_c_ends_it_with_what_was_found(trade: Web, tmp_path: Path) -> None:
    trade.behave("reviews", Behaviour(latency=Fixed(0.2), concurrency=2))
    process = started("harvest", "reviews", "-b", ISBNS, "--store", str(tmp_path), *at(trade))
    while trade.counters["reviews"].requests < 24:
        time.sleep(0.02)
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    code, _, said = finished(process)
    assert code == 130, said
    assert "partial: interrupted" in said
    before = trade.counters["reviews"].lookups.copy()
    there = {row["isbn"] for row in written(tmp_path, "reviews")}
    trade.behave("reviews", Behaviour())
    again = called("harvest", "reviews", "-b", ISBNS, "--store", str(tmp_path), *at(trade))
    assert again.exit_code == 0
    for isbn in there:
        assert trade.counters["reviews"].lookups[isbn] == before[isbn] == 1


def test_a_store_that_is_in_use_is_told(trade: Web, tmp_path: Path) -> None:
    trade.behave("reviews", Behaviour(latency=Fixed(0.2), concurrency=1))
    process = started("harvest", "reviews", "-b", ISBNS, "--store", str(tmp_path), *at(trade))
    try:
        while not trade.counters["reviews"].requests:
            time.sleep(0.02)
            assert process.poll() is None
        result = called("harvest", "books", "--store", str(tmp_path), *at(trade))
        assert result.exit_code == 2
        assert "is in use by process" in result.stderr
    finally:
        process.send_signal(signal.SIGINT)
        finished(process)


def test_without_java_it_says_what_to_do(trade: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pipeline.session
    from pipeline.errors import NoSpark

    def nowhere() -> None:
        raise NoSpark("there is no Java: install one, or set JAVA_HOME")

    monkeypatch.setattr(pipeline.session, "find_java", nowhere)
    result = called(
        "harvest", "reviews", "-b", ISBNS, "--engine", "spark", "--store", str(tmp_path), *at(trade)
    )
    assert result.exit_code == 2
    assert "there is no Java" in result.stderr
    # What is asked here needs none.
    assert called("harvest", "reviews", "-b", ISBNS, "--store", str(tmp_path), *at(trade)).exit_code == 0
