"""Python values for `?` and `$name`, as JSON has them."""

from __future__ import annotations

import datetime
import decimal
import math
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

Parameters = Mapping[str, Any] | Sequence[Any]


def sent(parameters: Parameters) -> dict[str, Any] | list[Any]:
    """As they travel."""
    if isinstance(parameters, Mapping):
        return {str(name): _value(value) for name, value in parameters.items()}
    if isinstance(parameters, str | bytes):
        raise TypeError("parameters are a mapping for $name, or a sequence for ?: not one value")
    return [_value(value) for value in parameters]


def _value(value: Any) -> Any:
    """What JSON has not is the text of a literal, which SQL reads as the type it is compared with."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case decimal.Decimal() | uuid.UUID():
            return str(value)
        case datetime.datetime():
            return value.isoformat(sep=" ")
        case datetime.date() | datetime.time():
            return value.isoformat()
        case datetime.timedelta():
            return f"{value // datetime.timedelta(microseconds=1)} microseconds"
        case bytes() | bytearray() | memoryview():
            return "".join(f"\\x{byte:02x}" for byte in bytes(value))
        case list() | tuple() | set() | frozenset():
            return [_value(v) for v in value]
    if hasattr(value, "dtype") and hasattr(value, "tolist"):
        # NumPy's scalars and arrays, which pandas hands out.
        return _value(value.tolist())
    raise TypeError(f"a parameter cannot be a {type(value).__name__}")
