"""The last stage: can its rows be given one batch at a time, and is anything left to do to them at all?

- Columns of a block and nothing else: the block gives the answers itself.
- A select list that looks at one row at a time: a rowwise stage, LIMIT and DISTINCT included.
- UNION ALL of such: each side a rowwise stage, and one more that passes all of them on.
- ORDER BY ... LIMIT k of such: all of it at the end, but only the best k rows are kept meanwhile.
- All else needs all rows.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from sqlglot import exp

from mediator.query import duck
from mediator.query.model import SqlStage, Stage, Top
from mediator.query.rowwise import cut_of, row_by_row, stream
from mediator.query.stages import Stages
from mediator.query.tops import top_of


def finish(stages: Stages, statement: exp.Expr, columns: list[str]) -> list[Stage]:
    """All stages; the last gives the answers under these names."""
    if isinstance(statement, exp.Select) and row_by_row(stages, statement):
        stream(stages, statement)
    elif isinstance(statement, exp.Union) and _streams_as_union(stages, statement):
        _stream_union(stages, statement, columns)
    else:
        _gather(stages, statement, columns)
    return stages.done


# UNION ALL


def _sides(statement: exp.Expr) -> list[exp.Expr]:
    """The queries that nested UNION ALLs put one after the other."""
    if any(statement.args.get(k) for k in ("order", "limit", "offset", "by_name")):
        return [statement]
    if isinstance(statement, exp.Subquery):
        return _sides(statement.this)
    if isinstance(statement, exp.Union) and not statement.args.get("distinct"):
        return [*_sides(statement.left), *_sides(statement.right)]
    return [statement]


def _streams_as_union(stages: Stages, statement: exp.Union) -> bool:
    top = not any(statement.args.get(k) for k in ("distinct", "order", "by_name")) and cut_of(statement)
    sides = [*_sides(statement.left), *_sides(statement.right)]
    return bool(top) and all(isinstance(s, exp.Select) and row_by_row(stages, s) for s in sides)


def _stream_union(stages: Stages, statement: exp.Union, columns: list[str]) -> None:
    limit, offset = cut_of(statement) or (None, 0)
    for key in ("limit", "offset"):
        statement.set(key, None)
    schema = _named(stages.shape_of(statement), columns)
    reads = []
    for side in [*_sides(statement.left), *_sides(statement.right)]:
        assert isinstance(side, exp.Select)
        _as_schema(stages, side, schema)
        reads.append(stream(stages, side))
    stages.add(SqlStage(stages.fresh("answer"), "", tuple(reads), schema, True, limit, offset))


def _as_schema(stages: Stages, side: exp.Select, schema: pa.Schema) -> None:
    """Gives a select the names and types of the whole."""
    own = stages.shape_of(side)
    for item, mine, field in zip(side.expressions, own, schema, strict=True):
        item.set("alias", exp.to_identifier(field.name, quoted=True))
        if mine.type != field.type:
            kind = exp.DataType.build(duck.type_name(field.type), dialect="duckdb")
            item.set("this", exp.Cast(this=item.this, to=kind))


def _named(schema: pa.Schema, columns: list[str]) -> pa.Schema:
    return pa.schema([field.with_name(name) for field, name in zip(schema, columns, strict=True)])


# All rows at once


def _gather(stages: Stages, statement: exp.Expr, columns: list[str]) -> None:
    prune, top = "", None
    if isinstance(statement, exp.Select) and row_by_row(stages, statement, order=True):
        prune, top = _prune(statement)
    last = stages.add_sql(statement, "answer")
    if last.schema.names != columns:
        names = ", ".join(exp.to_identifier(n, quoted=True).sql("duckdb") for n in columns)
        sql = f"SELECT * FROM ({last.sql}) AS answer({names})"
        last = replace(last, sql=sql, schema=_named(last.schema, columns))
    stages.done[-1] = replace(last, prune=prune, top=top)


def _prune(statement: exp.Select) -> tuple[str, Top | None]:
    """The rows below that ORDER BY and LIMIT would choose, if they would: as SQL, and as data where they are that
    simple."""
    limit, offset = cut_of(statement) or (None, 0)
    if limit is None or not statement.args.get("order") or statement.args.get("distinct"):
        return "", None
    order = _spelt_out(statement)
    if order is None:
        return "", None
    top = None if statement.args.get("where") else top_of(order, limit + offset)
    best = exp.Select(expressions=[exp.Star()], from_=statement.args["from_"].copy(), order=order)
    if statement.args.get("where"):
        best.set("where", statement.args["where"].copy())
    return str(best.limit(limit + offset, copy=False).sql("duckdb")), top


def _spelt_out(statement: exp.Select) -> exp.Order | None:
    """ORDER BY without the select list's aliases and positions; none if it names something else."""
    values = {e.alias.lower(): e.this for e in statement.expressions}
    order: exp.Order = statement.args["order"].copy()
    for item in order.expressions:
        key = item.this
        if isinstance(key, exp.Literal):
            if key.is_string or not 0 < int(key.this) <= len(statement.expressions):
                return None
            key.replace(statement.expressions[int(key.this) - 1].this.copy())
    for column in [c for c in order.find_all(exp.Column) if not c.table]:
        value = values.get(column.name.lower())
        if value is None or any(not c.table for c in value.find_all(exp.Column)):
            return None
        column.replace(exp.Paren(this=value.copy()))
    return order
