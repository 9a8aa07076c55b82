"""From what a reply says to Arrow columns of the declared types, or to the sentence that says why not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from mediator.catalog.model import Field
from mediator.errors import SchemaChanged


class Absent:
    """The value of a field that a record lacks. NULL is another thing: a field that is there, and empty."""


ABSENT = Absent()


def missing(relation: str, field: Field, found: Iterable[object]) -> SchemaChanged:
    """The error for a declared field that a reply does not have."""
    names = ", ".join(str(f) for f in found) or "nothing"
    return SchemaChanged(
        f"{relation}.{field.name}: expected a field of type {field.type}, found only: {names}"
    )


def from_json(relation: str, field: Field, values: Sequence[Any]) -> pa.Array:
    """Values as JSON has them. A number is no text here, and no text a number."""
    for kind in set(map(type, values)) - _json_types(field.type):
        raise _mistyped(relation, field, next(v for v in values if type(v) is kind))
    try:
        if pa.types.is_temporal(field.type):
            return pa.array(values, pa.string()).cast(field.type)
        return pa.array(values, field.type)
    except (pa.ArrowInvalid, OverflowError):
        raise _mistyped(relation, field, _culprit(field.type, values)) from None


def from_text(relation: str, field: Field, values: Sequence[str | None] | pa.Array) -> pa.Array:
    """Values of a format that has only texts. An empty one is NULL."""
    texts = values if isinstance(values, pa.Array) else pa.array([v or None for v in values], pa.string())
    try:
        return texts.cast(field.type)
    except pa.ArrowInvalid:
        raise _mistyped(relation, field, _culprit(field.type, texts.to_pylist())) from None


def repeated(field: Field, value: object, times: int) -> pa.Array:
    """A column of one value: that of the binding which was asked for."""
    return pa.array([value] * times, field.type)


def _json_types(type_: pa.DataType) -> set[type]:
    if pa.types.is_boolean(type_):
        return {bool, type(None)}
    if pa.types.is_integer(type_):
        return {int, type(None)}
    if pa.types.is_floating(type_):
        return {int, float, type(None)}
    return {str, type(None)}


def _mistyped(relation: str, field: Field, value: object) -> SchemaChanged:
    shown = repr(value)
    shown = shown if len(shown) <= 60 else shown[:57] + "..."
    return SchemaChanged(
        f"{relation}.{field.name}: expected {field.type}, found {type(value).__name__} {shown}"
    )


def _culprit(type_: pa.DataType, values: Iterable[object]) -> object:
    """The first value that does not fit."""
    for value in values:
        try:
            pa.array([value]).cast(type_)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OverflowError):
            return value
    return None
