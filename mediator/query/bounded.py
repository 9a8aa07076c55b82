"""What a block lets a bind-field with an operator be bound to: a constant that every row it needs is within."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from mediator.catalog.bindfields import EQUAL, STARTS, parted
from mediator.query.model import Block, Column


def bound_for(block: Block, alias: int, name: str) -> object:
    """The narrowest value that the block gives for this bind-field of an alias; none if it gives no bound.

    Rows outside it have no part in any answer: the column itself, or one that equals it, is bounded by a conjunct.
    """
    field, operator = parted(name)
    column = Column(alias, field)
    kind = block.type_of(column)
    found = [
        v for how, value in _known(block, column) if (v := _as_bound(operator, how, value, kind)) is not None
    ]
    fitting = [v for v in found if fits(v, kind)]
    if not fitting:
        return None
    if operator == STARTS:
        return max(fitting, key=len)
    return min(fitting) if operator[0] == "<" else max(fitting)


def _known(block: Block, column: Column) -> list[tuple[str, Any]]:
    """Operators and values: the constant that the column equals, and the bounds on all that it equals."""
    alike, found = {column}, []
    for equal in block.classes:
        if column in equal.columns:
            alike.update(equal.columns)
            if equal.constant is not None:
                found.append((EQUAL, equal.constant))
    return found + [(b.operator, b.value) for b in block.bounds if b.column in alike]


def _as_bound(wanted: str, how: str, value: Any, kind: pa.DataType) -> Any:
    """The `v` for which `x wanted v` follows from `x how value`; none if there is none."""
    if how == wanted:
        return value
    if wanted == STARTS or how == STARTS:
        return value if how == EQUAL else None
    if how != EQUAL and how[0] != wanted[0]:
        return None
    if wanted in ("<=", ">="):
        return value
    # Strictly less, where the query says no more than at most: possible where there is a next value.
    return _beside(value, 1 if wanted == "<" else -1, kind)


def _beside(value: Any, step: int, kind: pa.DataType) -> Any:
    if pt.is_integer(kind) and type(value) is int:
        return value + step
    if pt.is_date32(kind) and isinstance(value, date) and not isinstance(value, datetime):
        try:
            return value + timedelta(days=step)
        except OverflowError:
            return None
    return None


def fits(value: object, kind: pa.DataType) -> bool:
    """Whether it is a value of the field's own type, which may be narrower than that of a column that equals it."""
    try:
        return bool(pa.scalar(value, kind).as_py() == value)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return False
