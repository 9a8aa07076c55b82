"""A rowwise select, taken apart: so that it can be run over rows of which not all columns are known."""

from __future__ import annotations

from sqlglot import exp

from mediator.query.conjuncts import split
from mediator.query.model import Expression, RowParts

# One row in, any number of rows out.
_MANY = (exp.Explode, exp.Unnest, exp.Posexplode, exp.Inline)
_MANY_NAMES = {"UNNEST", "GENERATE_SUBSCRIPTS"}


def row_parts(select: exp.Select) -> RowParts | None:
    """Its items and its conditions, each with what it reads; none where a row may give several rows."""
    statement = select.copy()
    if any(_gives_many(node) for node in statement.walk()):
        return None
    where = statement.args.get("where")
    return RowParts(
        statement.args["from_"].this.sql("duckdb"),
        tuple(_expression(item) for item in statement.expressions),
        tuple(_expression(c) for c in split(where.this if where is not None else None)),
    )


def _expression(node: exp.Expr) -> Expression:
    inner = node.this if isinstance(node, exp.Alias) else node
    return Expression(inner.sql("duckdb"), tuple(dict.fromkeys(c.name for c in inner.find_all(exp.Column))))


def _gives_many(node: exp.Expr) -> bool:
    return isinstance(node, _MANY) or (isinstance(node, exp.Anonymous) and node.name.upper() in _MANY_NAMES)
