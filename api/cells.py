"""Values as text: for people, for CSV, for JSON. One spelling each, whatever the format.

A site can send anything: what goes to a terminal is made harmless first.
"""

from __future__ import annotations

import datetime
import decimal
import math
import re
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from mediator.query import duck

# Control characters, and those that turn the direction of writing: they could rewrite what a terminal shows.
_UNRULY = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
NULL = "NULL"
# Types whose values Python has, every one of them; told by number, since an answer may have thousands of columns.
_PLAIN = frozenset(
    kind.id
    for kind in (
        pa.null(), pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(),
        pa.uint64(), pa.float32(), pa.float64(), pa.string(), pa.large_string(), pa.binary(), pa.large_binary(),
    )
)  # fmt: skip
_FLOATING = frozenset(kind.id for kind in (pa.float16(), pa.float32(), pa.float64()))


def harmless(text: str) -> str:
    """The same text with everything that would steer a terminal written out: a newline becomes `\\n`."""
    return _UNRULY.sub(lambda m: m[0].encode("unicode_escape").decode(), text)


def shown(value: object) -> str:
    """A value in a table. NULL is a word of its own: a text that reads the same is put in quotes."""
    if value is None:
        return NULL
    if isinstance(value, str):
        return f'"{value}"' if value == NULL else harmless(value)
    return harmless(text_of(value))


def text_of(value: object) -> str:
    """A value that is not NULL, as text."""
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case float():
            return _number(value)
        case decimal.Decimal():
            return format(value, "f")
        case datetime.datetime():
            return value.isoformat(sep=" ")
        case datetime.date() | datetime.time():
            return value.isoformat()
        case bytes():
            return value.hex()
        case dict() | list() | set() | tuple() if not hasattr(value, "_fields"):
            return json_of(value).decode()
        case _:
            return str(value)


def json_of(value: object) -> bytes:
    """Compact JSON. Dates are ISO 8601, decimals are numbers with all their digits, bytes are hexadecimal."""
    return orjson.dumps(value, default=_unknown_to_json, option=orjson.OPT_NON_STR_KEYS)


def values(column: pa.Array) -> list[Any]:
    """Python values. Times finer than a microsecond, which Python has not, are cut to it; columns with a value that it
    has not at all, such as the year 10000 or a date without end, are spelt as DuckDB does."""
    kind = column.type
    if kind.id in _PLAIN:
        return column.to_pylist()  # type: ignore[no-any-return]
    coarse = _coarse(kind)
    try:
        return (column if coarse == kind else pc.cast(column, coarse, safe=False)).to_pylist()  # type: ignore[no-any-return]
    except (ValueError, OverflowError, pa.ArrowException):
        return _spelt(column)


def json_values(column: pa.Array) -> list[Any]:
    """Python values that JSON has; NaN and the infinities, which it has not, are their names."""
    found = values(column)
    if column.type.id not in _FLOATING or pc.all(pc.is_finite(column)).as_py() is not False:
        return found
    return [v if v is None or math.isfinite(v) else _number(v) for v in found]


def texts(column: pa.Array) -> pa.Array:
    """The same column as strings; NULL stays NULL."""
    kind = column.type
    if pa.types.is_string(kind):
        return column
    if pa.types.is_integer(kind) or pa.types.is_large_string(kind) or pa.types.is_date(kind):
        return pc.cast(column, pa.string())
    return pa.array([None if v is None else text_of(v) for v in values(column)], pa.string())


def _spelt(column: pa.Array) -> list[Any]:
    spelt = duck.run("SELECT CAST(v AS VARCHAR) AS v FROM t", {"t": pa.table({"v": column})})
    return spelt["v"].to_pylist()  # type: ignore[no-any-return]


def _number(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return repr(value)


def _unknown_to_json(value: object) -> object:
    match value:
        case decimal.Decimal() if value.is_finite():
            return orjson.Fragment(format(value, "f"))
        case bytes():
            return value.hex()
        case tuple() if not hasattr(value, "_fields"):
            return list(value)
        case _:
            return str(value)


def _coarse(kind: pa.DataType) -> pa.DataType:
    """The type with nanoseconds replaced by microseconds, wherever they are in it."""
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        return pa.timestamp("us", kind.tz)
    if pa.types.is_time64(kind) and kind.unit == "ns":
        return pa.time64("us")
    if pa.types.is_duration(kind) and kind.unit == "ns":
        return pa.duration("us")
    if pa.types.is_list(kind):
        return pa.list_(_coarse_field(kind.value_field))
    if pa.types.is_struct(kind):
        return pa.struct([_coarse_field(kind.field(i)) for i in range(kind.num_fields)])
    return kind


def _coarse_field(field: pa.Field) -> pa.Field:
    return field.with_type(_coarse(field.type))
