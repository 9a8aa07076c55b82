"""Spark's SQL for a stage, or why there is none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from mediator.query import duck
from mediator.query.model import SqlStage
from pipeline.sparksql.errors import NotAgreed
from pipeline.sparksql.kinds import NOTHING
from pipeline.sparksql.scopes import Table
from pipeline.sparksql.selects import Selects


@dataclass(frozen=True, slots=True)
class Statement:
    """`views` is what goes by which name in `sql`: the rows of a stage, as columns c0, c1, ... in its schema's order.
    So do the results."""

    sql: str
    views: Mapping[str, str]


def agreed(stage: SqlStage, schemas: Mapping[str, pa.Schema]) -> Statement:
    """Raises `NotAgreed`."""
    views = {name: f"r{n}" for n, name in enumerate(stage.reads)}
    selects = Selects({name.lower(): _table(views[name], schemas[name]) for name in stage.reads})
    if not stage.reads:
        raise NotAgreed("a stage that reads no other")
    made = selects.query(_tree(stage))
    wanted = [duck.type_name(field.type) for field in stage.schema]
    # Where DuckDB's type is its own alone, it gives another.
    types = ["DECIMAL(38,0)" if type_ == "HUGEINT" else type_ for _, type_ in made.columns]
    if NOTHING in wanted:
        raise NotAgreed("a column of no type")
    if types != wanted:
        raise NotAgreed(f"results of {', '.join(types)}, not {', '.join(wanted)}")
    return Statement(made.spark, views)


def _tree(stage: SqlStage) -> exp.Expr:
    """The stage as one statement: a rowwise one says some of it beside its SQL."""
    sql = stage.sql or " UNION ALL ".join(f"SELECT * FROM {_quoted(name)}" for name in stage.reads)
    if stage.rowwise and (stage.distinct or stage.limit is not None or stage.offset):
        sql = f'SELECT {"DISTINCT " if stage.distinct else ""}* FROM ({sql}) AS "rows"'
        sql += "" if stage.limit is None else f" LIMIT {stage.limit}"
        sql += f" OFFSET {stage.offset}" if stage.offset else ""
    try:
        return sqlglot.parse_one(sql, dialect="duckdb")
    except (SqlglotError, RecursionError) as error:
        raise NotAgreed(f"what cannot be read: {error}") from None


def _table(view: str, schema: pa.Schema) -> Table:
    return Table(view, tuple((field.name, duck.type_name(field.type)) for field in schema))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
