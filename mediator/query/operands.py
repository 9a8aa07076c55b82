"""Values that are read or computed without DuckDB: columns, and callers' functions of them and of constants."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from mediator.catalog.functions import Function
from mediator.query.constants import constant
from mediator.query.functions import function_of
from mediator.query.model import Column
from mediator.query.trees import Name, is_constant, name_of, names_in, plain
from mediator.query.types import family

Columns = Mapping[Column, pa.Array]
Where = Mapping[Name, Column]
TypeOf = Callable[[Column], pa.DataType]


@dataclass(frozen=True, slots=True)
class Operand:
    """A value for each position, and its type."""

    type: pa.DataType
    values: Callable[[Columns], pa.Array]


def operand(node: exp.Expr, where: Where, type_of: TypeOf) -> Operand | None:
    """An expression over columns, if it is as simple as that."""
    column = plain(node)
    if column is not None:
        at = where[name_of(column)]
        return Operand(type_of(at), lambda columns: columns[at])
    node = node.unnest() if isinstance(node, exp.Paren) else node
    function = function_of(node)
    if function is None or not names_in(node) or len(node.expressions) != len(function.arguments):
        return None
    pairs = zip(node.expressions, function.arguments, strict=True)
    given = [_argument(argument, kind, where, type_of) for argument, kind in pairs]
    known = [g for g in given if g is not None]
    return _call(function, known) if len(known) == len(given) else None


def _argument(node: exp.Expr, kind: pa.DataType, where: Where, type_of: TypeOf) -> Operand | pa.Scalar | None:
    """An argument of the type that the function takes."""
    if names_in(node):
        found = operand(node, where, type_of)
        return found if found is not None and family(found.type) == family(kind) else None
    known = constant(node, kind) if is_constant(node) else None
    return pa.scalar(known.value, kind) if known is not None and known.fits else None


def _call(function: Function, given: list[Operand | pa.Scalar]) -> Operand:
    def values(columns: Columns) -> pa.Array:
        rows = len(next(iter(columns.values())))
        return function.over(
            [g.values(columns) if isinstance(g, Operand) else pa.repeat(g, rows) for g in given]
        )

    return Operand(function.result, values)
