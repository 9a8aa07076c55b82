"""Above the cells Spark does what DuckDB does, wherever it is said to, and else says why it does not."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pytest
import sqlglot
from pyspark.sql import SparkSession
from sqlglot import exp

from fixtures import Web
from mediator.answering import Mediator
from mediator.query import duck
from mediator.query.model import SqlStage
from pipeline.sparksql import conditions, gathering, kinds, numbers, selects, texts
from pipeline.sparksql.agreed import agreed
from pipeline.sparksql.errors import NotAgreed
from pipeline.sparksql.rules import AGGREGATES, CALLS, RULES
from pipeline.sparksql.settings import apart
from tests.pipeline.agreeing import Both, Disagree, Effort, compare, same, searched
from tests.pipeline.drawn_sql import Drawing, Drawn, every, table
from tests.pipeline.kit import SHARED

SEEDS = int(os.environ.get("MEDIATOR_SPARK_SQL_SEEDS", "1"))
TABLES = {"block": every("b"), "step": every("o")}
SCHEMAS = {name: rows.schema for name, rows in TABLES.items()}
NAMES = {field.name.removeprefix("b."): f'"block"."{field.name}"' for field in SCHEMAS["block"]}
# Kinds of nodes that are written without a rule.
_WINDOWS = set(gathering._RANKS) | set(gathering._PLACES) | {exp.Ntile}


@pytest.fixture(scope="module")
def both(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Both:
    """All values of all types, in both engines."""
    return Both(apart(spark), TABLES, tmp_path_factory.mktemp("tables"))


# The search.


@SHARED
@pytest.mark.timeout(300 + 60 * SEEDS)
def test_spark_agrees_with_duckdb(spark: SparkSession, tmp_path: Path) -> None:
    effort = Effort()
    session = apart(spark)
    wrong = [w for seed in range(SEEDS) for w in searched(session, seed, tmp_path, effort)]
    assert not wrong, "\n\n".join(wrong)
    assert effort.agreed > effort.statements * 0.8
    assert effort.over + effort.spared <= max(1, effort.statements * 0.02)
    assert effort.rows


def _kinds(sql: str) -> set[object]:
    nodes = list(sqlglot.parse_one(sql, dialect="duckdb").walk())
    return {type(n) for n in nodes} | {n.name.lower() for n in nodes if isinstance(n, exp.Anonymous)}


def covering() -> list[str]:
    """Drawn statements in which everything is that is on a list."""
    wanted: set[object] = {*RULES, *AGGREGATES, *CALLS, *_WINDOWS}
    drawing, found = Drawing(Random(0)), []
    for _ in range(3000):
        drawn = drawing.statement()
        if not drawn.ordered and (new := _kinds(drawn.sql) & wanted):
            try:
                stage = SqlStage("answer", drawn.sql, tuple(SCHEMAS), duck.shape(drawn.sql, SCHEMAS))
                agreed(stage, SCHEMAS)
            except (NotAgreed, duckdb.Error):
                continue
            wanted -= new
            found.append(drawn.sql)
    assert not wanted, f"no statement has {wanted}"
    return found


@SHARED
@pytest.mark.timeout(600)
def test_everything_on_the_lists_is_searched(spark: SparkSession, tmp_path: Path) -> None:
    tables = {"block": table(Random(5), "b"), "step": table(Random(6), "o")}
    there, effort = Both(apart(spark), tables, tmp_path), Effort()
    for sql in covering():
        compare(there, Drawn(sql), effort)
    assert effort.agreed > effort.failed


# What the search has found.


CASES = {
    "count_if of nothing but NULLs": 'COUNT_IF("block"."b.b") FILTER (WHERE "block"."b.b" IS NULL)',
    "a zero below zero, of ceil": '"block"."b.q" / CEIL("block"."b.x")',
    "a zero below zero, of round": '1 / ROUND("block"."b.x")',
    "a zero below zero, of floor": '1 / FLOOR("block"."b.f64")',
    "the remainder of an overflow": '"block"."b.i8" % -1',
}


@SHARED
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", CASES)
def test_it_was_found(both: Both, name: str) -> None:
    effort = Effort()
    compare(both, Drawn(f'SELECT {CASES[name]} AS v FROM "block"'), effort)
    assert (effort.agreed, effort.failed) == ((0, 1) if "overflow" in name else (1, 0))


# What is too much for DuckDB is too much for Spark.


TOO_MUCH = (
    "{i32} + 1", "{i64} - 2", "{i8} * {i8}", "{i64} * 3", "- {i8}", "- {i32}", "ABS({i16})", "{i8} // -1",
    "{i64} // -1", "{i16} % -1", "{n} // 0", "{n} % 0", "{n} % {n}", "CAST({i64} AS INTEGER)", "CAST({f64} AS BIGINT)",
    "CAST({x} AS TINYINT) * {i8}", "CAST({d18} AS SMALLINT)", "CAST({d5} AS DECIMAL(3,1))",
    "CAST({i32} AS DECIMAL(5,2))", "{d18} * 1000000", "{i16} + {i8}",
)  # fmt: skip


@SHARED
@pytest.mark.timeout(300)
@pytest.mark.parametrize("item", TOO_MUCH)
def test_what_is_too_much_is_an_error_in_both(both: Both, item: str) -> None:
    effort = Effort()
    compare(both, Drawn(f'SELECT {item.format(**NAMES)} AS v FROM "block"'), effort)
    assert effort.failed == 1


# Each rewriting is needed.


def _naive_like(pattern: str, escape: str) -> str:
    return pattern


def _naive_sum(piece: kinds.Piece, type_: str, distinct: str, tail: str) -> str:
    return f"SUM({distinct}{piece.spark}){tail}"


_COLUMN = '"block"."b.{}"'.format
MUTATIONS: dict[str, tuple[Any, str, Any, str]] = {
    "LIKE knows no backslash": (conditions, "backslashed", _naive_like, rf"{_COLUMN('s')} LIKE 'a\_b'"),
    "LIKE ... ESCAPE": (conditions, "backslashed", _naive_like, f"{_COLUMN('s')} LIKE '%!%%' ESCAPE '!'"),
    "a division by zero": (
        numbers, "divided", lambda a, b: f"TRY_DIVIDE({a.spark}, {b.spark})", f"{_COLUMN('x')} / {_COLUMN('q')}",
    ),
    "the remainder": (numbers, "remainder", lambda a, b, _: f"({a} % {b})", f"{_COLUMN('i8')} % -1"),
    "rounding": (numbers, "rounded", lambda v, n: f"ROUND({v}, {n})", f"ROUND({_COLUMN('x')}, 2)"),
    "whole numbers": (numbers, "to_whole", lambda v, f: f"CAST({f}({v}) AS DOUBLE)", f"FLOOR({_COLUMN('f64')})"),
    "casts that round": (kinds, "_how", lambda *_: "{}", f"CAST({_COLUMN('x')} AS INTEGER)"),
    "casts of decimals that round": (kinds, "_how", lambda *_: "{}", f"CAST({_COLUMN('d5')} AS INTEGER)"),
    "spaces": (texts, "_SPACES", " ", f"TRIM({_COLUMN('s')})"),
    "letters": (texts, "_spelt", None, f"UPPER({_COLUMN('s')})"),
    "concat of NULLs": (texts, "_or_nothing", str, f"CONCAT({_COLUMN('s')}, 'x')"),
    "counts of nothing": (
        gathering, "_added", "COUNT_IF({})".format, f"COUNT_IF({_COLUMN('b')}) FILTER (WHERE {_COLUMN('b')} IS NULL)",
    ),
    "sums of integers": (gathering, "summed", _naive_sum, f"SUM({_COLUMN('i64')})"),
}  # fmt: skip


def _mutated(monkeypatch: pytest.MonkeyPatch, room: Any, name: str, instead: Any) -> None:
    if name == "_spelt":
        rule = (
            frozenset({"this"}),
            lambda writer, node: kinds.Piece(f"UPPER({writer.piece(node.this).spark})", "VARCHAR"),
        )
        monkeypatch.setitem(RULES, exp.Upper, rule)
    else:
        monkeypatch.setattr(room, name, instead)


def _wrong(both: Both, drawn: Drawn) -> bool:
    """Whether Spark gives something else, or one of them fails alone."""
    effort = Effort()
    try:
        compare(both, drawn, effort)
    except Disagree:
        return True
    return effort.over + effort.spared > 0


@SHARED
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", MUTATIONS)
def test_a_rewriting_is_needed(both: Both, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    room, function, instead, sql = MUTATIONS[name]
    drawn = Drawn(f'SELECT {sql} AS v FROM "block"')
    assert not _wrong(both, drawn)
    _mutated(monkeypatch, room, function, instead)
    assert _wrong(both, drawn)


@SHARED
@pytest.mark.timeout(300)
def test_where_nulls_go_is_said(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = Drawn('SELECT "block"."b.n" AS v FROM "block" ORDER BY v', True)
    assert not _wrong(both, drawn)
    monkeypatch.setattr(selects, "ordered", lambda spark, _: spark)
    assert _wrong(both, drawn)


@SHARED
@pytest.mark.timeout(300)
def test_settings_of_a_user_are_not_ours(spark: SparkSession, both: Both) -> None:
    sql = """SELECT '${x}' || "block"."b.s" AS v, "block"."b.i32" + 1 AS w FROM "block" """
    effort = Effort()
    compare(both, Drawn(sql), effort)  # overflows in both
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        compare(both, Drawn(sql), effort)
        assert apart(spark).conf.get("spark.sql.ansi.enabled") == "true"
    finally:
        spark.conf.set("spark.sql.ansi.enabled", str(before))
    assert effort.failed == 2


# What is not agreed on.


REFUSED = {
    "MEDIAN({n}) AS v": "median(...)",
    "STRING_AGG({s}, ',' ORDER BY {s}) AS v": "group_concat(...)",
    "STDDEV({n}) AS v": "stddev(...)",
    "LIST({s}) AS v": "array_agg(...)",
    "{s} ILIKE 'a' AS v": "ILIKE",
    "REGEXP_MATCHES({s}, 'a') AS v": "regexp_like(...)",
    "{s} LIKE {t} AS v": "a pattern that is not a constant text",
    "REVERSE({s}) AS v": "reverse(...)",
    "SQRT({x}) AS v": "sqrt(...)",
    "CAST({x} AS VARCHAR) AS v": "DOUBLE cast to VARCHAR",
    "CAST({s} AS INTEGER) AS v": "VARCHAR cast to INTEGER",
    "TRY_CAST({s} AS DATE) AS v": "VARCHAR cast to DATE",
    "CAST({n} AS UBIGINT) AS v": "UBIGINT",
    "{u8} + 1 AS v": "UTINYINT + INTEGER",
    "{at} - {at} AS v": "TIMESTAMP - TIMESTAMP",
    "{d} + INTERVAL 1 MONTH AS v": "INTERVAL",
    "CAST({at} AS TIME) AS v": "no type TIME",
    "{x} % 2 AS v": "DOUBLE %",
    "{x} // 2 AS v": "DOUBLE //",
    "ROUND({f32}, 1) AS v": "round(...) of FLOAT",
    "SUBSTRING({s}, 0, 2) AS v": "begins before the first letter",
    "{s}[1] AS v": "BRACKET",
    "[{n}] AS v": "array(...)",
    "{{'a': {n}}} AS v": "struct(...)",
    "{s} || {d} AS v": "DATE beside text",
    "RANDOM() AS v": "rand(...)",
    "ROW_NUMBER() OVER () AS v": "in no order",
    "SUM({n}) OVER (ORDER BY {n} RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) AS v": "a frame in RANGE",
    "SUM({n}) OVER (ORDER BY {n} ROWS BETWEEN 1 PRECEDING AND CURRENT ROW EXCLUDE TIES) AS v": "exclude",
    "COUNT(DISTINCT {n}) OVER () AS v": "DISTINCT in a window's",
    "ARG_MAX({s}, {n}) AS v": "arg_max(...)",
    "FIRST({s}) AS v": "first",
}  # fmt: skip


def _reason(sql: str) -> str:
    stage = SqlStage("answer", sql, tuple(SCHEMAS), duck.shape(sql, SCHEMAS))
    with pytest.raises(NotAgreed) as caught:
        agreed(stage, SCHEMAS)
    return str(caught.value)


@pytest.mark.parametrize("item", REFUSED)
def test_what_is_on_no_list_is_refused(item: str) -> None:
    assert REFUSED[item].lower() in _reason(f'SELECT {item.format(**NAMES)} FROM "block"').lower()


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ('SELECT DISTINCT ON ("b.g") "b.g" AS g FROM "block"', "DISTINCT with on"),
        ('SELECT "b.g" AS g, COUNT(*) AS n FROM "block" GROUP BY ROLLUP ("b.g")', "ROLLUP"),
        ('SELECT "b.g" AS g FROM "block" LIMIT 40%', "LIMIT with"),
        (
            'SELECT "b.g" AS g FROM "block" WHERE EXISTS (SELECT 1 FROM "step" WHERE EXISTS '
            '(SELECT 1 FROM "step" AS s WHERE s."o.g" = "block"."b.g"))',
            "the column block.b.g",
        ),
        ('SELECT "b.g" AS g FROM "block" LIMIT (SELECT 2)', "LIMIT of more than a number"),
        ('SELECT "b.g" AS g FROM "block" UNION BY NAME SELECT "o.g" AS g FROM "step"', "by_name"),
        ('SELECT "b.g" AS g FROM "block" POSITIONAL JOIN "step"', "method"),
        ('SELECT x."g" AS g FROM "block", LATERAL (SELECT "block"."b.g" AS g) AS x', "LATERAL"),
        ('SELECT u.v AS v FROM "block", UNNEST([1, 2]) AS u(v)', "unnest"),
        ('WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 3) SELECT n FROM t', "recursive"),
        (
            'WITH x AS (SELECT "b.n" AS n FROM "block" LIMIT 3) SELECT a.n AS n FROM x AS a CROSS JOIN x AS c',
            "read twice",
        ),
        (
            'WITH x AS (SELECT "b.n" AS n FROM "block" LIMIT 3), y AS (SELECT x.n AS m FROM x) '
            "SELECT a.m AS n FROM y AS a CROSS JOIN y AS c",
            "read twice",
        ),
        ('SELECT "b.n" AS "b.g" FROM "block" ORDER BY "b.g"', "not of one table"),
        ('SELECT UNNEST([1, 2]) AS u, MAX("b.n") AS m FROM "block"', "explode"),
        ('SELECT "b.g" AS x FROM "block" WHERE EXISTS (SELECT UNNEST([]::INT[]) AS u FROM "step")', "explode"),
        ('SELECT NULL AS g FROM "block"', "a column of no type"),
        ('SELECT g AS g FROM (VALUES (1)) AS t(g)', "VALUES"),
    ],
)  # fmt: skip
def test_what_is_in_no_statement_is_refused(sql: str, reason: str) -> None:
    assert reason in _reason(sql)


MEMBER = '"b.n" IN (SELECT "o.n" FROM "step")'


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT {} AS z FROM block",
        "SELECT {} AS z, COUNT(*) AS n FROM block GROUP BY 1",
        'SELECT "b.g" AS g FROM block WHERE ({}) IS NULL OR "b.g" = 1',
        'SELECT "b.g" AS g FROM block WHERE COALESCE({}, TRUE)',
        'SELECT "b.g" AS g FROM block WHERE NOT ({} AND "b.g" = 1)',
        'SELECT "b.g" AS g FROM block ORDER BY {} NULLS FIRST, g',
        "SELECT COUNT(*) FILTER (WHERE NOT {}) AS n FROM block",
    ],
)
def test_where_spark_makes_false_of_null_it_is_not_asked(sql: str) -> None:
    assert "where it may be NULL" in _reason(sql.format(MEMBER))


@pytest.mark.parametrize("condition", ["{}", "NOT {}", '"b.g" = 1 OR (NOT ({}) AND "b.g" = 2)'])
def test_where_null_is_as_good_as_false_it_is(condition: str) -> None:
    sql = f'SELECT "b.g" AS g FROM block WHERE {condition.format(MEMBER)}'
    stage = SqlStage("answer", sql, ("block", "step"), duck.shape(sql, SCHEMAS))
    assert " IN (SELECT" in agreed(stage, SCHEMAS).sql


def test_a_type_that_spark_has_not_is_refused() -> None:
    schema = pa.schema([("a", pa.uint64()), ("b", pa.int32())])
    stage = SqlStage("answer", 'SELECT MAX("r"."a") AS m FROM "r"', ("r",), pa.schema([("m", pa.uint64())]))
    with pytest.raises(NotAgreed, match="Spark has no type UBIGINT"):
        agreed(stage, {"r": schema})


# Queries.


QUERIES = {
    """SELECT a.name, COUNT(*) AS n, SUM(o.price) AS s, AVG(o.price) AS m
       FROM books b JOIN authors a ON a.id = b.author_id JOIN offers o ON o.isbn = b.isbn
       GROUP BY a.name HAVING COUNT(*) > 1 ORDER BY n DESC, a.name""": True,
    "SELECT b.title, o.price FROM books b LEFT JOIN offers o ON o.isbn = b.isbn AND o.price < 10": False,
    "SELECT UPPER(title) AS t, isbn FROM books ORDER BY t DESC, isbn LIMIT 7 OFFSET 2": True,
    "SELECT title, isbn FROM books ORDER BY title, isbn": True,
    "SELECT MEDIAN(year) AS m, MAX(isbn) AS i FROM books": False,
}


@SHARED
@pytest.mark.timeout(300)
@pytest.mark.parametrize("sql", QUERIES)
async def test_a_query_gives_what_it_gives_locally(
    spark: SparkSession, calm: Web, sql: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)

    async def answered(**settings: Any) -> list[tuple[object, ...]]:
        rows: list[tuple[object, ...]] = []
        async with Mediator(calm.catalog) as mediator, mediator.answering(sql, **settings) as answers:
            async for batch in answers:
                rows += zip(*(c.to_pylist() for c in batch.columns), strict=True)
        assert answers.report.complete
        return rows

    there, here = await answered(engine="spark", checkpoint=str(tmp_path / "spread")), await answered()
    assert here
    assert ("in one process" in caplog.text) == ("MEDIAN" in sql)
    same(there, here, Drawn(sql, QUERIES[sql], rounded=True))
