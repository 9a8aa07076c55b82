"""SQLite files as sources: read only, in threads that end when nobody waits for them."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import date, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from mediator.answering import Mediator
from mediator.catalog.model import Catalog
from mediator.output.report import Report
from tests.answering.kit import ask, failures, listed
from tests.sql_kit import declared, sqlite_file

ENDLESS = (
    "CREATE VIEW books AS WITH RECURSIVE n(isbn) AS (SELECT 1 UNION ALL SELECT isbn + 1 FROM n)"
    " SELECT isbn, 1 AS year FROM n WHERE isbn < 0"
)


def _catalog(path: Path, isbn: str = "string", extra: str = "", source: str = "") -> Catalog:
    return declared(
        path.parent,
        f"""
sources:
  shelf: {{base: "sqlite:///{path}", {source}}}
relations:
  books:
    fields: {{isbn: {isbn}, year: int32}}
    database: {{source: shelf, table: books, key: [isbn], indexed: [[isbn], [isbn, year]], {extra}}}
""",
    )


async def _ask(catalog: Catalog, sql: str = "SELECT * FROM books") -> tuple[pa.Table, Report]:
    async with Mediator(catalog, threads=1) as mediator:
        return await ask(mediator, sql)


async def _failure(catalog: Catalog, sql: str = "SELECT * FROM books") -> tuple[str, str]:
    found, report = await _ask(catalog, sql)
    assert found.num_rows == 0
    ((_, failure),) = failures(report)
    return failure.cause.kind, failure.cause.message


@contextmanager
def _locked(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        yield connection


async def test_values_come_as_declared(tmp_path: Path) -> None:
    path = sqlite_file(
        tmp_path / "a ?#%20 'b'.db",
        "CREATE TABLE things (id INTEGER PRIMARY KEY, ratio, yes, note, day, at)",
        rows=[
            (
                "INSERT INTO things VALUES (?, ?, ?, ?, ?, ?)",
                [
                    (1, 1, 1, "", "2026-02-28", "2026-02-28 01:02:03"),
                    (2, 0.5, 0, "x", None, "2026-02-28T01:02:03.5"),
                    (3, *[None] * 5),
                ],
            )
        ],
    )
    catalog = declared(
        tmp_path,
        f"""
sources: {{shelf: {{base: "sqlite:///{path}"}}}}
relations:
  things:
    fields: {{id: int64, ratio: float64, "yes": bool, note: string, day: date, at: timestamp}}
    database: {{source: shelf, table: things, indexed: [[day], ["yes"]]}}
""",
    )
    found, report = await _ask(catalog, "SELECT * FROM things ORDER BY id")
    assert report.complete, report.lines()
    assert listed(found) == [
        (1, 1.0, True, "", date(2026, 2, 28), datetime(2026, 2, 28, 1, 2, 3)),
        (2, 0.5, False, "x", None, datetime(2026, 2, 28, 1, 2, 3, 500000)),
        (3, None, None, None, None, None),
    ]
    found, _ = await _ask(catalog, "SELECT id FROM things WHERE day = DATE '2026-02-28'")
    assert listed(found) == [(1,)]
    found, _ = await _ask(catalog, "SELECT id FROM things WHERE yes")
    assert listed(found) == [(1,)]


async def test_pages_bring_every_row_once_with_and_without_a_key(tmp_path: Path) -> None:
    numbers = [(n, n) for n in range(5_000)] + [(None, -n) for n in range(1, 3_001)]
    path = sqlite_file(
        tmp_path / "shelf.db",
        "CREATE TABLE books (isbn, year)",
        rows=[("INSERT INTO books VALUES (?, ?)", numbers)],
    )
    found, report = await _ask(_catalog(path, "int64"))
    assert report.complete, report.lines()
    assert sorted(found["year"].to_pylist()) == list(range(-3_000, 5_000))


@pytest.mark.parametrize(
    "evil", ["'; DROP TABLE books; --", "?1", '"', "a' OR 'a' = 'a", "\0", "ü\U0001f4d6"]
)
async def test_a_value_is_never_part_of_the_statement(tmp_path: Path, evil: str) -> None:
    path = sqlite_file(
        tmp_path / "shelf.db",
        "CREATE TABLE books (isbn TEXT PRIMARY KEY, year)",
        rows=[("INSERT INTO books VALUES (?, ?)", [("harmless", 1), (evil, 2)])],
    )
    literal = evil.replace("'", "''")
    found, report = await _ask(
        _catalog(path, extra="scan: false"), f"SELECT year FROM books WHERE isbn = '{literal}'"
    )
    assert (listed(found), report.complete) == ([(2,)], True)
    assert (await _ask(_catalog(path)))[0].num_rows == 2


async def test_what_is_wrong_with_a_file_is_told(tmp_path: Path) -> None:
    path = tmp_path / "shelf.db"
    kind, said = await _failure(_catalog(path))
    assert (kind, f"there is no database file {path}: correct the source's 'base'" in said) == (
        "refused",
        True,
    )
    sqlite_file(path, "CREATE TABLE other (n)")
    assert await _failure(_catalog(path)) == ("schema changed", "books.scan at shelf: no such table: books")
    sqlite_file(path, "CREATE TABLE books (isbn, years)")
    assert await _failure(_catalog(path)) == ("schema changed", "books.scan at shelf: no such column: r.year")
    sqlite_file(
        path, "DROP TABLE books", "CREATE TABLE books (isbn, year)", "INSERT INTO books VALUES ('a', 'old')"
    )
    kind, said = await _failure(_catalog(path))
    assert (kind, "books.year: expected int32, found str 'old'" in said) == ("schema changed", True)
    sqlite_file(path, "DELETE FROM books", "INSERT INTO books VALUES (CAST(x'ff' AS TEXT), 1)")
    kind, said = await _failure(_catalog(path))
    assert (kind, "Could not decode to UTF-8" in said) == ("unreadable", True)
    other = tmp_path / "other.db"
    other.write_bytes(b"this is not a database" * 100)
    kind, said = await _failure(_catalog(other))
    assert (kind, "file is not a database" in said) == ("unreadable", True)


async def test_nothing_can_be_written(tmp_path: Path) -> None:
    path = sqlite_file(tmp_path / "shelf.db", "CREATE TABLE books (isbn, year)")
    before = path.read_bytes()
    await _ask(_catalog(path))
    assert path.read_bytes() == before
    assert sorted(p.suffix for p in tmp_path.iterdir()) == [".db", ".yaml"]  # noqa: ASYNC240


async def test_a_file_that_is_locked_is_asked_again(tmp_path: Path) -> None:
    path = sqlite_file(
        tmp_path / "shelf.db", "CREATE TABLE books (isbn, year)", "INSERT INTO books VALUES ('a', 1)"
    )
    async with (
        Mediator(_catalog(path, source="attempts: 20"), threads=1) as mediator,
        asyncio.TaskGroup() as group,
    ):
        with _locked(path) as writer:
            asked = group.create_task(ask(mediator, "SELECT * FROM books"))
            async with asyncio.timeout(30):
                while not (sources := mediator.statistics().sources) or sources[0].requests < 2:
                    await asyncio.sleep(0.01)
            writer.execute("ROLLBACK")
        found, report = await asked
    assert (listed(found), report.complete) == ([("a", 1)], True)


async def test_a_file_that_stays_locked_is_told(tmp_path: Path) -> None:
    path = sqlite_file(tmp_path / "shelf.db", "CREATE TABLE books (isbn, year)")
    with _locked(path):
        kind, said = await _failure(_catalog(path, source="attempts: 1"))
    assert (kind, said) == ("refused", "books.scan at shelf: database is locked")


async def test_a_statement_ends_with_its_deadline_and_with_its_query(tmp_path: Path) -> None:
    """The thread ends too: its statement has no end, and closing the mediator waits for it."""
    path = sqlite_file(tmp_path / "shelf.db", ENDLESS)
    kind, _ = await _failure(_catalog(path, "int64", source="deadline: 0.3"))
    assert kind == "timed out"
    async with (
        Mediator(_catalog(path, "int64"), threads=1) as mediator,
        mediator.answering("SELECT * FROM books"),
    ):
        await asyncio.sleep(0)
