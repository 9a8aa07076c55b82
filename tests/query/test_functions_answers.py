"""Functions that callers bring along, wherever SQL takes an expression: the answers are what DuckDB finds with the same
functions, over the same rows."""

from __future__ import annotations

import asyncio
from collections import Counter

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from bench.memory import Memory, catalog_of
from fixtures import Serving, book_trade_web
from mediator.answering import Mediator, answer, answering, explain
from mediator.assembly import Settings
from mediator.catalog.delay import DELAY
from mediator.catalog.functions import Function, function
from mediator.errors import CatalogError, FunctionFailed, MediatorError, TypeMismatch
from mediator.query.functions import _name_of, shown
from sources import load_book_trade

TABLES = {
    "u": pa.table(
        {
            "k": range(60),
            "a": [None if n % 13 == 5 else n % 10 for n in range(60)],
            "s": [f"N{n % 7}" for n in range(60)],
        }
    ),
    "v": pa.table({"a": range(0, 40, 2), "s": [f"n{n % 9}" for n in range(20)]}),
}
CATALOG = catalog_of(TABLES, 16)


@function([int], int)
def twice(values: pa.Array) -> pa.Array:
    return pc.multiply(values, 2)


@function([int], bool, by_row=True)
def is_odd(value: int) -> bool:
    return value % 2 == 1


@function([str, str], float, seconds=1e-5)
def alike(left: pa.Array, right: pa.Array) -> pa.Array:
    return pc.cast(pc.equal(pc.utf8_lower(left), pc.utf8_lower(right)), pa.float64())


@function([int], int, by_row=True)
def broken(value: int) -> int:
    return 1 // (value - 7)


FUNCTIONS = (twice, is_odd, alike, broken)

STATEMENTS = [
    "SELECT k, twice(a), twice(twice(a)) + 1 FROM u",
    "SELECT k FROM u WHERE twice(a) < 9",
    "SELECT k FROM u WHERE twice(a) < 9 AND is_odd(k) AND NOT is_odd(a)",
    "SELECT k FROM u WHERE twice(a) BETWEEN 4 AND 9 OR is_odd(k)",
    "SELECT k FROM u WHERE twice(a) IS NULL",
    "SELECT k FROM u WHERE twice(a) IN (2, 4) AND a = twice(1)",
    "SELECT k FROM u WHERE a = twice(2)",
    "SELECT u.k, v.a FROM u JOIN v ON twice(u.a) = v.a",
    "SELECT u.k, v.a FROM u JOIN v ON twice(u.a) = twice(v.a) AND is_odd(u.k)",
    "SELECT u.k, v.a FROM u JOIN v ON alike(u.s, v.s) > 0.5",
    "SELECT u.k, v.a FROM u, v WHERE u.a = v.a AND alike(u.s, v.s) < 0.5 AND twice(u.k + v.a) < 60",
    "SELECT u.k, v.a FROM u LEFT JOIN v ON twice(u.a) = v.a AND is_odd(u.k)",
    "SELECT k FROM u WHERE EXISTS (SELECT 1 FROM v WHERE v.a = twice(u.a))",
    "SELECT k, (SELECT max(twice(v.a)) FROM v WHERE v.a = u.a) FROM u",
    "SELECT twice(a) AS t, count(*), sum(twice(k)) FROM u GROUP BY t HAVING is_odd(count(*))",
    "SELECT DISTINCT is_odd(a) FROM u",
    "SELECT k FROM u ORDER BY twice(a) DESC NULLS LAST, k LIMIT 7",
    "SELECT x FROM (SELECT twice(a) AS x, k FROM u) AS q WHERE x > 3 AND x < 12",
    "WITH w AS (SELECT twice(a) AS x FROM u) SELECT w.x, v.a FROM w JOIN v ON w.x = v.a WHERE is_odd(v.a + 1)",
    "SELECT twice(a) FROM u UNION ALL SELECT twice(a) FROM v",
    "SELECT k, sum(twice(a)) OVER (ORDER BY k) FROM u",
    "SELECT CASE WHEN is_odd(k) THEN twice(k) ELSE k END FROM u",
    "SELECT count(*) FILTER (WHERE is_odd(k)) FROM u",
    "SELECT k, TRY(broken(k)) FROM u",
]


def rows(table: pa.Table) -> Counter[tuple[object, ...]]:
    return Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))


def truth(sql: str) -> pa.Table:
    """What DuckDB alone finds, with the plain functions."""
    with duckdb.connect() as connection:
        for name, table in TABLES.items():
            connection.register(name, table)
        connection.create_function("twice", lambda v: 2 * v, ["BIGINT"], "BIGINT")
        connection.create_function("is_odd", lambda v: v % 2 == 1, ["BIGINT"], "BOOLEAN")
        connection.create_function("broken", lambda v: 1 // (v - 7), ["BIGINT"], "BIGINT")
        connection.create_function(
            "alike", lambda x, y: float(x.lower() == y.lower()), ["VARCHAR", "VARCHAR"], "DOUBLE"
        )
        return connection.sql(sql).to_arrow_table()


async def asked(mediator: Mediator, sql: str) -> pa.Table:
    async with mediator.answering(sql) as answers:
        return pa.Table.from_batches([batch async for batch in answers], answers.schema)


def run(sql: str, *functions: Function, settings: Settings | None = None) -> pa.Table:
    async def main() -> pa.Table:
        async with Mediator(
            CATALOG, settings, transport=Memory(), threads=2, functions=functions
        ) as mediator:
            return await asked(mediator, sql)

    return asyncio.run(main())


def test_wherever_sql_takes_an_expression() -> None:
    async def main() -> list[pa.Table]:
        async with Mediator(CATALOG, transport=Memory(), functions=FUNCTIONS) as mediator:
            return [await asked(mediator, sql) for sql in STATEMENTS]

    for sql, found in zip(STATEMENTS, asyncio.run(main()), strict=True):
        expected = truth(sql)
        assert rows(found) == rows(expected), sql
        assert found.schema.names == expected.schema.names


@pytest.mark.parametrize("policy", ["rank", "lottery", "random", "fixed"])
@pytest.mark.parametrize("slice", [0.0, 1.0])
def test_by_any_policy_and_row_by_row(policy: str, slice: float) -> None:
    where = "u.a = v.a AND alike(u.s, v.s) < 0.5 AND twice(u.k) < 60 AND delay(u.a, 1) > 0"
    sql = f"SELECT u.k, v.a FROM u, v WHERE {where}"
    found = run(sql, *FUNCTIONS, DELAY, settings=Settings(policy=policy, slice=slice))
    assert found.num_rows
    assert rows(found) == rows(truth(sql.replace("delay(u.a, 1)", "u.a")))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT broken(k) FROM u",
        "SELECT k FROM u WHERE broken(k) = 0",
        "SELECT k FROM u WHERE broken(k) + k > 0",
        "SELECT u.k FROM u JOIN v ON broken(u.k) = v.a",
        "SELECT u.k FROM u JOIN v ON broken(u.k + v.a) = 1",
        "SELECT max(broken(k)) FROM u GROUP BY a",
        "SELECT k FROM u ORDER BY broken(k)",
        "SELECT k FROM u WHERE a = (SELECT max(broken(v.a + 1)) FROM v)",
        "SELECT a FROM u WHERE a = broken(7)",
    ],
)
def test_one_that_fails_ends_its_query_with_its_name_and_no_other(sql: str) -> None:
    async def main() -> pa.Table:
        async with Mediator(CATALOG, transport=Memory(), functions=FUNCTIONS) as mediator:
            with pytest.raises(
                FunctionFailed, match=r"^the function broken failed: ZeroDivisionError: .*zero$"
            ):
                await asked(mediator, sql)
            return await asked(mediator, "SELECT k FROM u WHERE twice(k) < 6 AND broken(a + 10) = 0")

    assert rows(asyncio.run(main())).total() == 3


@pytest.mark.parametrize(
    "sql", ["SELECT k FROM u WHERE frail(k) = 0", "SELECT u.k FROM u, v WHERE frail(u.k + v.a) = 0"]
)
def test_one_that_fails_beside_the_build_or_a_probe_leaves_the_stem_as_it_should_be(sql: str) -> None:
    """It is said to cost nothing, so that it is called for rows as they come, or for pairs as they are found."""
    frail = Function("frail", (pa.int64(),), pa.int64(), broken.call, by_row=True, seconds=0)

    async def main() -> tuple[pa.Table, pa.Table]:
        async with Mediator(CATALOG, transport=Memory(), functions=[frail]) as mediator:
            with pytest.raises(FunctionFailed, match="the function frail failed: ZeroDivisionError"):
                await asked(mediator, sql)
            return await asked(mediator, "SELECT * FROM u"), await asked(mediator, "SELECT * FROM v")

    for found, name in zip(asyncio.run(main()), ("u", "v"), strict=True):
        assert rows(found) == rows(TABLES[name])


def test_a_value_that_is_of_no_type_of_its_is_told() -> None:
    with pytest.raises(TypeMismatch, match="Could not convert string 'x'"):
        run("SELECT twice('x') FROM u", twice)


def test_mediators_in_one_process_have_their_own() -> None:
    plus = function([int], int, name="f")(lambda values: pc.add(values, 1))
    minus = function([int], int, name="f")(lambda values: pc.subtract(values, 1))
    sql = "SELECT f(k) AS f, v.a FROM u JOIN v ON f(u.k) = v.a WHERE f(k) + 0 > 1"

    async def main() -> list[pa.Table]:
        async with (
            Mediator(CATALOG, transport=Memory(), functions=[plus]) as one,
            Mediator(CATALOG, transport=Memory(), functions=[minus]) as other,
            asyncio.TaskGroup() as group,
        ):
            tasks = [group.create_task(asked(m, sql)) for m in (one, other) * 4]
        return [task.result() for task in tasks]

    found = [sorted(t["f"].to_pylist()) for t in asyncio.run(main())]
    assert found == [list(range(2, 39, 2))] * 8
    kept = [run("SELECT k FROM u WHERE f(k) = 5", f)["k"].to_pylist() for f in (plus, minus)]
    assert kept == [[4], [6]]


def test_queries_with_different_functions_share_a_stem() -> None:
    """A join key is kept with a relation's rows, which other queries find; one of another function is another."""
    catalog = CATALOG.knowing([twice])

    async def main() -> tuple[pa.Table, pa.Table]:
        async with Mediator(catalog, transport=Memory(), functions=[is_odd]) as mediator:
            sql = "SELECT u.k FROM u JOIN v ON twice(u.k) = v.a"
            return await asked(mediator, sql), await asked(mediator, sql)

    first, second = asyncio.run(main())
    assert sorted(first["k"].to_pylist()) == sorted(second["k"].to_pylist()) == list(range(20))


def test_every_way_to_ask_takes_functions() -> None:
    web = book_trade_web(40)
    shout = Function("shout", (pa.string(),), pa.string(), str.upper, by_row=True, seconds=1e-3)
    sql = "SELECT shout(title) AS t FROM books WHERE shout(title) LIKE '%E%'"
    with Serving(web) as served:
        catalog = load_book_trade(served.url)

        async def collected() -> list[str]:
            async with answering(sql, catalog, functions=[shout]) as answers:
                return [text async for batch in answers for text in batch["t"].to_pylist()]

        table, report = answer(sql, catalog, functions=[shout])
        again = asyncio.run(collected())
    titles = [t for t in web.tables["books"]["title"].to_pylist() if t is not None and "E" in t.upper()]
    assert report.complete
    assert titles
    assert sorted(table["t"].to_pylist()) == sorted(again) == sorted(t.upper() for t in titles)
    lines = explain(sql, catalog, functions=[shout])
    assert any(
        "shout(books.title) LIKE '%E%': a module of its own, as shout is said to cost" in line
        for line in lines
    )
    assert any('shout("' in line for line in lines)  # under its own name in what DuckDB runs
    assert not any("__user" in line for line in lines)


def test_a_name_of_duckdb_is_refused_when_the_mediator_is_made() -> None:
    with pytest.raises(CatalogError, match="the function 'upper' cannot be called so: DuckDB has a function"):
        Mediator(CATALOG, functions=[function([str], str, name="upper")(pc.utf8_upper)])
    with pytest.raises(MediatorError, match="two functions 'twice'"):
        Mediator(CATALOG.knowing([twice]), functions=[function([int], int, name="twice")(abs)])


def test_only_our_own_names_are_put_back() -> None:
    assert shown("""SELECT "made_by__user1" FROM t WHERE s = 'abc__user2'""") == (
        """SELECT "made_by__user1" FROM t WHERE s = 'abc__user2'"""
    )
    inner = _name_of(is_odd)
    assert shown(f"{inner}(a) AND {inner.upper()}(b)") == "is_odd(a) AND is_odd(b)"
