"""A method's `examples`: bindings that the site has rows for, as values of their fields' types."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

import pyarrow as pa

from mediator.catalog.bindfields import parted
from sources.complaint import Complaint, Where, known
from sources.declaration import MethodSpec

Example = Mapping[str, object]


def examples(spec: MethodSpec, types: Mapping[str, pa.DataType], where: Where) -> tuple[Example, ...]:
    """Raises a `Complaint` for an example by which the method could not be asked."""
    spelt = {parted(name): name for name in spec.bound}
    found: list[Example] = []
    for number, example in enumerate(spec.examples):
        place = (*where, "examples", number)
        values: dict[str, object] = {}
        for name, value in example.items():
            if parted(name) not in spelt:
                known(name, spec.bound, (*place, name), "bind-field")
            bound = spelt[parted(name)]
            values[bound] = _typed(name, types[parted(bound)[0]], value, (*place, name))
        _check_whole(spec, values, place)
        found.append(values)
    return tuple(found)


def _check_whole(spec: MethodSpec, values: Example, place: Where) -> None:
    for name in spec.required:
        if name not in values:
            raise Complaint(place, f"{name!r} has to be bound: give it a value here too")
    if spec.any_of and not set(spec.any_of) & values.keys():
        raise Complaint(place, f"one of {', '.join(spec.any_of)} has to be bound: give one of them a value")


def _typed(name: str, type_: pa.DataType, value: Any, place: Where) -> object:
    wrong = Complaint(
        place, f"expected a {type_}, found {type(value).__name__} {value!r:.60}: {_fix(type_, value)}"
    )
    if pa.types.is_temporal(type_):
        text = value.isoformat() if isinstance(value, date | datetime) else value
        if not isinstance(text, str):
            raise wrong
        value, plain = text, pa.string()
    else:
        plain = type_
    if isinstance(value, bool) != pa.types.is_boolean(type_) or isinstance(value, str) != (
        pa.types.is_string(plain)
    ):
        raise wrong
    if pa.types.is_integer(type_) and not isinstance(value, int):
        raise wrong  # Arrow would cut it to one
    try:
        return pa.scalar(value, plain).cast(type_).as_py()
    except (pa.ArrowException, OverflowError, TypeError):
        raise wrong from None


def _fix(type_: pa.DataType, value: object) -> str:
    if pa.types.is_string(type_) and not isinstance(value, dict | list):
        return f'put it in quotes, "{value}"'
    return f"write a {type_}"
