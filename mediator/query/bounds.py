"""Which conjuncts bound a column by a constant: `price <= 10`, `title LIKE 'Dun%'`.

They stay conditions; what is noted here lets a source be asked for less. Nothing is noted that does not follow from
the conjunct as DuckDB compares: a bound that were too narrow would lose answers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import duckdb
import pyarrow as pa
import pyarrow.types as pt
from sqlglot import exp

from mediator.catalog.bindfields import RANGES, STARTS
from mediator.query import duck
from mediator.query.constants import constant
from mediator.query.drafts import Draft
from mediator.query.model import Bound, Column
from mediator.query.trees import is_constant, name_of, plain
from mediator.query.types import family

_OPERATORS: dict[type[exp.Expr], str] = {exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="}
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_WILD = ("%", "_")
# What a value must be so that a column of this kind is compared with it in its own type, and to the last digit.
_WHOLE = ("INT", "DECIMAL")
_MOMENTS = ("DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS")


def note_bounds(draft: Draft, conjunct: exp.Expr) -> None:
    """Notes what a conjunct says of one column, where a source could make use of it."""
    if not draft.ranged:
        return
    if isinstance(conjunct, exp.Like | exp.StartsWith):
        _note_start(draft, conjunct)
    operator = _OPERATORS.get(type(conjunct))
    if operator is None or not isinstance(conjunct, exp.Binary):
        return
    sides = ((conjunct.left, operator, conjunct.right), (conjunct.right, _FLIPPED[operator], conjunct.left))
    for side, how, other in sides:
        column = plain(side)
        if column is not None and is_constant(other):
            at = draft.where[name_of(column)]
            found = _limit(how, other, draft.type_of(at))
            if found is not None:
                draft.bounds.append(Bound(at, *found))


def note_choices(draft: Draft, column: Column, values: Sequence[object]) -> None:
    """One of several values is no less than the least of them, and no more than the greatest."""
    kind = draft.type_of(column)
    if draft.ranged and _ordered(kind) and not any(v != v for v in values):
        draft.bounds.append(Bound(column, ">=", min(values)))  # type: ignore[type-var]
        draft.bounds.append(Bound(column, "<=", max(values)))  # type: ignore[type-var]


def _note_start(draft: Draft, conjunct: exp.Like | exp.StartsWith) -> None:
    column, pattern = plain(conjunct.this), conjunct.expression
    if column is None or conjunct.args.get("negate"):
        return
    if not (isinstance(pattern, exp.Literal) and pattern.is_string):
        return
    at, start = draft.where[name_of(column)], str(pattern.this)
    if isinstance(conjunct, exp.Like):
        start = start[: min((start.find(c) for c in _WILD if c in start), default=len(start))]
    if start and family(draft.type_of(at)) == pa.string():
        draft.bounds.append(Bound(at, STARTS, start))


def _limit(operator: str, node: exp.Expr, kind: pa.DataType) -> tuple[str, object] | None:
    """The bound that `column operator node` is on a column of this type."""
    if operator not in RANGES or not _ordered(kind) or not _compared_as_it_is(node, kind):
        return None
    found = constant(node, kind)
    if found is not None and not found.fits and pt.is_integer(kind):
        # Between two whole numbers: what is below 2.5 is at most 2.
        rounded = exp.Floor(this=node.copy()) if operator[0] == "<" else exp.Ceil(this=node.copy())
        found, operator = constant(rounded, kind), f"{operator[0]}="
    if found is None or not found.fits or (isinstance(found.value, float) and math.isnan(found.value)):
        return None
    return operator, found.value


def _ordered(kind: pa.DataType) -> bool:
    checks = (pt.is_integer, pt.is_floating, pt.is_decimal, pt.is_date32, pt.is_timestamp)
    return family(kind) == pa.string() or any(check(kind) for check in checks)


def _compared_as_it_is(node: exp.Expr, kind: pa.DataType) -> bool:
    """Whether DuckDB compares a column of this type with the value by nothing coarser than the type itself."""
    if pt.is_timestamp(kind) and (kind.tz is not None or kind.unit == "ns"):
        return False
    if family(kind) == pa.string() or (isinstance(node, exp.Literal) and node.is_string):
        return True
    try:
        text = node.sql("duckdb")
        told = duck.run(f"SELECT typeof({text}) AS t", {}, light=not duck.computes(text))
        type_ = str(told["t"][0].as_py())
    except duckdb.Error:
        return False
    if pt.is_integer(kind) or pt.is_decimal(kind):
        return any(word in type_ for word in _WHOLE)
    return not pt.is_temporal(kind) or type_ in _MOMENTS
