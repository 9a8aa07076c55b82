"""How databases are asked by ranges: in which words, page by page, and where they compare otherwise than the engine."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import date
from pathlib import Path

import psycopg
import pyarrow as pa
import pytest

from mediator.answering import Mediator, explain
from mediator.catalog.model import Catalog, Field
from mediator.catalog.statement import Result, Statement
from mediator.output.report import Report
from tests.answering.kit import ask, failures, listed, of
from tests.sql_kit import PASSWORD, Shop, declared, sqlite_file
from wrappers.sql import DIALECTS, SqlWrapper, Table

EVIL = "x') OR TRUE; --"
BOOKS = """\
sources: {shelf: {base: "sqlite:///FILE"}}
relations:
  books:
    fields: {id: int64, title: string, price: float64, day: date}
    database: {source: shelf, table: books, key: [id]}
"""


def _wrapper(dialect: str) -> SqlWrapper:
    fields = (Field("isbn", pa.string()), Field("price", pa.float64()), Field("n", pa.int64()))
    table = Table(DIALECTS[dialect], ("books",), ("isbn", "price", "n"))
    return SqlWrapper("books", fields, table, {field.name: field.name for field in fields})


def _where(request: Statement) -> str:
    return request.sql.partition(" WHERE ")[2].partition(" LIMIT ")[0]


def _small_pages(catalog: Catalog, page: int) -> Catalog:
    (relation,) = catalog.relations.values()
    methods = []
    for method in relation.methods:
        assert isinstance(method.wrapper, SqlWrapper)
        methods.append(replace(method, wrapper=replace(method.wrapper, page=page)))
    return replace(catalog, relations={relation.name: replace(relation, methods=tuple(methods))})


async def _sent(catalog: Catalog, *statements: str) -> list[tuple[pa.Table, Report, int]]:
    """What one mediator answers, and how many rows it was sent for each."""
    found, before = [], 0
    async with Mediator(catalog, threads=1) as mediator:
        for sql in statements:
            table, report = await ask(mediator, sql)
            rows = sum(source.rows for source in mediator.statistics().sources)
            found.append((table, report, rows - before))
            before = rows
    return found


@pytest.fixture
def books(tmp_path: Path) -> Catalog:
    """A hundred, a price for each, and a day for every second."""
    rows = [
        (n, f"{'Book' if n % 2 else 'book'} {n}", n / 4, f"2026-01-{n % 28 + 1:02}" if n % 2 else None)
        for n in range(100)
    ]
    path = sqlite_file(
        tmp_path / "books.db",
        "CREATE TABLE books (id INTEGER PRIMARY KEY, title TEXT, price REAL, day DATE)",
        rows=[("INSERT INTO books VALUES (?, ?, ?, ?)", rows)],
    )
    return declared(tmp_path, BOOKS.replace("FILE", str(path)))


# The statement


def test_bounds_are_parameters_after_the_values_that_they_share() -> None:
    asked = ("isbn", "n>", "price<="), (("a", 3, 5.0), (EVIL, 3, 5.0))
    request = _wrapper("sqlite").request(*asked)
    assert _where(request) == (
        'r."isbn" IN (?1, ?2) AND r."n" > CAST(?3 AS NUMERIC) AND r."price" <= CAST(?4 AS NUMERIC)'
    )
    assert request.parameters == ("a", EVIL, 3, 5.0)


def test_lookups_with_bounds_of_their_own_are_alternatives() -> None:
    request = _wrapper("postgresql").request(("isbn", "n>="), (("a", 3), ("b", 4), ("c", 3)))
    assert _where(request) == (
        '((r."isbn" IN ($1, $2) AND r."n" >= $3) OR (r."isbn" IN ($4) AND r."n" >= $5))'
    )
    assert request.parameters == ("a", "c", 3, "b", 4)


@pytest.mark.parametrize("dialect", ["postgresql", "sqlite"])
def test_the_statement_is_the_same_for_all_values(dialect: str) -> None:
    wrapper, bind_set = _wrapper(dialect), ("isbn>", "isbn^=", "n<", "price>=")
    texts = {
        wrapper.request(bind_set, ((isbn, start, n, price),)).sql
        for isbn, start in (("a", "b"), (EVIL, "%_*?[]\\"), ("", "\0x"))
        for n, price in ((0, 0.0), (-(2**63), 1e300), (7, -0.5))
    }
    assert len(texts) == 1
    assert EVIL not in texts.pop()


def test_a_start_is_written_without_wildcards() -> None:
    start = ("isbn^=",), (("a%_\\*?[b]",),)
    request = _wrapper("postgresql").request(*start)
    assert _where(request) == 'CAST(r."isbn" AS text) COLLATE "C" LIKE $1'
    assert request.parameters == ("a\\%\\_\\\\*?[b]%",)
    request = _wrapper("sqlite").request(*start)
    assert _where(request) == 'r."isbn" GLOB ?1'
    assert request.parameters == ("a%_\\[*][?][[]b]*",)


@pytest.mark.parametrize(
    ("bound", "casts"),
    [
        ("97", True),
        (" -1.5e3 ", True),
        (".5", True),
        ("1\0x", True),
        ("978-3", False),
        ("", False),
        ("x1", False),
    ],
)
def test_sqlite_is_kept_from_taking_a_text_for_a_number(bound: str, casts: bool) -> None:
    """And an index on the column goes on helping with all others."""
    request = _wrapper("sqlite").request(("isbn<=",), ((bound,),))
    column = 'CAST(r."isbn" AS TEXT)' if casts else 'r."isbn"'
    assert _where(request) == f"{column} COLLATE BINARY <= ?1"


def test_columns_of_another_kind_are_asked_for_once_more_without_their_bounds() -> None:
    wrapper, asked = _wrapper("postgresql"), (("isbn<", "n>"), (("b", 3),))
    first = wrapper.request(*asked)
    page = wrapper.read(first, *asked, Result(200, {}, b"", (("a", 1.0, 4),), ("bpchar", "float8", "int8")))
    assert page.rows.num_rows == 0
    (second,) = page.then
    assert isinstance(second, Statement)
    assert (_where(second), second.parameters) == ('r."n" > $1', (3,))
    rows = (("a ", 1.0, 4), ("c ", 1.0, 5))
    page = wrapper.read(second, *asked, Result(200, {}, b"", rows, ("bpchar", "float8", "int8")))
    assert (page.rows.num_rows, page.then) == (2, ())


# The rows


async def test_only_the_rows_within_bounds_are_read_page_by_page(books: Catalog) -> None:
    sql = "SELECT id FROM books WHERE price <= 10 AND day >= DATE '2026-01-05'"
    ((whole, report, sent),) = await _sent(books, sql)
    assert report.complete
    ((paged, report, _),) = await _sent(_small_pages(books, 2), sql)
    assert report.complete, report.lines()
    assert sorted(listed(paged)) == sorted(listed(whole))
    assert sent == whole.num_rows == 16


async def test_what_is_stricter_is_served_without_asking(books: Catalog) -> None:
    found = await _sent(
        books,
        "SELECT id FROM books WHERE price < 10 AND title LIKE 'Book%'",
        "SELECT id FROM books WHERE price <= 9.5 AND title LIKE 'Book 1%'",
        "SELECT id FROM books WHERE price = 2.25 AND title = 'Book 9'",
        "SELECT id FROM books WHERE price < 10 AND title LIKE 'book 1%'",
        "SELECT id FROM books WHERE price <= 10 AND title LIKE 'Book%'",
    )
    assert [(table.num_rows, of(report, "books").asked) for table, report, _ in found] == [
        (20, 1),
        (6, 0),
        (1, 0),
        (5, 1),
        (20, 1),
    ]
    assert [sent for _, _, sent in found] == [20, 0, 0, 5, 20]


async def test_a_value_that_is_not_indexed_is_a_range(books: Catalog) -> None:
    ((found, report, sent),) = await _sent(books, "SELECT id FROM books WHERE title = 'Book 7'")
    assert (listed(found), sent, report.complete) == ([(7,)], 1, True)
    line = "  books: scan scan, title <= 'Book 7', title >= 'Book 7'"
    assert line in explain("SELECT id FROM books WHERE title = 'Book 7'", books)


async def test_ranges_that_are_turned_off_read_all(books: Catalog, tmp_path: Path) -> None:
    text = BOOKS.replace("FILE", str(tmp_path / "books.db"))
    off = declared(tmp_path, text.replace("[id]}", "[id], ranges: []}"))
    ((found, _, sent),) = await _sent(off, "SELECT id FROM books WHERE price < 1")
    assert (found.num_rows, sent) == (4, 100)
    some = declared(tmp_path, text.replace("[id]}", "[id], ranges: [day]}"))
    sql = "SELECT id FROM books WHERE price < 1 AND day < '2026-01-03'"
    ((found, _, sent),) = await _sent(some, sql)
    assert (found.num_rows, sent) == (1, 4)


async def test_lookups_are_bounded_too(shop: Shop, tmp_path: Path) -> None:
    shop.run(
        "CREATE TABLE authors (id int PRIMARY KEY, name text)",
        "INSERT INTO authors SELECT n, 'a' || n FROM generate_series(0, 9) AS n",
        "CREATE TABLE books (isbn text PRIMARY KEY, author int, price numeric(9, 2))",
        "INSERT INTO books SELECT 'b' || n, n % 20, n / 10.0 FROM generate_series(0, 999) AS n",
    )
    catalog = shop.catalog(
        tmp_path,
        """
  authors:
    fields: {id: int64, name: string}
    database: {source: shop_db, table: $schema.authors, key: [id]}
  books:
    fields: {isbn: string, author: int64, price: float64}
    database:
      {source: shop_db, table: $schema.books, key: [isbn], indexed: [[author]], scan: false, batch_size: 4}
""",
    )
    sql = "SELECT a.name, b.isbn FROM authors a JOIN books b ON b.author = a.id WHERE b.price < 4.0 AND a.id < 5"
    ((found, report, sent),) = await _sent(catalog, sql)
    assert report.complete, report.lines()
    assert sorted(isbn for _, isbn in listed(found)) == sorted(f"b{n}" for n in range(40) if n % 20 < 5)
    assert sent == 5 + 10


@pytest.mark.parametrize(
    ("type_", "values", "conditions"),
    [
        ("char(4)", ["ab", "b"], ["v >= 'ab  '", "v = 'ab  '", "v ^@ 'ab  '", "v > 'ab'"]),
        ("inet", ["10.0.0.1", "10.0.0.2"], ["v = '10.0.0.1'", "v <= '10.0.0.1'", "v ^@ '10.'"]),
        ("mood", ["sad", "glad"], ["v < 'h'", "v = 'sad'", "v = 'none of them'"]),
        ("uuid", ["00000000-0000-0000-0000-00000000000a"], ["v ^@ '0000'", "v <= 'x'"]),
        ("name", ["a", "B"], ["v < 'a'"]),
    ],
)
async def test_what_postgresql_compares_otherwise_is_compared_by_the_engine(
    shop: Shop, tmp_path: Path, type_: str, values: list[str], conditions: list[str]
) -> None:
    shop.run(
        "CREATE TYPE mood AS ENUM ('sad', 'glad')", f"CREATE TABLE things (id int PRIMARY KEY, v {type_})"
    )
    shop.fill("things", list(enumerate(values)))
    text = "  things:\n    fields: {id: int64, v: string}\n"
    text += "    database: {source: shop_db, table: $schema.things, key: [id]"
    plain, ranged = shop.catalog(tmp_path, text + ", ranges: []}\n"), shop.catalog(tmp_path, text + "}\n")
    for condition in conditions:
        sql = f"SELECT * FROM things WHERE {condition} AND id < 100"
        ((true, _, _),) = await _sent(plain, sql)
        for catalog in (ranged, _small_pages(ranged, 2)):
            ((found, report, _),) = await _sent(catalog, sql)
            assert report.complete, report.lines()
            assert sorted(listed(found)) == sorted(listed(true))


async def test_a_database_in_another_encoding_is_asked_without_bounds_on_texts(
    shop: Shop, tmp_path: Path
) -> None:
    """In this one the euro sign comes before letters with accents."""
    name = f"{shop.schema}_win"
    shop.run(f"CREATE DATABASE {name} ENCODING 'WIN1252' LOCALE 'C' TEMPLATE template0")
    try:
        base = shop.server.base.replace("/postgres", f"/{name}")
        with psycopg.connect(base, password=PASSWORD, autocommit=True) as admin:
            admin.execute("CREATE TABLE things (id int PRIMARY KEY, v text)")
            admin.execute("INSERT INTO things VALUES (1, '€'), (2, 'é'), (3, 'a')")
        text = "  things:\n    fields: {id: int64, v: string}\n"
        text += "    database: {source: shop_db, table: public.things, key: [id]}\n"
        catalog = shop.catalog(tmp_path, text, changed=(shop.server.base, base))
        ((found, report, _),) = await _sent(catalog, "SELECT v FROM things WHERE v > 'é' AND id < 9")
    finally:
        shop.run(f"DROP DATABASE {name} WITH (FORCE)")
    assert (listed(found), report.complete) == ([("€",)], True)


async def test_the_index_of_a_database_is_of_use(shop: Shop) -> None:
    """Decimals are found by theirs, though their bound is a float; texts by one in the order of their code points."""
    shop.run(
        "CREATE TABLE books (isbn text, price numeric(9, 2), n int)",
        'CREATE INDEX by_isbn ON books (isbn COLLATE "C")',
        "CREATE INDEX by_price ON books (price)",
        "CREATE INDEX by_n ON books (n)",
        "INSERT INTO books SELECT 'b' || n, n / 10.0, n FROM generate_series(0, 9999) AS n",
        "ANALYZE books",
    )
    for bind_set, value, index in (
        (("price<",), 2.0, "by_price"),
        (("isbn<",), "b1", "by_isbn"),
        (("n>",), 9_990, "by_n"),
    ):
        request = _wrapper("postgresql").request(bind_set, ((value,),))
        text = request.sql.replace("$1", "%s").replace("$2", "%s")
        plan = shop.admin.execute(f"EXPLAIN {text}".encode(), request.parameters).fetchall()
        assert any(index in line for (line,) in plan), plan


# What is not as declared


@pytest.mark.parametrize(("condition", "told"), [("price >= 5", True), ("price < 5", False), ("TRUE", True)])
async def test_a_text_among_numbers_is_told_where_it_is_met(
    books: Catalog, tmp_path: Path, condition: str, told: bool
) -> None:
    with closing(sqlite3.connect(tmp_path / "books.db")) as connection, connection:
        connection.execute("INSERT INTO books VALUES (100, 'Book', 'dear', NULL)")
    ((_, report, _),) = await _sent(books, f"SELECT id FROM books WHERE {condition}")
    assert report.complete is not told
    assert [f.cause.message.rpartition(": ")[2] for _, f in failures(report)] == (
        ["expected double, found str 'dear'"] if told else []
    )


async def test_a_column_that_looks_like_texts_compares_its_numbers_as_numbers(tmp_path: Path) -> None:
    """All of them are texts then, and the first that is read is told."""
    path = sqlite_file(
        tmp_path / "books.db",
        "CREATE TABLE books (id INTEGER PRIMARY KEY, title TEXT, price TEXT, day DATE)",
        "INSERT INTO books VALUES (1, 'a', 10, NULL)",
    )
    catalog = declared(tmp_path, BOOKS.replace("FILE", str(path)))
    ((_, report, _),) = await _sent(catalog, "SELECT id FROM books WHERE price > 9")
    assert not report.complete


async def test_a_file_in_utf_16_is_asked_without_bounds_on_texts(tmp_path: Path) -> None:
    """There, bytes are in another order than code points."""
    words = ["a", "b", "\u0100", "\u0161", "\U0001f4d6"]
    path = sqlite_file(
        tmp_path / "books.db",
        "PRAGMA encoding = 'UTF-16le'",
        "CREATE TABLE books (id INTEGER PRIMARY KEY, title TEXT, price REAL, day DATE)",
        rows=[("INSERT INTO books VALUES (?, ?, 1, NULL)", list(enumerate(words)))],
    )
    catalog = declared(tmp_path, BOOKS.replace("FILE", str(path)))
    ((found, report, _),) = await _sent(catalog, "SELECT title FROM books WHERE title > 'a' AND id > 0")
    assert report.complete, report.lines()
    assert sorted(word for (word,) in listed(found)) == words[1:]


async def test_bounds_at_the_ends_of_time(tmp_path: Path) -> None:
    days = ["0001-01-01T00:00:00", "9999-12-31 23:59:59", "2026-01-01T01:00:00+05:00"]
    path = sqlite_file(
        tmp_path / "t.db",
        "CREATE TABLE t (id INTEGER PRIMARY KEY, moment TEXT)",
        rows=[("INSERT INTO t VALUES (?, ?)", list(enumerate(days[:2])))],
    )
    text = f"""
sources: {{shelf: {{base: "sqlite:///{path}"}}}}
relations: {{t: {{fields: {{id: int64, moment: timestamp}}, database: {{source: shelf, table: t, key: [id]}}}}}}
"""
    catalog = declared(tmp_path, text)
    for condition, found in (
        ("moment <= TIMESTAMP '9999-12-31 23:59:59'", 2),
        ("moment >= TIMESTAMP '0001-01-01 00:00:00'", 2),
        ("moment < TIMESTAMP '0001-01-02'", 1),
        ("moment > TIMESTAMP '9999-12-30'", 1),
    ):
        ((table, report, _),) = await _sent(catalog, f"SELECT id FROM t WHERE {condition}")
        assert (table.num_rows, report.complete) == (found, True), condition
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM t")
        connection.execute("INSERT INTO t VALUES (1, ?)", (days[2],))
    ((table, _, sent),) = await _sent(catalog, "SELECT moment FROM t WHERE moment < DATE '2026-01-01'")
    assert (table.num_rows, sent) == (1, 1), "in UTC it is the day before"
    assert table["moment"][0].as_py().date() == date(2025, 12, 31)
