"""Runs a statement in both engines, and compares."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import sqlglot
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from sqlglot import exp

from mediator.errors import MediatorError
from mediator.output.finish import finisher
from mediator.query import duck
from mediator.query.model import SqlStage
from pipeline.sparksql import parquet
from pipeline.sparksql.agreed import agreed
from pipeline.sparksql.errors import NotAgreed
from tests.pipeline.drawn_sql import Drawn, statements, table

Row = tuple[object, ...]
_ROUNDED = 1e-13  # of a value that was added up

_TOO_LARGE = {
    "ARITHMETIC_OVERFLOW",
    "BINARY_ARITHMETIC_OVERFLOW",
    "CAST_OVERFLOW",
    "NUMERIC_VALUE_OUT_OF_RANGE",
    "DIVIDE_BY_ZERO",
}


class Disagree(AssertionError):
    """Spark gives what DuckDB does not."""


@dataclass
class Effort:
    statements: int = 0
    rows: int = 0
    agreed: int = 0
    failed: int = 0  # in both
    spared: int = 0  # failed in DuckDB alone, over a value that Spark has not looked at: `NULL + 1 // 0`
    over: int = (
        0  # in Spark alone, which reckons also with rows that are left out later; DuckDB does those then
    )
    refused: Counter[str] = field(default_factory=Counter)
    kinds: set[type[exp.Expr]] = field(default_factory=set)
    calls: set[str] = field(default_factory=set)

    def saw(self, sql: str) -> None:
        for node in sqlglot.parse_one(sql, dialect="duckdb").walk():
            self.kinds.add(type(node))
            if isinstance(node, exp.Anonymous):
                self.calls.add(node.name.lower())


class Both:
    """Two tables, in both engines."""

    def __init__(self, session: SparkSession, tables: Mapping[str, pa.Table], folder: Path) -> None:
        self._session, self.tables = session, tables
        folder.mkdir(parents=True, exist_ok=True)
        for number, (name, rows) in enumerate(tables.items()):
            path = folder / f"{name}.parquet"
            pq.write_table(rows, path)
            parquet.read(session, [str(path)], rows.schema).createOrReplaceTempView(f"r{number}")

    def stage(self, sql: str) -> SqlStage:
        schemas = {name: rows.schema for name, rows in self.tables.items()}
        return SqlStage("answer", sql, tuple(self.tables), duck.shape(sql, schemas))

    def in_duckdb(self, stage: SqlStage) -> list[Row]:
        running = finisher(stage, {name: rows.schema for name, rows in self.tables.items()})
        for name, rows in self.tables.items():
            for batch in rows.to_batches():
                running.feed(name, batch)
        return _rows(pa.Table.from_batches(running.end(), stage.schema))

    def in_spark(self, stage: SqlStage) -> list[Row]:
        statement = agreed(stage, {name: rows.schema for name, rows in self.tables.items()})
        found = self._session.sql(statement.sql).toArrow()
        given = [f.type for f in found.schema]
        renamed = found.rename_columns(stage.schema.names)
        for have, want in zip(given, stage.schema, strict=True):
            if have != want.type and not (
                pa.types.is_timestamp(have)
                or pa.types.is_null(have)
                or pa.types.is_unsigned_integer(want.type)
            ):
                raise Disagree(f"{want.name} is {have} in Spark, and {want.type} in DuckDB")
        return _rows(renamed.cast(stage.schema))


def compare(both: Both, drawn: Drawn, effort: Effort) -> None:
    """Raises `Disagree`."""
    effort.statements += 1
    try:
        stage = both.stage(drawn.sql)
        true = both.in_duckdb(stage)
    except (MediatorError, duckdb.Error):
        _both_fail(both, drawn, effort)
        return
    try:
        found = both.in_spark(stage)
    except NotAgreed as error:
        effort.refused[str(error)] += 1
        return
    except PySparkException as error:
        if str(error.getCondition()).split(".")[0] not in _TOO_LARGE:
            raise Disagree(f"Spark fails, {error.getCondition()}: {str(error)[:1500]}\n{drawn.sql}") from None
        effort.over += 1
        return
    effort.saw(drawn.sql)
    effort.agreed += 1
    effort.rows += len(true)
    same(found, true, drawn)


def _both_fail(both: Both, drawn: Drawn, effort: Effort) -> None:
    """What DuckDB cannot do must not have an answer in Spark, unless it need not have been done."""
    try:
        schemas = {name: rows.schema for name, rows in both.tables.items()}
        stage = SqlStage("answer", drawn.sql, tuple(both.tables), duck.shape(drawn.sql, schemas))
        both.in_spark(stage)
    except (NotAgreed, PySparkException, duckdb.Error):
        effort.failed += 1
        return
    effort.spared += 1


def same(found: Sequence[Row], true: Sequence[Row], drawn: Drawn) -> None:
    if len(found) != len(true):
        raise Disagree(f"{len(found)} rows in Spark, {len(true)} in DuckDB\n{drawn.sql}")
    rounded = drawn.rounded or "AVG(" in drawn.sql
    if not drawn.ordered:
        found, true = sorted(found, key=_key), sorted(true, key=_key)
    for number, (have, want) in enumerate(zip(found, true, strict=True)):
        for place, (one, two) in enumerate(zip(have, want, strict=True)):
            if one != two and not (rounded and _close(one, two)):
                raise Disagree(
                    f"row {number}, column {place}: {one!r} in Spark, {two!r} in DuckDB\n{drawn.sql}\n{have}\n{want}"
                )


def _close(one: object, two: object) -> bool:
    both = isinstance(one, float) and isinstance(two, float)
    return both and math.isclose(one, two, rel_tol=_ROUNDED)  # type: ignore[arg-type]


def _rows(rows: pa.Table) -> list[Row]:
    columns = [column.to_pylist() for column in rows.columns]
    return [tuple(map(_plain, row)) for row in zip(*columns, strict=True)]


def _plain(value: object) -> object:
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    return value


def _key(row: Row) -> str:
    return repr([f"{v:.9g}" if isinstance(v, float) else v for v in row])


def searched(session: SparkSession, seed: int, folder: Path, effort: Effort, count: int = 8) -> Iterator[str]:
    """Compares statements of a seed; gives what was wrong."""
    random = Random(seed)
    tables = {"block": table(random, "b"), "step": table(random, "o")}
    both = Both(session, tables, folder / str(seed))
    for drawn in statements(random, count):
        try:
            compare(both, drawn, effort)
        except Disagree as error:
            yield f"seed {seed}: {error}"
