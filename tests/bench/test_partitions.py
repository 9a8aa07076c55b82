"""The partitioned join's tables are what they are said to be, and its contestants agree."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from bench.__main__ import main
from bench.papers.halves import KINDS, case_of, right_at_once, tables_of
from bench.papers.racing import expected
from bench.papers.watching import work
from mediator.assembly import Settings
from tests.bench.test_bench import said

ROWS = 2_000


def asked(tables: dict[str, pa.Table], sql: str) -> list[tuple[int, ...]]:
    with duckdb.connect() as connection:
        for name, table in tables.items():
            connection.register(name, table)
        found: list[tuple[int, ...]] = connection.execute(sql).fetchall()
        return found


@pytest.mark.parametrize("name", KINDS)
def test_a_row_matches_on_one_side_only(name: str) -> None:
    tables, fanout = tables_of(KINDS[name], ROWS), KINDS[name].fanout
    matches = (
        "select (select count(*) from r where r.a = s.a), (select count(*) from t where t.b = s.b), count(*)"
        " from s group by all order by all"
    )
    assert asked(tables, matches) == [(0, fanout, ROWS // 2), (fanout, 0, ROWS // 2)]


@pytest.mark.parametrize("name", ["by_arrival", "in_step", "hundred_bytes", "fifty_by_arrival"])
def test_halves_that_are_apart_come_one_after_the_other(name: str) -> None:
    first = asked(tables_of(KINDS[name], ROWS), "select max(s.k) from s join r on r.a = s.a")
    assert first == [(ROWS // 2 - 1,)]


@pytest.mark.parametrize(
    ("name", "test"),
    [
        ("by_column", "c = 1"),
        ("by_threshold", "c < 50"),
        ("by_word", "c in ('ash', 'birch', 'cedar', 'elm', 'fir')"),
        ("fifty_by_column", "c = 1"),
    ],
)
def test_a_column_tells_shuffled_halves_apart(name: str, test: str) -> None:
    tables = tables_of(KINDS[name], ROWS)
    wrong = f"select count(*) from s where ({test}) <> (s.a in (select a from r))"
    assert asked(tables, wrong) == [(0,)]
    assert asked(tables, "select count(*) from s join r on r.a = s.a where s.k < 1000")[0][0] > ROWS // 2


def test_nine_rows_in_ten_are_told_right() -> None:
    wrong = "select count(*) from s where (c = 1) <> (s.a in (select a from r))"
    ((count,),) = asked(tables_of(KINDS["by_mostly"], ROWS), wrong)
    assert 0.05 * ROWS < count < 0.15 * ROWS


@pytest.mark.parametrize("name", ["indistinct", "by_column"])
def test_no_other_column_tells_them_apart(name: str) -> None:
    """Not even the keys by their size."""
    tables = tables_of(KINDS[name], ROWS)
    for column in ("a", "b", "lot", "size", "wood", "k"):
        share = f"select avg(m) from (select {column} x, (s.a in (select a from r))::int m from s)"
        middle = f"(select quantile_disc({column}, 0.5) from s)"
        ((below,),) = asked(tables, f"{share} where x <= {middle}")
        assert 0.4 < float(below) < 0.6


@pytest.mark.parametrize("name", KINDS)
def test_contestants_find_what_duckdb_finds(name: str) -> None:
    case = case_of(KINDS[name], ROWS, 200)
    plans = [Settings(), Settings(policy="fixed", order=(0, 1, 2)), Settings(policy="fixed", order=(2, 1, 0))]
    assert {(o.answers, o.total) for o in map(case.run, plans)} == {expected(case)}


def test_right_at_once_finds_nothing_on_its_way() -> None:
    first = Settings(policy="fixed", order=(2, 1, 0))
    plain = work(case_of(KINDS["by_column"], ROWS, 200).watch(first)[1].steps)
    right = right_at_once(KINDS["by_column"], ROWS, 200).watch(first)[1].steps
    assert work(right) == ROWS  # each row of S probes once, and no more
    assert plain == ROWS + 2 * 5 * ROWS // 2


def test_partitions_from_the_command_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "partitions.png"
    arguments = ["--rows", "2000", "--batch", "200", "--rounds", "1", "--json"]
    assert main(["paper", "partitions", *arguments, "--plot", str(file)]) == 0
    printed = said(capsys)
    assert set(printed["figures"]) == {"by_arrival", "by_content"}
    assert set(printed["detail"]["cases"]) == set(KINDS)
    assert "least" not in printed["detail"]["cases"]["in_step"]
    assert file.stat().st_size


def test_one_case_can_be_explained(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [
        "--rows",
        "2000",
        "--batch",
        "200",
        "--rounds",
        "1",
        "--json",
        "--only",
        "by_word",
        "--explain",
    ]
    assert main(["paper", "partitions", *arguments]) == 0
    case = said(capsys)["detail"]["cases"]["by_word"]
    assert set(case["went"]) == {"default", "R first", "T first"}
