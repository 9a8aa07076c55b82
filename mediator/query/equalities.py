"""Which conjuncts make columns equal: to one another, to a constant, or to one of several.

A rule looks at one conjunct of a draft and either takes it in or leaves it; `RULES` is the order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import duckdb
import pyarrow as pa
from sqlglot import exp

from mediator.query import duck, types
from mediator.query.bounds import note_bounds, note_choices
from mediator.query.conjuncts import in_row, is_text, is_value, one_of
from mediator.query.constants import constant, each_by_itself, truth
from mediator.query.drafts import Draft
from mediator.query.model import Column
from mediator.query.trees import (
    collates,
    is_aggregate,
    is_constant,
    is_volatile,
    name_of,
    names_in,
    plain,
    position_of,
    text_of,
)

Rule = Callable[[Draft, exp.Expr], bool]


@dataclass(frozen=True, slots=True)
class Side:
    """One side of an equality: an expression over one alias."""

    node: exp.Expr
    alias: int
    type: pa.DataType
    column: Column | None  # where the expression is a plain one


def absorb(draft: Draft, conjunct: exp.Expr) -> None:
    """Takes a conjunct into a draft, by the first rule that knows what it means."""
    if not any(rule(draft, conjunct) for rule in RULES):
        draft.conditions.append(conjunct)
        note_bounds(draft, conjunct)


def _without_columns(draft: Draft, conjunct: exp.Expr) -> bool:
    if names_in(conjunct) or is_volatile(conjunct):
        return False
    draft.never |= not truth(conjunct, draft.sql, position_of(conjunct))
    return True


def _by_collation(draft: Draft, conjunct: exp.Expr) -> bool:
    """Equal by a collation is not equal: no column takes the place of another, and no site is asked for all of them."""
    if not collates(conjunct):
        return False
    draft.conditions.append(conjunct)
    return True


def _to_constant(draft: Draft, conjunct: exp.Expr) -> bool:
    """`a = 5`: the class learns the value; the condition stays, so that the engine checks what a source
    sent."""
    if not isinstance(conjunct, (exp.EQ, exp.NullSafeEQ)):
        return False
    for side, other in ((conjunct.left, conjunct.right), (conjunct.right, conjunct.left)):
        column = plain(side)
        if column is not None and (
            is_value(other) if isinstance(conjunct, exp.NullSafeEQ) else is_constant(other)
        ):
            return _constant(draft, draft.where[name_of(column)], other, conjunct)
    return False


def _to_text_in_row(draft: Draft, conjunct: exp.Expr) -> bool:
    """row(a) = row('x'), as rows are taken apart: where a is no text, it is compared as if it were."""
    if not isinstance(conjunct, exp.EQ):
        return False
    left, right = in_row(conjunct.left), in_row(conjunct.right)
    column = plain(left) if left is not None and right is not None else None
    if column is None or types.family(draft.type_of(draft.where[name_of(column)])) != pa.string():
        return False
    return _to_constant(draft, exp.EQ(this=left, expression=right))


def _constant(draft: Draft, column: Column, node: exp.Expr, conjunct: exp.Expr) -> bool:
    kind = draft.type_of(column)
    found = constant(node, kind) if types.keyable(kind) else None
    if found is None:
        return False
    draft.never |= not found.fits
    if found.fits:
        draft.fix(column, found.value)
        draft.conditions.append(conjunct)
    return True


def _to_one_of(draft: Draft, conjunct: exp.Expr) -> bool:
    """`a IN (1, 2)`: kept apart until all classes are known; NULL and what is no value of the type match
    nothing."""
    value, listed = one_of(conjunct) or (None, [])
    column = plain(value) if value is not None else None
    if column is None or not listed or not all(is_constant(e) for e in listed):
        return False
    at = draft.where[name_of(column)]
    kind = draft.type_of(at)
    if not (isinstance(conjunct, exp.In) and conjunct.expressions == listed) and not _as_listed(listed, kind):
        return False
    found = [constant(e, kind) for e in listed] if types.keyable(kind) else [None]
    if None in found or not each_by_itself([f for f in found if f is not None], kind):
        return False
    values = list(dict.fromkeys(f.value for f in found if f is not None and f.fits))
    draft.never |= not values
    if len(values) == 1:
        draft.fix(at, values[0])
        draft.conditions.append(conjunct)
    elif values:
        note_choices(draft, at, values)
        draft.choices.append((at, pa.array(values, kind), conjunct))
    return True


def _as_listed(listed: Sequence[exp.Expr], kind: pa.DataType) -> bool:
    """Whether what stands in a list of its own, where text has no other type, is what it would be in an IN."""
    return types.family(kind) == pa.string() or not any(is_text(e) for e in listed)


def _to_another(draft: Draft, conjunct: exp.Expr) -> bool:
    """`R.a = S.x`, or expressions over one alias each."""
    if not isinstance(conjunct, exp.EQ) or is_volatile(conjunct) or is_aggregate(conjunct):
        return False
    left, right = _side(draft, conjunct.left), _side(draft, conjunct.right)
    if left is None or right is None or left.alias == right.alias:
        return False
    if not (types.keyable(left.type) and types.keyable(right.type)):
        return False
    _equate(draft, left, right)
    return True


def _side(draft: Draft, node: exp.Expr) -> Side | None:
    aliases = draft.aliases_in(node)
    if len(aliases) != 1 or node.find(exp.Query):
        return None
    alias = aliases.pop()
    column = plain(node)
    if column is not None:
        at = draft.where[name_of(column)]
        return Side(node, alias, draft.type_of(at), at)
    try:
        return Side(node, alias, draft.type_of_expression(node, alias), None)
    except duckdb.Error:
        return None


def _equate(draft: Draft, left: Side, right: Side) -> None:
    if types.family(left.type) == types.family(right.type):
        draft.equate(_key(draft, left), _key(draft, right))
        return
    target = types.common(left.type, right.type)
    _note_mixed(draft, left, right)
    narrowed = [_narrowed(draft, a, b, target) for a, b in ((left, right), (right, left))]
    if not any(narrowed) or any(_fed_as(draft, side, target) for side in (left, right)):
        draft.equate(_cast(draft, left, target), _cast(draft, right, target))


def _note_mixed(draft: Draft, left: Side, right: Side) -> None:
    """Text that spells no value of the other's type equals nothing, where DuckDB would give up."""
    for text, other in ((left, right), (right, left)):
        if types.family(text.type) == pa.string():
            pair = exp.EQ(this=left.node.copy(), expression=right.node.copy())
            draft.mixed.append(
                f"{text_of(pair)} compares text with {duck.type_name(other.type)}: text that spells no such value "
                "equals nothing"
            )


def _fed_as(draft: Draft, side: Side, target: str) -> bool:
    """Whether a side is a bind-field of the common type itself."""
    column = side.column
    return column is not None and draft.bindable(column) and _type(target, side.type) == side.type


def _narrowed(draft: Draft, narrow: Side, other: Side, target: str) -> bool:
    """Equates in the type of a bind-field, so that it can be fed: the other side's value where it is one
    of that type."""
    wide = _type(target, narrow.type)
    if narrow.column is None or not draft.bindable(narrow.column) or wide == narrow.type:
        return False
    if not types.lossless(narrow.type, wide):
        return False
    kept = exp.TryCast(this=other.node.copy(), to=_named(narrow.type), safe=True)
    back = exp.EQ(this=_as(kept.copy(), target), expression=_as(other.node.copy(), target))
    inverse = exp.Case(ifs=[exp.If(this=back, true=kept)])
    draft.equate(narrow.column, draft.compute(inverse, other.alias))
    return True


def _key(draft: Draft, side: Side) -> Column:
    return side.column if side.column is not None else draft.compute(side.node, side.alias)


def _cast(draft: Draft, side: Side, target: str) -> Column:
    if side.column is not None and _type(target, side.type) == side.type:
        return side.column
    return draft.compute(_as(side.node.copy(), target), side.alias)


def _as(node: exp.Expr, target: str) -> exp.Expr:
    """A cast that gives NULL, which joins nothing, for a value that the other type has not."""
    return exp.TryCast(this=node, to=exp.DataType.build(target, dialect="duckdb"), safe=True)


def _named(kind: pa.DataType) -> exp.Expr:
    return exp.DataType.build(duck.type_name(kind), dialect="duckdb")


def _type(target: str, default: pa.DataType) -> pa.DataType:
    return default if duck.type_name(default) == target else duck.arrow_type(target)


RULES: tuple[Rule, ...] = (
    _without_columns,
    _by_collation,
    _to_text_in_row,
    _to_constant,
    _to_one_of,
    _to_another,
)
