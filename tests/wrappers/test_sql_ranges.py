"""Ranges of databases' columns: the answers are DuckDB's over the same rows, and no other rows are read for them."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from mediator.answering import Mediator
from mediator.catalog.model import Catalog
from mediator.output.report import Report
from tests.answering.kit import ask, listed
from tests.sql_kit import Shop, declared, sqlite_file

Row = tuple[object, ...]
FIELDS = (
    "id: int64, n: int64, small: int32, f: float64, x: float64, s: string, v: string, d: date, t: timestamp"
)
TYPES = (
    "id bigint PRIMARY KEY, n {int}, small int, f {float}, x {exact}, s text, v {other}, d date, t timestamp"
)
COLUMNS = ("n", "small", "f", "x", "s", "v", "d", "t")
OPERATORS = ("<", "<=", ">", ">=", "=")

WORDS = [
    "",
    "a",
    "A",
    "ab",
    "aB",
    "b",
    "é",
    "É",
    "z",
    "Z",
    "10",
    "9",
    "1e1",
    " 9",
    "-1",
    "%",
    "_",
    "a%",
    "a_b",
]
WORDS += [
    "*",
    "?",
    "[a]",
    "a*",
    "\\",
    "a\\",
    "'",
    '"',
    "a'b",
    "\U0001f4d6",
    "\uffff",
    "~",
    "a ",
    "2026-01-02",
]
TEXTS = st.sampled_from(WORDS) | st.text(
    st.characters(exclude_categories=("Cs",), min_codepoint=1), max_size=3
)
INTS = st.sampled_from([0, 1, -1, 5, 2**53, 2**53 + 1, 2**63 - 1, -(2**63)]) | st.integers(
    -(2**63), 2**63 - 1
)
SMALL = st.sampled_from([0, 1, -1, 5, 2**31 - 1, -(2**31)]) | st.integers(-10, 10)
FLOATS = st.sampled_from([0.0, -0.0, 0.1, 0.3, 5.0, 9.99, 1e300, 5e-324, math.inf, -math.inf]) | st.floats(
    allow_nan=False
)
EXACT = st.sampled_from(["0.1", "0.3", "9.99", "9.990000000000000213", "5", "1e-30", "-7.25"]) | st.decimals(
    -1000, 1000, places=3
).map(str)
DAYS = st.dates(date(1, 1, 1), date(9999, 12, 31)) | st.dates(date(2026, 1, 1), date(2026, 1, 4))
TIMES = st.datetimes(datetime(1, 1, 3), datetime(9999, 12, 30)) | st.datetimes(
    datetime(2026, 1, 1), datetime(2026, 1, 2)
)
STARTS = TEXTS.filter(lambda text: text != "" and text.isprintable())
BOUNDS: dict[str, st.SearchStrategy[object]] = {
    "n": INTS,
    "small": SMALL,
    "f": FLOATS,
    "x": EXACT.map(float),
    "s": TEXTS | st.just("a\0b"),
    "v": TEXTS | st.just("a\0b"),
    "d": DAYS,
    "t": TIMES,
}
Condition = tuple[str, str, Any]
CONDITIONS: st.SearchStrategy[Condition] = st.sampled_from(COLUMNS).flatmap(
    lambda name: st.tuples(st.just(name), st.sampled_from(OPERATORS), BOUNDS[name])
) | st.tuples(st.sampled_from(["s", "v"]), st.just("^@"), STARTS)


def _rows(floats: st.SearchStrategy[Any], times: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Row]]:
    values = (INTS, SMALL, floats, EXACT, TEXTS, TEXTS, DAYS, times)
    columns = st.tuples(*(st.none() | value for value in values))
    return st.lists(columns, max_size=12).map(lambda rows: [(at, *row) for at, row in enumerate(rows)])


def _asked(conditions: Sequence[Condition]) -> tuple[str, list[object]]:
    """The statement, and its parameters. A start is written out: only so it is known to be one."""
    texts, parameters = [], []
    for name, operator, value in conditions:
        if operator == "^@":
            texts.append(f"{name} ^@ '" + value.replace("'", "''") + "'")
        else:
            texts.append(f"{name} {operator} ?")
            parameters.append(value)
    return f"SELECT * FROM things WHERE {' AND '.join(texts)}", parameters


def _answered(catalog: Catalog, sql: str, parameters: Sequence[object] = ()) -> tuple[pa.Table, Report, int]:
    """What a mediator that knows nothing yet answers, and how many rows it was sent."""

    async def run() -> tuple[pa.Table, Report, int]:
        async with Mediator(catalog, threads=1) as mediator:
            found, report = await ask(mediator, sql, parameters=list(parameters))
            (source,) = mediator.statistics().sources
            return found, report, source.rows

    return asyncio.run(run())


def _true(table: pa.Table, sql: str, parameters: Sequence[object]) -> pa.Table:
    with duckdb.connect() as connection:
        connection.register("things", table)
        return connection.sql(sql, params=list(parameters)).to_arrow_table()


def _check(
    ranged: Catalog, plain: Catalog, conditions: Sequence[Condition], loose: Sequence[str] = ()
) -> None:
    """Against all rows, as they come where no range is asked for. Of `loose` columns more rows may come than needed."""
    sql, parameters = _asked(conditions)
    everything, report, _ = _answered(plain, "SELECT * FROM things")
    assert report.complete, report.lines()
    true = _true(everything, sql, parameters)
    found, report, sent = _answered(ranged, sql, parameters)
    assert report.complete, report.lines()
    # As texts, in which one NaN is like another.
    assert sorted(map(repr, listed(found))) == sorted(map(repr, listed(true)))
    starts = [name for name, operator, _ in conditions if operator == "^@"]
    several = len(starts) > len(set(starts))  # of one column: a site is told one of them
    if several or any(name in loose or (isinstance(v, str) and "\0" in v) for name, _, v in conditions):
        assert true.num_rows <= sent <= everything.num_rows
    else:
        assert sent == true.num_rows


SETTINGS = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


@SETTINGS
@given(rows=_rows(FLOATS | st.just(math.nan), TIMES), conditions=st.lists(CONDITIONS, min_size=1, max_size=3))
@example(rows=[(0, *[None] * 4, "a", "b", None, None)], conditions=[("v", "<", "B")])
@example(rows=[(0, None, None, math.nan, *[None] * 5)], conditions=[("f", ">", 5.0)])
@example(rows=[(0, *[None] * 3, "9.990000000000000213", *[None] * 4)], conditions=[("x", "<=", 9.99)])
def test_ranges_of_postgresql(
    shop: Shop, tmp_path: Path, rows: list[Row], conditions: list[Condition]
) -> None:
    columns = TYPES.format(int="bigint", float="float8", exact="numeric", other='varchar COLLATE "en-x-icu"')
    shop.run("DROP TABLE IF EXISTS things", f"CREATE TABLE things ({columns})")
    if rows:
        shop.fill("things", rows)
    _check(*_two(lambda text: shop.catalog(tmp_path, text), "shop_db, table: $schema.things"), conditions)


@SETTINGS
@given(rows=_rows(FLOATS, TIMES.map(str)), conditions=st.lists(CONDITIONS, min_size=1, max_size=3))
@example(rows=[(0, *[None] * 4, "9-1", "9-1", None, None)], conditions=[("v", "<=", "97")])
@example(rows=[(0, *[None] * 4, "a", "A", None, None)], conditions=[("v", "<", "a"), ("v", "^@", "A")])
@example(rows=[(0, *[None] * 4, "", "A", None, None)], conditions=[("v", "^@", "a"), ("v", "^@", "A")])
def test_ranges_of_sqlite(tmp_path: Path, rows: list[Row], conditions: list[Condition]) -> None:
    """Its columns take numbers for texts, or capitals for small letters."""
    path = tmp_path / "things.db"
    path.unlink(missing_ok=True)
    columns = TYPES.format(int="int", float="real", exact="numeric", other="text COLLATE NOCASE")
    held = [tuple(v.isoformat() if isinstance(v, date) else v for v in row) for row in rows]
    sqlite_file(
        path,
        f"CREATE TABLE things ({columns})",
        rows=[("INSERT INTO things VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", held)],
    )
    head = f'sources: {{shelf: {{base: "sqlite:///{path}"}}}}\nrelations:\n'
    _check(*_two(lambda text: declared(tmp_path, head + text), "shelf, table: things"), conditions, "t")


def _two(catalog: Any, source: str) -> tuple[Catalog, Catalog]:
    text = f"  things:\n    fields: {{{FIELDS}}}\n    database: {{source: {source}, key: [id]"
    return catalog(text + "}\n"), catalog(text + ", ranges: []}\n")
