"""From what a reply says to Arrow columns of the declared types, or to the sentence that says why not."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from mediator.catalog.model import Field
from mediator.errors import FieldMissing, Mistyped, SchemaChanged, Unreadable

LONGEST = 1 << 20  # bytes of one text: a longer one is no value but a page in the wrong place
_NAMED = 20  # of the fields that a reply has instead, so many are told


class Absent:
    """The value of a field that a record lacks. NULL is another thing: a field that is there, and empty."""


ABSENT = Absent()


def missing(relation: str, field: Field, found: Iterable[object]) -> SchemaChanged:
    """The error for a declared field that a reply does not have."""
    first = [_short(str(name)) for name in islice(found, _NAMED + 1)]
    names = ", ".join(first[:_NAMED]) + (", ..." if len(first) > _NAMED else "") or "nothing"
    return FieldMissing(
        f"{relation}.{field.name}: expected a field of type {field.type}, found only: {names}"
    )


def from_json(relation: str, field: Field, values: Sequence[Any]) -> pa.Array:
    """Values as JSON has them. A number is no text here, and no text a number."""
    for kind in set(map(type, values)) - _json_types(field.type):
        raise _mistyped(relation, field, next(v for v in values if type(v) is kind))
    try:
        if pa.types.is_temporal(field.type):
            return _cast(pa.array(values, pa.string()), field.type)
        return _bounded(relation, field, pa.array(values, field.type))
    except (pa.ArrowInvalid, OverflowError):
        raise _mistyped(relation, field, _culprit(field.type, values)) from None


def from_text(relation: str, field: Field, values: Sequence[str | None] | pa.Array) -> pa.Array:
    """Values of a format that has only texts. An empty one is NULL."""
    texts = values if isinstance(values, pa.Array) else pa.array([v or None for v in values], pa.string())
    try:
        column = _cast(_bounded(relation, field, texts), field.type)
    except pa.ArrowInvalid:
        raise _mistyped(relation, field, _culprit(field.type, texts.to_pylist())) from None
    if pa.types.is_floating(field.type) and len(wrong := texts.filter(pc.invert(pc.is_finite(column)))):
        raise _mistyped(relation, field, wrong[0].as_py())
    return column


def repeated(field: Field, value: object, times: int) -> pa.Array:
    """A column of one value: that of the binding which was asked for."""
    return pa.repeat(pa.scalar(value, field.type), times)


def _cast(values: pa.Array, type_: pa.DataType) -> pa.Array:
    """Values as another type. A time that says how far it is from UTC, as all do in a column or none, becomes UTC."""
    if not pa.types.is_timestamp(type_):
        return values.cast(type_)
    try:
        return values.cast(type_)
    except pa.ArrowInvalid:
        return values.cast(pa.timestamp(type_.unit, "UTC")).cast(type_)


def _json_types(type_: pa.DataType) -> set[type]:
    if pa.types.is_boolean(type_):
        return {bool, type(None)}
    if pa.types.is_integer(type_):
        return {int, type(None)}
    if pa.types.is_floating(type_):
        return {int, float, type(None)}
    return {str, type(None)}


def _bounded(relation: str, field: Field, texts: pa.Array) -> pa.Array:
    if pa.types.is_string(texts.type) and texts.nbytes > LONGEST:
        longest = pc.max(pc.binary_length(texts)).as_py() or 0
        if longest > LONGEST:
            raise Unreadable(
                f"{relation}.{field.name}: a text of {longest:,} bytes, where {LONGEST:,} are the most"
            )
    return texts


def _mistyped(relation: str, field: Field, value: object) -> SchemaChanged:
    return Mistyped(f"{relation}.{field.name}: expected {field.type}, found {described(value)}")


def described(value: object) -> str:
    """A value by its type and, however long or deep it is, in a few words."""
    try:
        return f"{type(value).__name__} {_SHOWN.repr(value)}"
    except Exception:  # some have no text: a number of too many digits, or what does not want to be shown
        return type(value).__name__


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."


class _Shown(reprlib.Repr):
    """What was found, in a few words, however long or deep it is."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel, self.maxdict, self.maxlist, self.maxstring = 2, 3, 3, 60

    def repr(self, x: Any) -> str:
        return _short(super().repr(x))


_SHOWN = _Shown()


def _culprit(type_: pa.DataType, values: Iterable[object]) -> object:
    """The first value that does not fit; where they only do not go together, the first of them."""
    values = list(values)
    for value in values:
        try:
            _cast(pa.array([value]), type_)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OverflowError):
            return value
    return next((value for value in values if value is not None), None)
