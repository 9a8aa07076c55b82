"""Statements that mean harm: each is refused, or ends soon after its limit, and nobody beside it has to wait.

The server is a process of its own, which can be ended when it does not end by itself, and whose memory is its own.
"""

from __future__ import annotations

import asyncio
import io
import json
import multiprocessing
import os
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from random import Random
from statistics import median, quantiles
from typing import Any

import aiohttp
import pytest

from api.http.limits import Limits
from api.http.serving import settle_in
from fixtures import book_trade
from fixtures.behaviour import Behaviour, Fault
from mediator.query import duck
from tests.http.serving import serving

SECONDS = 2.0  # that the server gives a query
GRACE = 4.0  # that a test gives the server: a core may be busy with something else
CROWD = 10.0  # the same, where many share the cores
MEMORY = 1 << 30  # bytes more than before
BOOKS = "SELECT title FROM books LIMIT 3"


def _house(pipe: Connection) -> None:
    """A server over a book trade where reviews never end."""
    settle_in()
    with duck.apart(2 << 30), book_trade(300) as web:
        web.behave("reviews", Behaviour(faults=(Fault("endless", probability=1.0),)))
        with serving(web.catalog, limits=Limits(seconds=SECONDS)) as served:
            pipe.send(served.url)
            with suppress(EOFError):
                pipe.recv()


@dataclass
class House:
    url: str
    process: BaseProcess
    pipe: Connection
    lost: bool = False

    @property
    def memory(self) -> int:
        """Bytes that are in use."""
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) << 12


@pytest.fixture
def house() -> Iterator[House]:
    several = multiprocessing.get_context("spawn")
    ours, theirs = several.Pipe()
    process = several.Process(target=_house, args=(theirs,))
    process.start()
    theirs.close()
    try:
        assert ours.poll(60.0), "the server did not start"
        house = House(ours.recv(), process, ours)
        yield house
        ours.close()
        if not house.lost:
            process.join(20.0)
    finally:
        if process.is_alive():
            process.kill()
        process.join()


@dataclass
class Beside:
    """What others saw meanwhile."""

    healthz: list[float] = field(default_factory=list)
    small: list[float] = field(default_factory=list)
    memory: int = 0
    wrong: list[str] = field(default_factory=list)


@asynccontextmanager
async def beside(house: House, session: aiohttp.ClientSession) -> AsyncIterator[Beside]:
    """Ask for health and for a few rows, again and again; end a server whose memory goes beyond all bounds."""
    seen, before = Beside(), house.memory

    async def watch() -> None:
        while not house.lost:
            await asyncio.sleep(0.05)
            seen.memory = max(seen.memory, house.memory - before)
            if seen.memory > 4 * MEMORY:
                house.lost = True
                house.process.kill()

    async def ask(method: str, path: str, times: list[float], said: Any = None) -> None:
        while not house.lost:
            began = time.monotonic()
            try:
                headers = {"Accept": "application/x-ndjson" if said else "*/*"}
                async with session.request(method, path, json=said, headers=headers) as response:
                    text = await response.text()
                if response.status != 200 or (said and '"status":"complete"' not in text):
                    seen.wrong.append(f"{path}: {response.status}, {text[-200:]}")
            except (aiohttp.ClientError, TimeoutError) as error:
                seen.wrong.append(f"{path}: {error!r}")
            times.append(time.monotonic() - began)
            await asyncio.sleep(0.05)

    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(watch()),
            group.create_task(ask("GET", "/healthz", seen.healthz)),
            group.create_task(ask("POST", "/v1/queries", seen.small, {"sql": BOOKS})),
        ]
        yield seen
        for task in tasks:
            task.cancel()


async def ends(session: aiohttp.ClientSession, statement: str) -> tuple[float, str]:
    """How long a statement takes, and what becomes of it."""
    began = time.monotonic()
    headers = {"Accept": "application/x-ndjson", "Content-Type": "application/json"}
    body = io.BytesIO(json.dumps({"sql": statement}).encode())
    async with session.post("/v1/queries", data=body, headers=headers) as response:
        tail = b""
        async for chunk in response.content.iter_chunked(1 << 16):
            tail = (tail + chunk)[-(1 << 16) :]
    took = time.monotonic() - began
    if response.status != 200:
        assert response.content_type == "application/problem+json"
        assert response.status < 500, tail
        return took, json.loads(tail)["type"].rpartition("/")[2]
    assert b'{"type":"end"' in tail, "the stream was broken off"
    status = json.loads(tail.splitlines()[-1])["status"]
    assert b"problems/internal" not in tail, tail[-500:]
    return took, status


async def attack(
    house: House,
    statements: Sequence[str],
    concurrency: int = 1,
    grace: float = GRACE,
    crowd: bool = False,
) -> None:
    """Every statement ends in time, and nobody beside them is kept waiting. In a crowd a query beside it may run out of
    time as well, and what each one's single calls take adds up."""
    patience = aiohttp.ClientTimeout(total=SECONDS + grace)
    waiting = list(reversed(statements))
    failures: list[str] = []
    took: dict[str, float] = {}
    became: Counter[str] = Counter()
    async with aiohttp.ClientSession(house.url, timeout=patience) as session, beside(house, session) as seen:

        async def worker() -> None:
            while waiting and not house.lost:
                statement = waiting.pop()
                try:
                    seconds, how = await ends(session, statement)
                    took[statement] = seconds
                    became[how] += 1
                except (aiohttp.ClientError, TimeoutError, AssertionError) as error:
                    failures.append(f"{statement[:100]}: {error!r}")

        async with asyncio.TaskGroup() as group:
            for _ in range(concurrency):
                group.create_task(worker())
        while not house.lost and not (seen.healthz and seen.small):
            await asyncio.sleep(0.05)
    print(
        f"{len(statements)} statements, {dict(became.most_common())}, each took {figures(list(took.values()))}; "
        f"beside them /healthz took {figures(seen.healthz)}, a small query {figures(seen.small)}; memory grew by "
        f"{seen.memory >> 20} MB"
    )
    for statement, seconds in sorted(took.items(), key=lambda t: t[1])[-5:] if crowd else ():
        print(f"{seconds:.2f} s: {statement[:150]}")
    if failures:
        house.process.kill()  # it may never end by itself
        house.lost = True
    assert not failures, failures[:10]
    assert not house.lost, "it took too much memory"
    late = [w for w in seen.wrong if crowd and "and needs more" in w]
    assert len(late) <= 0.2 * len(seen.small), late[:3]
    assert not [w for w in seen.wrong if w not in late], seen.wrong[:5]
    assert seen.memory < (4 * MEMORY if crowd else MEMORY)
    assert max(seen.healthz) < SECONDS + GRACE
    assert median(seen.healthz) < 0.5
    assert max(seen.small) < SECONDS + grace


def figures(times: Sequence[float]) -> str:
    if len(times) < 2:
        return f"{max(times, default=0):.2f} s"
    hundredths = quantiles(times, n=100, method="inclusive")
    return (
        f"{median(times):.3f} s (p99 {hundredths[98]:.2f} s, at most {max(times):.2f} s, {len(times)} times)"
    )


BOMBS = {
    "a long series": "SELECT count(*) FROM range(100000000000)",
    "a long series beside a relation": "SELECT count(*) FROM books, range(100000000000)",
    "a sum over a series": "SELECT (SELECT sum(range) FROM range(3000000000)) FROM books LIMIT 1",
    "a recursion without end": "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) "
    "SELECT count(*) FROM t",
    "a text that doubles": "WITH RECURSIVE t(n) AS (SELECT 'a' UNION ALL SELECT n || n FROM t) SELECT count(*) FROM t",
    "long texts in every row": "SELECT repeat(title, 200000) FROM books",
}


# One row of each takes gigabytes, or minutes, within a single call.
UNSTOPPABLE = {
    "a long text": "SELECT length(repeat('ab', 2000000000)) FROM books LIMIT 1",
    "a padded text": "SELECT lpad(title, 2147483647, 'x') FROM books",
    "longer texts in every row": "SELECT length(repeat(title, 2000000 + year)) FROM books",
    "a long list": "SELECT len(range(3000000000)) FROM books LIMIT 1",
    "a long list in every row": "SELECT len(range(3000000 + year)) FROM books",
    "a text that grows": "SELECT length(replace(replace(repeat('a', 40000), 'a', repeat('a', 300)), 'a', "
    "repeat(title, 9))) FROM books",
    "a distance of long texts": "SELECT levenshtein(repeat(title, 2000), repeat(isbn, 2000)) FROM books",
    "a distance in a condition": "SELECT title FROM books "
    "WHERE levenshtein(repeat(title, 2000), repeat(isbn, 2000)) > 1",
    "a distance that is joined by": "SELECT a.title FROM books a JOIN books b "
    "ON levenshtein(repeat(a.title, 2000), repeat(a.isbn, 2000)) = b.year",
}


# A billion rows or more, of nothing that anybody asked for.
BIG = ["range(100000000000)", "generate_series(1, 50000000000)", "range(7, 90000000000, 3)"]
AGGREGATES = [
    "count(*)",
    "sum(b.year)",
    "string_agg(b.title, ',')",
    "list(b.title)",
    "count(DISTINCT b.title || a.title)",
]
RELATIONS = ["books", "books", "prizes", "libraries"]
WIDE = ["repeat(title, {n})", "lpad(title, {n}, 'x')", "rpad(title, {n}, 'xy')", "repeat('ab', {n} + year)"]


def _crossed(r: Random) -> str:
    n = r.randint(3, 7)
    tables = ", ".join(f"books t{i}" for i in range(n))
    return f"SELECT {r.choice(['count(*)', '*', 't0.title', 'sum(t1.year)'])} FROM {tables}"


def _joined(r: Random) -> str:
    n = r.choice([20, 40, 64])
    how = r.choice(["JOIN", "LEFT JOIN"])
    tables = " ".join(f"{how} books t{i} ON t{i}.year = t{i - 1}.year" for i in range(1, n))
    return f"SELECT count(*) FROM books t0 {tables}"


def _deep(r: Random) -> str:
    n = r.choice([30, 150, 190, 199, 250, 2_000])
    a, b = r.choice(
        [
            ("(", ")"), ("abs(", ")"), ("-(", ")"), ("NOT (", ")"), ("CAST(", " AS INT)"), ("[",
            "]"), ("(SELECT ", ")"),
            ("{'a': ", "}"), ("CASE WHEN year > 1 THEN ", " END"), ("coalesce(", ", 1)"), ("- ", ""), ("NOT ", ""),
        ]
    )  # fmt: skip
    return f"SELECT {a * n}year{b * n} FROM books"


def _nested(r: Random) -> str:
    n = r.choice([20, 60, 150, 400])
    return f"SELECT * FROM {'(SELECT * FROM ' * n}books{')' * n}"


def _chained(r: Random) -> str:
    n = r.choice([100, 500, 2_000])
    return "SELECT " + r.choice([" + ", " || ", " OR ", " AND ", " - "]).join(["year"] * n) + " FROM books"


def _united(r: Random) -> str:
    n = r.choice([20, 100, 400])
    return r.choice([" UNION ", " UNION ALL ", " EXCEPT ", " INTERSECT "]).join(
        ["SELECT year FROM books"] * n
    )


def _named(r: Random) -> str:
    """Each twice as large as the one before."""
    n = r.choice([8, 16, 24, 40])
    ctes = ", ".join(f"c{i} AS (SELECT a.* FROM c{i - 1} a, c{i - 1} b)" for i in range(1, n))
    return f"WITH c0 AS (SELECT title FROM books), {ctes} SELECT count(*) FROM c{n - 1}"


def _listed(r: Random) -> str:
    n = r.choice([1_000, 4_000, 6_000, 30_000])
    return f"SELECT title FROM books WHERE year IN ({','.join(str(r.randint(0, 999)) for _ in range(n))})"


def _megabyte(r: Random) -> str:
    return f"SELECT '{'a' * r.choice([40_000, 500_000, 1_100_000])}' FROM books"


def _endless(r: Random) -> str:
    what = r.choice(
        ["r.*", "count(*)", "avg(r.stars)", "max(r.text)", "string_agg(r.text, ',')", "DISTINCT r.reviewer"]
    )
    after = "" if "(" in what else r.choice(["", " ORDER BY 1", " ORDER BY 1 LIMIT 3"])
    return f"SELECT {what} FROM books b JOIN reviews r ON r.isbn = b.isbn WHERE b.year > {r.randint(1900, 2000)}{after}"


def _ordered(r: Random) -> str:
    tail = r.choice(
        ["ORDER BY b.title, a.title", "ORDER BY random()", "ORDER BY a.title || b.title DESC LIMIT 5"]
    )
    return f"SELECT a.title, b.title FROM books a, books b, books c {tail}"


def _grouped(r: Random) -> str:
    by = r.choice(["1", "ALL", "a.title"])
    return f"SELECT a.title, {r.choice(AGGREGATES)} FROM books a, books b, books c GROUP BY {by}"


def _windowed(r: Random) -> str:
    what = r.choice(
        ["row_number()", "sum(b.year)", "list(b.title)", "string_agg(b.title, '')", "median(b.year)"]
    )
    over = r.choice(["ORDER BY b.title", "PARTITION BY a.year", "ORDER BY b.year ROWS UNBOUNDED PRECEDING"])
    return f"SELECT {what} OVER ({over}) FROM books a, books b{r.choice(['', ', books c'])}"


def _series(r: Random) -> str:
    what = r.choice(
        ["count(*)", "sum(t.v)", "max(t.v)", "*", "list(t.v)", "string_agg(t.v, '')", "count(DISTINCT t.v)"]
    )
    return f"SELECT {what} FROM {r.choice(['', 'books, '])}{r.choice(BIG)} AS t(v)"


def _series_in(r: Random) -> str:
    return f"SELECT title, (SELECT {r.choice(['sum', 'max', 'list'])}(v) FROM {r.choice(BIG)} AS t(v)) FROM books"


def _recursive(r: Random) -> str:
    grows = r.choice(["n + 1", "n", "n * 1.0000001", "n || 'a'"])
    begins = "'a'" if "||" in grows else "1"
    all_ = r.choice(["UNION ALL", "UNION ALL", "UNION"]) if grows != "n" else "UNION ALL"
    end = r.choice(["count(*) FROM t", "* FROM t", "max(n) FROM t", "count(*) FROM t, books"])
    return f"WITH RECURSIVE t(n) AS (SELECT {begins} {all_} SELECT {grows} FROM t) SELECT {end}"


def _branching(r: Random) -> str:
    return (
        "WITH RECURSIVE t(n) AS (SELECT title FROM books UNION ALL SELECT t.n FROM t, books) "
        f"SELECT {r.choice(['count(*)', 'max(n)', '*'])} FROM t"
    )


def _wide(r: Random) -> str:
    n = r.choice([1_000, 20_000])
    what = r.choice(WIDE).format(n=n)
    return (
        f"SELECT {r.choice(['length({})', '{}', 'md5({})', 'max({})', 'upper({})']).format(what)} FROM books"
    )


def _replaced(r: Random) -> str:
    told = "title"
    for _ in range(r.choice([3, 5, 7])):
        told = f"replace({told}, 'e', repeat('e', 6))"
    return f"SELECT length({told}) FROM books"


def _comprehended(r: Random) -> str:
    n = r.choice([1_000, 30_000])
    what = r.choice(
        [
            f"[x * 2 for x in range({n})]", f"list_transform(range({n}), lambda x: x + year)",
            f"len(range({n} + year))",
            f"list_sum(range({n} + year))", f"list_reduce(range({n} + year), lambda a, b: a + b)",
            "list_transform(range(100 + year), lambda x: range(x))", f"array_to_string(range({n} + year), ',')",
            f"len(list_concat(range({n} + year), range({n})))", f"list_distinct(range({n} + year))",
        ]
    )  # fmt: skip
    return f"SELECT {what} AS v FROM books"


def _unnested(r: Random) -> str:
    n = r.choice([1_000, 100_000])
    return r.choice(
        [
            f"SELECT unnest(range({n})) FROM books", f"SELECT count(*) FROM books, unnest(range({n}))",
            f"SELECT count(*) FROM (SELECT unnest(range({n} + year)) FROM books)",
            f"SELECT unnest(range(1000)), unnest(range({n})) FROM books",
        ]
    )  # fmt: skip


def _matched(r: Random) -> str:
    n = r.choice([20, 200])
    return r.choice(
        [
            f"SELECT title FROM books WHERE repeat('a', {n}00) SIMILAR TO '(a|aa)*b' OR title = ''",
            f"SELECT title FROM books WHERE regexp_matches(repeat(title, {n}00), '({'.*' * n})*x')",
            f"SELECT title FROM books WHERE repeat(title, {n}00) LIKE '{'%a' * n}%xyz'",
            f"SELECT regexp_replace(repeat(title, {n}00), '(.{{1,{n}}})*', 'x', 'g') FROM books",
            f"SELECT levenshtein(repeat(title, {n}), repeat(title, {n})) FROM books a",
            f"SELECT title FROM books WHERE regexp_matches(title, '{'(a?' * n}{')' * n}{{1000}}')",
            f"SELECT jaccard(repeat(title, {n}00), repeat(publisher, {n}00)) FROM books",
        ]
    )  # fmt: skip


def _uncastable(r: Random) -> str:
    return r.choice(
        [
            "SELECT CAST(title AS INTEGER) FROM books", "SELECT title::DATE FROM books",
            "SELECT 1 // (year - year) FROM books",
            "SELECT CAST(year * 1000000 AS TINYINT) FROM books", "SELECT year::UTINYINT FROM books ORDER BY 1",
            "SELECT sum(title::DOUBLE) FROM books", "SELECT error(title) FROM books", "SELECT sqrt(-year) FROM books",
            "SELECT 9223372036854775807 + year FROM books", "SELECT factorial(year) FROM books",
            "SELECT year::BIT FROM books",
            "SELECT strptime(title, '%Y') FROM books", "SELECT ln(year - year) FROM books",
            "SELECT chr(-year) FROM books",
            "SELECT date_trunc(title, DATE '2020-01-01') FROM books", "SELECT json(title) FROM books",
            "SELECT make_date(year, year, year) FROM books", "SELECT (SELECT year FROM books) FROM books",
        ]
    )  # fmt: skip


def _correlated(r: Random) -> str:
    what = r.choice(["count(*)", "max(b.title)", "sum(b.year)"])
    return (
        f"SELECT (SELECT {what} FROM books b, books c, books d WHERE b.year > a.year) FROM books a "
        f"WHERE EXISTS (SELECT 1 FROM books e WHERE e.year {r.choice(['>', '<', '<>'])} a.year)"
    )


def _unequal(r: Random) -> str:
    on = r.choice(
        ["a.title < b.title", "a.year <> b.year", "levenshtein(a.title, b.title) > 3", "a.title LIKE b.title"]
    )
    return f"SELECT {r.choice(['count(*)', '*'])} FROM books a JOIN books b ON {on} JOIN books c ON c.year <> a.year"


def _columns(r: Random) -> str:
    n = r.choice([500, 1_500, 3_000])
    return f"SELECT {', '.join(r.choice(['title', 'year + 1', 'isbn']) for _ in range(n))} FROM books"


def _cased(r: Random) -> str:
    n = r.choice([50, 300, 900])
    return f"SELECT CASE {' '.join(f'WHEN year = {i} THEN {i}' for i in range(n))} END FROM books"


def _valued(r: Random) -> str:
    n = r.choice([500, 3_000])
    return f"SELECT count(*) FROM books, (VALUES {', '.join(f'({i})' for i in range(n))}) v(x), books c"


def _sets(r: Random) -> str:
    return (
        f"SELECT {', '.join('abcde')}, count(*) FROM (SELECT isbn a, title b, author_id c, year d, publisher e "
        + (f"FROM books) GROUP BY {r.choice(['CUBE', 'ROLLUP', 'GROUPING SETS'])} (a, b, c, d, e)")
    )


def _aggregated(r: Random) -> str:
    n = r.choice([100, 1_000, 30_000])
    return f"SELECT {r.choice(['string_agg', 'list'])}(repeat(a.title, {n})) FROM books a, books b, books c"


def _garbage(r: Random) -> str:
    return r.choice(
        [
            "SELECT '" + "'" * r.randint(1, 999), "SELECT /*" * r.randint(1, 999), "SELECT $$" + "$" * r.randint(1, 99),
            ";" * 9_999, "SELECT \x00 FROM books",
            "SELECT title FROM books;" * r.randint(2, 500), '"' * r.randint(1, 999),
            "SELECT " + "\u202e" * 999 + " FROM books", "SELECT " + "," * 9_999, "SELECT 1e999999, 0x" + "F" * 5_000,
            f"SELECT {'9' * 30_000} FROM books", "SELECT " + "a." * 5_000 + "b FROM books", "SELECT \ud7ff\U0010ffff",
        ]
    )  # fmt: skip


TEMPLATES: list[Callable[[Random], str]] = [
    _crossed, _joined, _deep, _nested, _chained, _united, _named, _listed, _megabyte, _endless, _ordered, _grouped,
    _windowed, _series, _series_in, _recursive, _branching, _wide, _replaced, _comprehended, _unnested, _matched,
    _uncastable, _correlated, _unequal, _columns, _cased, _valued, _sets, _aggregated, _garbage,
]  # fmt: skip


def _refused() -> list[str]:
    """What would read files, the environment, settings, or the network."""
    calls = [
        "getenv('HOME')", "current_setting('temp_directory')", "getvariable('a')", "current_database()",
        "pg_sleep(5)", "sleep_ms(5000)", "current_user", "pg_backend_pid()", "txid_current()", "current_query()",
        "json_execute_serialized_sql('')", "nextval('a')", "setseed(0.5)", "write_log('a')",
        "has_table_privilege('a', 'b')",
    ]  # fmt: skip
    tables = [
        "'/etc/passwd'", "read_csv('/etc/passwd')", "read_text('/etc/passwd')", "read_blob('/proc/self/environ')",
        "glob('/*')", "read_json_auto('a.json')", "read_parquet('http://127.0.0.1/a.parquet')",
        "'http://127.0.0.1/a.csv'",
        '"/etc/hosts"', "'a.parquet'", "parquet_metadata('a.parquet')", "sniff_csv('/etc/passwd')",
        "duckdb_settings()",
        "duckdb_secrets()", "pragma_version()", "pragma_table_info('books')", "query('SELECT 1')",
        "query_table('books')",
        "sqlite_scan('a.db', 'a')", "postgres_scan('host=127.0.0.1', 'a', 'b')", "information_schema.tables",
        "pg_catalog.pg_class",
        "sqlite_master", "duckdb_tables", "main.books", "arrow_scan(1, 2, 3)", "repeat_row(1, num_rows := 9)",
        "test_all_types()",
        "python_map_function(1)", "seq_scan('books')", "which_secret('a', 'b')", "checkpoint()", "force_checkpoint()",
        "summary('books')", "json_execute_serialized_sql('')", "pandas_scan(1)",
    ]  # fmt: skip
    statements = [
        "COPY books TO '/tmp/a.csv'", "COPY (SELECT 1) TO '/tmp/a'", "ATTACH '/tmp/a.db'", "INSTALL httpfs",
        "LOAD httpfs",
        "SET memory_limit = '1TB'", "RESET memory_limit", "PRAGMA database_list", "CALL duckdb_settings()",
        "EXPORT DATABASE '/tmp'",
        "CREATE TABLE t (a INT)", "DROP TABLE books", "INSERT INTO books VALUES (1)", "SHOW TABLES", "DESCRIBE books",
        "EXPLAIN ANALYZE SELECT 1", "SELECT 1; SELECT 2", "IMPORT DATABASE '/etc'", "USE memory", "CHECKPOINT",
        "CREATE SECRET a (TYPE s3)", "SUMMARIZE books", "SELECT * INTO t FROM books", "/**/ATTACH 'a'",
        "FROM '/etc/passwd'",
        "WITH t AS (DELETE FROM books RETURNING *) SELECT * FROM t", "EXECUTE a", "VACUUM", "TABLE '/etc/passwd'",
        "BEGIN", "SELECT * FROM books TABLESAMPLE 10%", "PIVOT books ON year USING count(*)",
        "(SELECT 1); DROP TABLE books",
    ]  # fmt: skip
    inner = "SELECT title FROM books WHERE title IN (SELECT content FROM read_text('/etc/passwd'))"
    return [
        *(f"SELECT {call} FROM books" for call in calls),
        *(f"SELECT title FROM books ORDER BY {call.upper()}" for call in calls),
        *(f"SELECT * FROM {table}" for table in tables),
        *statements,
        inner,
        "SELECT (SELECT count(*) FROM glob('/*')) FROM books",
        "SELECT \"getenv\"('HOME') FROM books",
        "SELECT main.getenv('HOME') FROM books",
        "SELECT system.main.getenv('HOME') FROM books",
        "SELECT 'HOME'.getenv() FROM books",
        "SELECT list_transform(['HOME'], lambda x: getenv(x)) FROM books",
        "SELECT get/**/env('HOME') FROM books",
        "SELECT getenv/**/('HOME') FROM books",
        "SELECT list_aggregate(['HOME'], 'getenv') FROM books",
        "SELECT COLUMNS(*) FROM 'https://127.0.0.1/a.json'",
        "SELECT * FROM books JOIN '/etc/passwd' ON true",
    ]


@pytest.mark.parametrize("name", BOMBS)
async def test_a_bomb_is_put_out(house: House, name: str) -> None:
    await attack(house, [BOMBS[name]])


@pytest.mark.parametrize("name", UNSTOPPABLE)
async def test_a_bomb_of_one_call_is_put_out(house: House, name: str) -> None:
    await attack(house, [UNSTOPPABLE[name]])


@pytest.mark.parametrize("call", ["version()", "VERSION()"])
async def test_the_engines_version_is_not_told(house: House, call: str) -> None:
    said = {"sql": f"SELECT {call} FROM books"}
    async with (
        aiohttp.ClientSession(house.url) as session,
        session.post("/v1/queries", json=said) as response,
    ):
        assert response.status == 400


async def test_nothing_of_the_machine_is_read(house: House) -> None:
    async with aiohttp.ClientSession(house.url) as session:
        for statement in _refused():
            async with session.post("/v1/queries", json={"sql": statement}) as response:
                assert response.status == 400, (statement, await response.text())
                told = await response.json(content_type="application/problem+json")
                assert "/etc/passwd:" not in json.dumps(told)
                assert "root:" not in json.dumps(told)
        async with session.post("/v1/queries", json={"sql": BOOKS}) as response:
            assert response.status == 201


@pytest.mark.timeout(600)
async def test_hundreds_that_mean_harm(house: House) -> None:
    """`MEDIATOR_HOSTILE=500` draws so many of them; each is refused or ends, and the server lives."""
    random = Random(500)
    many = int(os.environ.get("MEDIATOR_HOSTILE", "60"))
    statements = [TEMPLATES[n % len(TEMPLATES)](random) for n in range(many)]
    random.shuffle(statements)
    await attack(house, statements, concurrency=4 if many < 500 else 8, grace=CROWD, crowd=True)
