"""The suite over a database, which has statements in the place of requests, and no bad days."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

import sources
from mediator.access import HttpTransport
from mediator.access.databases.database import DatabaseTransport
from wrappers.conformance import Asker, Finding, findings_of

_DECLARED = """\
sources: {attic: {base: "sqlite:///FILE"}}
relations:
  books:
    key: [id]
    fields: {id: int64, title: string, year: int64}
    database: {source: attic, table: books, key: [id], indexed: [[id], [year], [title, year]]}
"""


async def _findings(folder: Path, rows: list[tuple[object, ...]], declared: str = _DECLARED) -> list[Finding]:
    file = folder / "books.db"
    with sqlite3.connect(file) as database:
        database.execute("CREATE TABLE books (id INTEGER, title TEXT, year INTEGER)")
        database.executemany("INSERT INTO books VALUES (?, ?, ?)", rows)
    database.close()
    (folder / "books.yaml").write_text(declared.replace("FILE", str(file)))
    catalog = sources.load(folder / "books.yaml")
    async with (
        HttpTransport(catalog.sources) as web,
        DatabaseTransport(catalog.sources, web, web.redaction) as transport,
    ):
        return await findings_of(Asker(catalog, transport), catalog.relations.values())


async def test_a_database_passes(tmp_path: Path) -> None:
    findings = await _findings(tmp_path, [(n, f"Title {n}", 1900 + n % 7) for n in range(53)])
    assert [f.told() for f in findings if f.outcome == "fail"] == []
    assert [f.told() for f in findings if f.outcome == "skip"] == []
    assert {f.method for f in findings} == {"scan", "by_id", "by_year", "by_title_and_year"}
    passed = {f.check for f in findings if f.outcome == "pass"}
    assert {"bindings-echo", "batch-is-union", "batch-size", "ways-agree", "key-unique"} <= passed


@pytest.mark.parametrize(
    ("rows", "declared", "found"),
    [
        ([(n, f"Title {n}", None) for n in range(9)], _DECLARED, "sometimes-there"),
        ([(n, f"Title {n}", "late" if n == 5 else 1990) for n in range(9)], _DECLARED, "types-hold"),
        ([(n // 2, f"Title {n}", 1990) for n in range(9)], _DECLARED, "key-unique"),
    ],
)
async def test_a_table_that_is_not_as_declared(
    tmp_path: Path, rows: list[tuple[object, ...]], declared: str, found: str
) -> None:
    findings = await _findings(tmp_path, rows, declared)
    assert found in {f.check for f in findings if f.outcome == "fail"}
