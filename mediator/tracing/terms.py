"""What policies are told and what they say, as JSON and back: numbers, texts, sequences, and records by their names."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mediator.catalog.ceilings import Ceilings
from mediator.eddy import destinations, policy
from mediator.flow.batch import Signature

Json = Any

_NUMBER = "number"  # one that JSON has no word for
_PAIRS = "pairs"


class Untellable(TypeError):
    """Something that a trace cannot hold: what may have values of rows in it, or is no data."""


def _records() -> dict[str, type[Any]]:
    """Every record that the policies' own room speaks of, by name: a new one there needs no word here."""
    rooms = [vars(destinations), vars(policy)]
    found = [kind for room in rooms for kind in room.values() if isinstance(kind, type) and _is_record(kind)]
    return {kind.__name__: kind for kind in [*found, Signature, Ceilings]}


def _is_record(kind: type[Any]) -> bool:
    named = issubclass(kind, tuple) and hasattr(kind, "_fields")
    return named or dataclasses.is_dataclass(kind)


def told(value: object) -> Json:
    """Raises `Untellable`."""
    match value:
        case None | bool() | str():
            return value
        case np.bool_() | np.integer() | np.floating():
            return told(value.item())
        case int():
            return int(value)
        case float():
            return float(value) if math.isfinite(value) else {_NUMBER: str(value)}
        case Mapping():
            return {_PAIRS: [[told(key), told(inner)] for key, inner in value.items()]}
        case _ if type(value).__name__ in RECORDS and type(value) is RECORDS[type(value).__name__]:
            return {type(value).__name__: [told(part) for part in _parts(value)]}
        case list() | tuple() | range():
            return [told(inner) for inner in value]
        case frozenset() | set():
            return [told(inner) for inner in sorted(value)]
    raise Untellable(type(value).__name__)


def heard(said: Json) -> Any:
    """What `told` was given; sequences are tuples. Raises `ValueError` for what it never says."""
    if isinstance(said, list):
        return tuple(heard(inner) for inner in said)
    if not isinstance(said, dict):
        return said
    if len(said) != 1:
        raise ValueError("a record with other than one name")
    ((name, inner),) = said.items()
    if name == _NUMBER and inner in ("inf", "-inf", "nan"):
        return float(inner)
    if not isinstance(inner, list):
        raise ValueError(f"{name!r} without its parts")
    if name == _PAIRS:
        return {heard(key): heard(value) for key, value in inner}
    kind = RECORDS.get(name)
    if kind is None:
        raise ValueError(f"nothing here is called {name!r}")
    try:
        return kind(*(heard(part) for part in inner))
    except TypeError as error:
        raise ValueError(f"{name}: {error}") from None


def _parts(record: Any) -> Sequence[object]:
    if isinstance(record, tuple):
        # A destination's kind is its name already.
        names: tuple[str, ...] = type(record)._fields  # type: ignore[attr-defined]
        return [part for name, part in zip(names, record, strict=True) if name != "kind"]
    return [getattr(record, field.name) for field in dataclasses.fields(record)]


RECORDS: Mapping[str, type[Any]] = _records()
