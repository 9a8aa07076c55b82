"""What a source lets one query spend at it, as declared."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, PositiveFloat, PositiveInt, WithJsonSchema

from mediator.catalog.ceilings import NO_CEILINGS, Ceilings

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30}
_WRITTEN = r"(\d+(?:\.\d+)?) ?([kKmMgG]?i?)[bB]?"


def size_of(text: str) -> int:
    """Bytes of what was written: `500`, `64 kB`, `10MB`, `1.5 GiB`. Raises `ValueError`."""
    found = re.fullmatch(_WRITTEN, text.strip(), re.ASCII)
    unit = found[2].lower() if found else None
    if found is None or unit not in _UNITS:
        raise ValueError("expected a number of bytes: 500000, 500kB, 10MB or 1GiB")
    return round(float(found[1]) * _UNITS[unit])


def _size(said: object) -> object:
    return size_of(said) if isinstance(said, str) else said


Size = Annotated[
    PositiveInt,
    BeforeValidator(_size),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "exclusiveMinimum": 0},
                {"type": "string", "pattern": f"^{_WRITTEN}$"},
            ]
        }
    ),
]


class PerQuerySpec(BaseModel):
    """Past any of these, a query gets nothing more from the source."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    calls: PositiveInt | None = None
    bytes: Size | None = None
    seconds: PositiveFloat | None = None


def ceilings(spec: PerQuerySpec | None) -> Ceilings:
    return NO_CEILINGS if spec is None else Ceilings(spec.calls, spec.bytes, spec.seconds)
