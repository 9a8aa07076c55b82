"""A real PostgreSQL server as a source: every type, hostile names and values, faults in mid-query."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from mediator.answering import Mediator
from mediator.catalog.model import Catalog
from mediator.catalog.secret import Secret
from mediator.output.report import Report
from tests.answering.kit import ask, failures, listed, of
from tests.sql_kit import PASSWORD, PASSWORD_ENV, Shop
from wrappers.sql import SqlWrapper

BOOKS = """
  books:
    fields: {isbn: string, year: int32}
    database:
      source: shop_db
      table: $schema.books
      key: [isbn]
      indexed: [[isbn], [year]]
      batch_size: 2
"""
# Runs for a minute per row, unless the flag says that it need not.
SLOW = (
    "CREATE TABLE flag (slow boolean)",
    "INSERT INTO flag VALUES (true)",
    "CREATE VIEW books AS SELECT n::text AS isbn, n AS year FROM generate_series(1, 3) AS n"
    " WHERE (SELECT CASE WHEN slow THEN pg_sleep(60)::text END FROM flag) IS NULL",
)


async def _ask(catalog: Catalog, sql: str) -> tuple[pa.Table, Report]:
    async with Mediator(catalog, threads=1) as mediator:
        return await ask(mediator, sql)


async def _failure(catalog: Catalog, sql: str = "SELECT * FROM books") -> tuple[str, str]:
    """Why nothing was answered."""
    found, report = await _ask(catalog, sql)
    assert found.num_rows == 0
    assert not report.complete
    ((_, failure),) = failures(report)
    assert PASSWORD not in "\n".join(report.lines())
    return failure.cause.kind, failure.cause.message


async def test_every_type_and_null_come_as_declared(shop: Shop, tmp_path: Path) -> None:
    shop.run(
        "CREATE TYPE mood AS ENUM ('sad', 'glad')",
        "CREATE TABLE things (id int PRIMARY KEY, small smallint, big bigint, real real, double float8, exact"
        " numeric(12, 2), whole numeric(20), yes boolean, text text, fixed char(3), uuid uuid, mood mood, json"
        " jsonb, list int[], span interval, address inet, day date, at timestamp, at_zone timestamptz)",
        "INSERT INTO things VALUES (1, -3, 9007199254740993, 0.1, 0.1, 12.34, 5, true, '', 'ab',"
        " '00000000-0000-0000-0000-00000000000a', 'glad', '{\"a\": [1, null]}', '{1,2}', '1 day', '10.0.0.1',"
        " '2026-02-28', '2026-02-28 12:34:56.789', '2026-02-28 12:00:00+02')",
        "INSERT INTO things (id) VALUES (2)",
    )
    types = {
        "id": "int32",
        "small": "int32",
        "big": "int64",
        "real": "float64",
        "double": "float64",
        "exact": "float64",
        "whole": "int64",
        "yes": "bool",
        "text": "string",
        "fixed": "string",
        "uuid": "string",
        "mood": "string",
        "json": "string",
        "list": "string",
        "span": "string",
        "address": "string",
        "day": "date",
        "at": "timestamp",
        "at_zone": "timestamp",
    }
    fields = ", ".join(f'"{name}": {type_}' for name, type_ in types.items())
    catalog = shop.catalog(
        tmp_path,
        f"""
  things:
    fields: {{{fields}}}
    database: {{source: shop_db, table: $schema.things, key: [id], indexed: [[id]]}}
""",
    )
    found, report = await _ask(catalog, "SELECT * FROM things ORDER BY id")
    assert report.complete, report.lines()
    full, empty = found.to_pylist()
    assert full == {
        "id": 1,
        "small": -3,
        "big": 9007199254740993,
        "real": pytest.approx(0.1),
        "double": 0.1,
        "exact": 12.34,
        "whole": 5,
        "yes": True,
        "text": "",
        "fixed": "ab ",
        "uuid": "00000000-0000-0000-0000-00000000000a",
        "mood": "glad",
        "json": '{"a": [1, null]}',
        "list": "{1,2}",
        "span": "1 day",
        "address": "10.0.0.1",
        "day": date(2026, 2, 28),
        "at": datetime(2026, 2, 28, 12, 34, 56, 789000),
        "at_zone": datetime(2026, 2, 28, 10),
    }
    assert empty == {**dict.fromkeys(types), "id": 2}


@pytest.mark.parametrize(
    ("column", "declared", "written"),
    [
        ("smallint", "int64", "'7'"),
        ("real", "float64", "'0.1'"),
        ("numeric(9, 3)", "float64", "'0.1'"),
        ("numeric(20)", "int64", "'12345678901'"),
        ("boolean", "bool", "true"),
        ("text", "string", "'it''s \"so\"'"),
        ("uuid", "string", "'00000000-0000-0000-0000-00000000000a'"),
        ("mood", "string", "'glad'"),
        ("date", "date", "'2026-02-28'"),
        ("timestamp", "timestamp", "'2026-02-28 01:02:03.000004'"),
        ("timestamptz", "timestamp", "'2026-02-28 01:02:03+05'"),
    ],
)
async def test_what_was_read_is_found_again_by_a_lookup(
    shop: Shop, tmp_path: Path, column: str, declared: str, written: str
) -> None:
    """The scan of `given` brings the value, the index of `taken` has to find it, page by page."""
    if column == "mood":
        shop.run("CREATE TYPE mood AS ENUM ('sad', 'glad')")
    for table in ("given", "taken"):
        shop.run(
            f"CREATE TABLE {table} (v {column}, other int)",
            f"INSERT INTO {table} VALUES ({written}, 1), (NULL, 2)",
        )
    common = f"fields: {{v: {declared}, other: int32}}"
    catalog = shop.catalog(
        tmp_path,
        f"""
  given:
    {common}
    database: {{source: shop_db, table: $schema.given}}
  taken:
    {common}
    database: {{source: shop_db, table: $schema.taken, key: [v, other], indexed: [[v], [v, other]], scan: false}}
""",
    )
    for join in ("g.v = t.v", "g.v = t.v AND g.other = t.other"):
        found, report = await _ask(catalog, f"SELECT t.other FROM given g JOIN taken t ON {join}")
        assert report.complete, report.lines()
        assert listed(found) == [(1,)]


@pytest.mark.parametrize(
    ("column", "declared", "written"),
    [
        ("smallint", "int64", "n - 4"),
        ("real", "float64", "n / 10.0 - 0.4"),
        ("float8", "float64", "CASE WHEN n = 7 THEN 'NaN' ELSE n / 10.0 END"),
        ("numeric(9, 3)", "float64", "n / 7.0"),
        ("boolean", "bool", "n % 2 = 0"),
        ("text", "string", "repeat('\\ü\"$1', n)"),
        ('text COLLATE "C"', "string", "CASE WHEN n % 2 = 0 THEN 'a' ELSE 'A' END || n"),
        ("char(5)", "string", "n"),
        ("uuid", "string", "lpad(n::text, 32, '0')"),
        ("mood", "string", "CASE WHEN n % 2 = 0 THEN 'sad' ELSE 'glad' END"),
        ("date", "date", "date '2026-02-26' + n"),
        ("timestamp", "timestamp", "timestamp '2026-02-28' + n * interval '1.000001 s'"),
        ("timestamptz", "timestamp", "timestamptz '2026-02-28' + n * interval '1.000001 s'"),
    ],
)
async def test_pages_follow_keys_of_every_type(
    shop: Shop, tmp_path: Path, column: str, declared: str, written: str
) -> None:
    """Seven rows, two in a page, and three without a key."""
    shop.run(
        "CREATE TYPE mood AS ENUM ('sad', 'glad')",
        f"CREATE TABLE things (v {column}, n int)",
        f"INSERT INTO things SELECT ({written})::{column.partition(' COLLATE')[0]}, n FROM generate_series(1, 7) AS n",
        "INSERT INTO things VALUES (NULL, 8), (NULL, 9), (NULL, NULL)",
    )
    catalog = shop.catalog(
        tmp_path,
        f"""
  things:
    fields: {{v: {declared}, n: int32}}
    database: {{source: shop_db, table: $schema.things, key: [v, n]}}
""",
    )
    found, report = await _ask(_small_pages(catalog), "SELECT v, n FROM things")
    assert report.complete, report.lines()
    assert sorted(found["n"].to_pylist(), key=str) == [1, 2, 3, 4, 5, 6, 7, 8, 9, None]
    assert found["v"].null_count == 3


def _small_pages(catalog: Catalog) -> Catalog:
    (relation,) = catalog.relations.values()
    (scan,) = relation.methods
    assert isinstance(scan.wrapper, SqlWrapper)
    scan = replace(scan, wrapper=replace(scan.wrapper, page=2))
    return replace(catalog, relations={relation.name: replace(relation, methods=(scan,))})


async def test_names_with_quotes_and_dots_are_names(shop: Shop, tmp_path: Path) -> None:
    shop.run(
        'CREATE TABLE "a.b ""c""; DROP TABLE x" ("it\'s ""it""" text, "SELECT" int)',
        'INSERT INTO "a.b ""c""; DROP TABLE x" VALUES (\'v\', 1)',
    )
    catalog = shop.catalog(
        tmp_path,
        """
  odd:
    fields: {it: string, chosen: int32}
    database:
      source: shop_db
      table: [$schema, 'a.b "c"; DROP TABLE x']
      columns: {it: 'it''s "it"', chosen: SELECT}
      key: [it]
      indexed: [[it]]
""",
    )
    for sql in ("SELECT * FROM odd", "SELECT * FROM odd WHERE it = 'v'"):
        found, report = await _ask(catalog, sql)
        assert (listed(found), report.complete) == ([("v", 1)], True)


@pytest.mark.parametrize(
    "evil", ["'; DROP TABLE books; --", "$1", "\\", "a' OR 'a' = 'a", "%s %(x)s", "{}", "ü\U0001f4d6"]
)
async def test_a_value_is_never_part_of_the_statement(shop: Shop, tmp_path: Path, evil: str) -> None:
    shop.run("CREATE TABLE books (isbn text PRIMARY KEY, year int)")
    shop.fill("books", [("harmless", 1), (evil, 2)])
    catalog = shop.catalog(tmp_path, BOOKS)
    literal = evil.replace("'", "''")
    found, report = await _ask(catalog, f"SELECT year FROM books WHERE isbn = '{literal}'")
    assert (listed(found), report.complete) == ([(2,)], True)
    assert shop.admin.execute("SELECT count(*) FROM books").fetchall() == [(2,)]


async def test_bindings_are_pushed_down_in_batches(shop: Shop, tmp_path: Path) -> None:
    shop.run(
        "CREATE TABLE books AS SELECT n::text AS isbn, n % 10 AS year FROM generate_series(1, 1000) AS n"
    )
    catalog = shop.catalog(tmp_path, BOOKS.replace("batch_size: 2", "batch_size: 2\n      scan: false"))
    async with Mediator(catalog, threads=1) as mediator:
        found, report = await ask(mediator, "SELECT isbn FROM books WHERE isbn IN ('1', '2', '3', '4', 'no')")
        (source,) = mediator.statistics().sources
    assert sorted(listed(found)) == [("1",), ("2",), ("3",), ("4",)]
    assert report.complete
    assert of(report, "books").rows == 4
    assert source.requests == 3


async def test_a_hundred_thousand_rows_come_in_pages(shop: Shop, tmp_path: Path) -> None:
    shop.run(
        "CREATE TABLE books AS SELECT lpad((n * 7919 % 100003)::text, 6, '0') AS isbn, n AS year"
        " FROM generate_series(1, 100000) AS n",
        "CREATE UNIQUE INDEX ON books (isbn)",
        "INSERT INTO books VALUES (NULL, -1)",
    )
    catalog = shop.catalog(tmp_path, BOOKS)
    async with (
        Mediator(catalog, threads=1) as mediator,
        mediator.answering("SELECT isbn, year FROM books") as answers,
    ):
        batches = [batch async for batch in answers]
        assert answers.report.complete, answers.report.lines()
        (source,) = mediator.statistics().sources
    table = pa.Table.from_batches(batches)
    assert sorted(table["year"].to_pylist()) == [-1, *range(1, 100_001)]
    assert batches[0].num_rows < 10_000  # the first came before the last were asked for
    assert source.requests == 52  # 2,000 rows, then 1,999 more with each page, then those without a key


async def test_a_dropped_table_a_dropped_column_and_another_type_are_told(shop: Shop, tmp_path: Path) -> None:
    catalog = shop.catalog(tmp_path, BOOKS)
    kind, said = await _failure(catalog)
    assert kind == "schema changed"
    assert f'relation "{shop.schema}.books" does not exist' in said
    shop.run("CREATE TABLE books (isbn text)")
    kind, said = await _failure(catalog)
    assert (kind, "column r.year does not exist" in said) == ("schema changed", True)
    shop.run("ALTER TABLE books ADD year text", "INSERT INTO books VALUES ('a', 'old')")
    kind, said = await _failure(catalog)
    assert kind == "schema changed"
    assert said.endswith("books.year: expected int32, found str 'old'")
    catalog = shop.catalog(tmp_path, BOOKS.replace("batch_size: 2", "scan: false"))
    kind, said = await _failure(catalog, "SELECT * FROM books WHERE year = 3")
    assert (kind, "operator does not exist: text = smallint" in said) == ("schema changed", True)


async def test_a_number_too_large_for_its_field_is_told(shop: Shop, tmp_path: Path) -> None:
    shop.run("CREATE TABLE books (isbn text, year bigint)", "INSERT INTO books VALUES ('a', 3000000000)")
    kind, said = await _failure(shop.catalog(tmp_path, BOOKS))
    assert (kind, "books.year: expected int32, found int 3000000000" in said) == ("schema changed", True)


async def test_a_value_that_no_column_could_have_spoils_only_its_own_lookup(
    shop: Shop, tmp_path: Path
) -> None:
    shop.run("CREATE TABLE books (isbn uuid PRIMARY KEY, year int)")
    isbn = "00000000-0000-0000-0000-00000000000a"
    shop.fill("books", [(isbn, 1)])
    catalog = shop.catalog(tmp_path, BOOKS.replace("batch_size: 2", "batch_size: 2\n      scan: false"))
    found, report = await _ask(catalog, f"SELECT year FROM books WHERE isbn IN ('nonsense', '{isbn}')")
    assert listed(found) == [(1,)]
    ((_, failure),) = failures(report)
    assert failure.cause.kind == "refused"
    assert 'invalid input syntax for type uuid: "nonsense"' in failure.cause.message


async def test_a_backend_killed_in_mid_query_is_asked_again(shop: Shop, tmp_path: Path) -> None:
    shop.run(*SLOW)
    catalog = shop.catalog(tmp_path, BOOKS)
    async with Mediator(catalog, threads=1) as mediator, asyncio.TaskGroup() as group:
        asked = group.create_task(ask(mediator, "SELECT year FROM books"))
        (pid,) = await shop.until_busy()
        shop.run("UPDATE flag SET slow = false", f"SELECT pg_terminate_backend({pid})")
        found, report = await asked
        (source,) = mediator.statistics().sources
    assert sorted(listed(found)) == [(1,), (2,), (3,)]
    assert report.complete
    assert source.requests == 2


async def test_connections_lost_while_idle_are_made_anew(shop: Shop, tmp_path: Path) -> None:
    shop.run("CREATE TABLE books (isbn text, year int)", "INSERT INTO books VALUES ('a', 1)")
    catalog = shop.catalog(tmp_path, BOOKS.replace("batch_size: 2", "fresh_for: 0.000001"))
    async with Mediator(catalog, threads=1) as mediator:
        for _ in range(3):
            found, report = await ask(mediator, "SELECT * FROM books")
            assert (found.num_rows, report.complete) == (1, True)
            shop.run(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'mediator'"
            )


async def test_leaving_a_query_cancels_its_statement(shop: Shop, tmp_path: Path) -> None:
    shop.run(*SLOW)
    async with Mediator(shop.catalog(tmp_path, BOOKS), threads=1) as mediator:
        async with mediator.answering("SELECT * FROM books"):
            await shop.until_busy()
        await shop.until_busy(False)


async def test_a_statement_ends_with_its_deadline(shop: Shop, tmp_path: Path) -> None:
    shop.run(*SLOW)
    kind, said = await _failure(shop.catalog(tmp_path, BOOKS, "deadline: 0.4"))
    assert kind == "timed out"
    assert "books.scan at shop_db" in said
    await shop.until_busy(False)


async def test_the_server_itself_knows_the_deadline(shop: Shop, tmp_path: Path) -> None:
    """Should the engine's own cancellation not arrive."""
    shop.run("CREATE VIEW books AS SELECT current_setting('statement_timeout') AS isbn, 1 AS year")
    found, _ = await _ask(shop.catalog(tmp_path, BOOKS, "deadline: 12.345"), "SELECT isbn FROM books")
    assert listed(found) == [("12345ms",)]


async def test_nothing_can_be_written(shop: Shop, tmp_path: Path) -> None:
    shop.run(
        "CREATE TABLE seen (n int)",
        f"CREATE FUNCTION note() RETURNS int LANGUAGE sql AS 'INSERT INTO {shop.schema}.seen VALUES (1) RETURNING n'",
        "CREATE VIEW books AS SELECT 'a' AS isbn, note() AS year",
    )
    kind, said = await _failure(shop.catalog(tmp_path, BOOKS))
    assert (kind, "read-only transaction" in said) == ("refused", True)
    assert shop.admin.execute("SELECT * FROM seen").fetchall() == []


@pytest.mark.parametrize(
    ("before", "after", "kind", "said"),
    [
        ("/postgres", "/nowhere", "refused", 'database "nowhere" does not exist'),
        ("mediator@", "stranger@", "refused", 'password authentication failed for user "stranger"'),
        ("    allow_private: true\n", "", "refused", "127.0.0.1 is not a public address"),
        (
            f"    password_env: {PASSWORD_ENV}\n",
            "",
            "refused",
            "name where it is in the source's password_env",
        ),
        (PASSWORD_ENV, "NO_SUCH_VARIABLE", "refused", "set the environment variable NO_SUCH_VARIABLE"),
        ("@127.0.0.1:", "@127.0.0.1:1/x?dbname=", "unreachable", "Connection refused"),
    ],
)
async def test_a_connection_that_cannot_be_had_is_told_with_its_reason(
    shop: Shop, tmp_path: Path, before: str, after: str, kind: str, said: str
) -> None:
    found = await _failure(shop.catalog(tmp_path, BOOKS, "attempts: 2", (before, after)))
    assert found[0] == kind
    assert said in found[1]


async def test_a_wrong_password_is_refused_and_stays_secret(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PASSWORD_ENV, "mediator")  # a password that the server's words contain
    catalog = shop.catalog(tmp_path, BOOKS)
    kind, said = await _failure(catalog)
    assert kind == "refused"
    assert 'password authentication failed for user "***"' in said
    assert Secret(PASSWORD_ENV).read() not in repr(catalog.sources["shop_db"].password)


async def test_a_password_can_be_in_a_file(shop: Shop, tmp_path: Path) -> None:
    shop.run("CREATE TABLE books (isbn text, year int)", "INSERT INTO books VALUES ('a', 1)")
    secret = tmp_path / "secret"
    secret.write_text(PASSWORD + "\n")
    change = f"password_env: {PASSWORD_ENV}", f"password_file: {secret}"
    catalog = shop.catalog(tmp_path, BOOKS, changed=change)
    found, report = await _ask(catalog, "SELECT * FROM books")
    assert (found.num_rows, report.complete) == (1, True)
    secret.unlink()
    kind, said = await _failure(catalog)
    assert (kind, said.endswith("cannot be read: No such file or directory")) == ("refused", True)


def test_the_mediator_is_imported_without_the_driver() -> None:
    program = (
        "import sys; sys.modules['psycopg'] = None; import mediator.answering, sources, wrappers.sql, api.cli"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


async def test_without_the_driver_it_is_told_what_to_install(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = shop.catalog(tmp_path, BOOKS)
    monkeypatch.delitem(sys.modules, "mediator.access.databases.postgresql", raising=False)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    kind, said = await _failure(catalog)
    assert kind == "refused"
    assert said.endswith("PostgreSQL needs its driver: pip install 'mediator[postgres]'")


@pytest.mark.parametrize(
    ("greeting", "kind", "said"),
    [
        (None, "timed out", "no answer within 0.4 s"),
        (b"", "unreachable", "server closed the connection unexpectedly"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "unreachable", "invalid response"),
    ],
)
async def test_what_is_no_postgresql_is_told(
    shop: Shop, tmp_path: Path, greeting: bytes | None, kind: str, said: str
) -> None:
    left = asyncio.Semaphore(0)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if greeting is None:
            await reader.read()  # until the engine hangs up
        else:
            await reader.read(8)
            writer.write(greeting)
        writer.close()
        left.release()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as impostor:
        port = impostor.sockets[0].getsockname()[1]
        change = str(shop.server.port), str(port)
        catalog = shop.catalog(tmp_path, BOOKS, "deadline: 0.4\n    attempts: 2", change)
        async with Mediator(catalog, threads=1) as mediator:
            _, report = await ask(mediator, "SELECT * FROM books")
            (source,) = mediator.statistics().sources
        async with asyncio.timeout(30):
            for _ in range(source.requests):
                await left.acquire()
    ((_, failure),) = failures(report)
    assert failure.cause.kind == kind
    assert said in failure.cause.message
