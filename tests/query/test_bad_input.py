"""What cannot be run is told in one message that names the thing, with its place in the statement."""

from __future__ import annotations

import pytest

from mediator.errors import (
    QueryError,
    TypeMismatch,
    UnknownColumn,
    UnknownRelation,
    Unparsable,
    Unsupported,
)
from mediator.query import understand
from tests.query.naive import CATALOG

# The statement, the error, what its message or hint says, and the text at its position.
BAD: list[tuple[str, type[QueryError], str, str | None]] = [
    ("", Unparsable, "there is no statement", None),
    ("SELECT title,, FROM books WHERE (", Unparsable, "near '('", "("),
    ("SELECT isbn FROM books GROUP", Unparsable, "", "GROUP"),
    ("SELECT isbn FROM books WHERE isbn IN (3,,4)", Unparsable, "", ",4"),
    ("SELECT end FROM books", Unparsable, "", "end"),
    ("SELECT title,, year FROM books", Unparsable, "", ", year"),
    ("SELECT isbn FROM books AS", Unparsable, "", None),
    ("SELECT isbn FROM", Unparsable, "but got the end of the statement", "FROM"),
    ("SELECT isbn FROM books JOIN", Unparsable, "but got the end of the statement", "JOIN"),
    ("SELECT isbn FROM 1", Unparsable, "but got 1", "1"),
    ("SELECT isbn FROM books WHERE", Unparsable, "something is missing near 'WHERE'", "WHERE"),
    ("SELECT FROM books", Unparsable, "without selection list", None),
    ("SELECT 'it''s', 'abc", Unparsable, "a string that begins here has no end", "'abc"),
    ("SELECT e'a\\'b', 'c' -- it's\n, 'd", Unparsable, "a string that begins here", "'d"),
    ("SELECT e'a\\'b FROM books", Unparsable, "a string that begins here", "'a\\'b FROM books"),
    ('SELECT "title FROM books', Unparsable, "a quoted name that begins here", '"title FROM books'),
    ("SELECT 1 /* one", Unparsable, "a comment that begins here", "/* one"),
    ("SELECT $a$ it's $b$ FROM books", Unparsable, "a string that begins here", "$a$ it's $b$ FROM books"),
    ("SELECT * FROM books WHERE year = ? AND AND", Unparsable, "near 'AND'", "AND"),
    ("SELEC title", Unparsable, "begins with SELECT", "SELEC"),
    ("SELECT " + "(" * 3000 + "1" + ")" * 3000, Unparsable, "nested too deeply", None),
    (
        "SELECT title FROM " + "(" * 9000 + "books" + ")" * 9000,
        Unparsable,
        "nested too deeply",
        "(" * 8800 + "books",
    ),
    ("SELECT " + "[" * 201 + "]" * 201 + " FROM books", Unparsable, "nested too deeply", "[]"),
    ("SELECT * FROM bokos", UnknownRelation, "did you mean books?", "bokos"),
    ("SELECT * FROM x.books", UnknownRelation, "no relation 'x.books'", None),
    ("SELECT * FROM zzz", UnknownRelation, "there are: Odd Names, authors", "zzz"),
    ("SELECT x.title FROM books b", UnknownRelation, '"x" not found', "x.title"),
    ("SELECT (SELECT a FROM zzz) FROM books", UnknownRelation, "no relation 'zzz'", "zzz"),
    ("SELECT titel FROM books", UnknownColumn, "did you mean title?", "titel"),
    ("SELECT b.titel FROM books b", UnknownColumn, "did you mean title?", "b.titel"),
    ("SELECT 'ümläut',\n  yaer\nFROM books", UnknownColumn, "did you mean year?", "yaer"),
    ("SELECT zzz FROM books", UnknownColumn, "there are: isbn, title", "zzz"),
    ("SELECT isbn FROM books, offers", UnknownColumn, "Ambiguous", "isbn"),
    ("SELECT * EXCLUDE (nope) FROM books", UnknownColumn, "nope", None),
    ("SELECT * FROM books WHERE year = 'abc'", TypeMismatch, "'abc' is not a value of type INTEGER", "year"),
    ("SELECT * FROM books WHERE year IN (1, 'b')", TypeMismatch, "", None),
    (
        "SELECT 1 FROM prizes p, books b WHERE p.awarded = b.year",
        TypeMismatch,
        "DATE and INTEGER",
        "p.awarded",
    ),
    ("SELECT year + title FROM books", TypeMismatch, "+(INTEGER, VARCHAR)", "+ title"),
    ("SELECT sum(title) FROM books", TypeMismatch, "sum(VARCHAR)", "sum"),
    ("SELECT year FROM books UNION SELECT 1, 2", TypeMismatch, "same number of result columns", None),
    ("SELECT title FROM books GROUP BY year", QueryError, "must appear in the GROUP BY", "title"),
    ("SELECT title FROM books WHERE max(year) > 3", QueryError, "cannot contain aggregates", "max"),
    ("SELECT * FROM books b, offers b", QueryError, "duplicate alias", None),
    ("SELECT frobnicate(title) FROM books", Unsupported, "frobnicate does not exist", "frobnicate"),
    ("SELECT 1; SELECT 2", Unsupported, "one statement at a time", None),
    ("SELECT * FROM books b ASOF JOIN offers o ON b.isbn >= o.isbn", Unsupported, "ASOF", None),
    ("SELECT * FROM books POSITIONAL JOIN offers", Unsupported, "POSITIONAL", None),
    ("SELECT * FROM books TABLESAMPLE 10%", Unsupported, "sampling", None),
    ("SELECT COLUMNS('t.*') FROM books", Unsupported, "COLUMNS", None),
    ("SELECT title INTO x FROM books", Unsupported, "INTO", None),
]


@pytest.mark.parametrize(("sql", "kind", "says", "at"), BAD)
def test_bad_statement(sql: str, kind: type[QueryError], says: str, at: str | None) -> None:
    with pytest.raises(kind) as caught:
        understand(sql, CATALOG)
    assert says in str(caught.value)
    if at is not None:
        assert caught.value.position is not None
        assert sql[caught.value.position :].startswith(at)


def test_position_is_shown_in_the_line() -> None:
    with pytest.raises(UnknownColumn) as caught:
        understand("SELECT title,\n       yaer\nFROM books", CATALOG)
    assert str(caught.value).splitlines()[1:3] == ["line 2:        yaer", "               ^"]


@pytest.mark.parametrize(
    ("sql", "parameters", "says"),
    [
        ("SELECT ?", [], "parameter 1 has no value"),
        ("SELECT $name", {"nam": 1}, "parameter name has no value"),
        ("SELECT $2", ["one"], "parameter 2 has no value"),
        ("SELECT 1", [1], "has no parameter 1"),
        ("SELECT ?", [object()], "cannot be a object"),
    ],
)
def test_parameters(sql: str, parameters: object, says: str) -> None:
    with pytest.raises(QueryError, match=says):
        understand(sql, CATALOG, parameters)  # type: ignore[arg-type]


REFUSED = [
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM read_csv_auto('/etc/passwd')",
    "SELECT * FROM read_parquet('x')",
    "SELECT * FROM parquet_scan('x')",
    "SELECT * FROM read_json('x')",
    "SELECT * FROM read_text('/etc/passwd')",
    "SELECT * FROM read_blob('/etc/passwd')",
    "SELECT * FROM glob('*')",
    "SELECT * FROM sniff_csv('x')",
    "SELECT * FROM '/etc/passwd'",
    "SELECT * FROM 'x.parquet'",
    "SELECT * FROM 'data.csv' x JOIN books b ON true",
    'SELECT * FROM "https://example.org/x.csv"',
    "FROM 's3://bucket/x.json'",
    "SELECT (SELECT count(*) FROM read_csv('x')) FROM books",
    "WITH x AS (SELECT * FROM read_csv('x')) SELECT * FROM x",
    "SELECT * FROM books, LATERAL read_csv(title)",
    "SELECT title FROM books WHERE title IN (SELECT content FROM read_text('x'))",
    "SELECT title FROM books UNION SELECT content FROM read_text('x')",
    "SELECT getenv('HOME')",
    "SELECT \"getenv\"('HOME')",
    "SELECT GetEnv('HOME')",
    "SELECT 'HOME'.getenv()",
    "SELECT main.getenv('HOME')",
    "SELECT title FROM books ORDER BY getenv('HOME')",
    "SELECT getvariable('x')",
    "SELECT current_setting('threads')",
    "SELECT nextval('x')",
    "SELECT write_log('x')",
    "SELECT pg_sleep(5)",
    "SELECT sleep_ms(5000)",
    "SELECT * FROM query('SELECT 1')",
    "SELECT * FROM query_table('books')",
    "SELECT * FROM duckdb_settings()",
    "SELECT * FROM duckdb_secrets()",
    "SELECT * FROM pragma_table_info('books')",
    "SELECT json_execute_serialized_sql('x')",
    "COPY books TO 'x'",
    "COPY (SELECT 1) TO 'x'",
    "ATTACH 'x'",
    "DETACH x",
    "PRAGMA database_list",
    "SET threads = 3",
    "RESET threads",
    "INSTALL httpfs",
    "LOAD httpfs",
    "CREATE TABLE x AS SELECT 1",
    "CREATE MACRO f(x) AS x",
    "INSERT INTO books VALUES (1)",
    "UPDATE books SET title = 'x'",
    "DELETE FROM books",
    "DROP TABLE books",
    "EXPORT DATABASE 'x'",
    "IMPORT DATABASE 'x'",
    "CALL pragma_version()",
    "EXPLAIN SELECT 1",
    "DESCRIBE books",
    "SHOW TABLES",
    "USE x",
    "-- SELECT\nDROP TABLE books",
    "/* SELECT */ VACUUM",
    "SELECT 1; DROP TABLE books",
    "WITH x AS (DELETE FROM books RETURNING *) SELECT * FROM x",
]


@pytest.mark.parametrize("sql", REFUSED)
def test_refused(sql: str) -> None:
    with pytest.raises(QueryError) as caught:
        understand(sql, CATALOG)
    assert isinstance(caught.value, (Unsupported, Unparsable)), repr(caught.value)


@pytest.mark.parametrize(
    "name",
    ["sqlite_master", "duckdb_tables", "information_schema.tables", "pg_catalog.pg_class", "table_of_python"],
)
def test_only_the_catalogs_relations_can_be_named(name: str) -> None:
    table_of_python = [1]
    assert table_of_python
    with pytest.raises(UnknownRelation):
        understand(f"SELECT * FROM {name}", CATALOG)


def test_a_with_entry_is_known_only_where_it_is_visible() -> None:
    with pytest.raises(UnknownRelation):
        understand(
            "SELECT * FROM (WITH sqlite_master AS (SELECT 1) SELECT * FROM sqlite_master) x, sqlite_master",
            CATALOG,
        )


def test_a_value_cannot_become_sql() -> None:
    query = understand("SELECT title FROM books WHERE title = ?", CATALOG, ["x' OR 'a' = 'a"])
    (predicate,) = query.stages[0].block.predicates  # type: ignore[union-attr]
    assert predicate.text == "books.title = 'x'' OR ''a'' = ''a'"
