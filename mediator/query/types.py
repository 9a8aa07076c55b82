"""Types as join keys: which compare as they are, what others are cast to, and which casts lose nothing."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pyarrow.types as pt

from mediator.errors import TypeMismatch
from mediator.query import duck


def family(type: pa.DataType) -> pa.DataType:
    """One type for all that the row stores keep as one kind of key: integers as int64, strings as string."""
    if pt.is_integer(type) and type != pa.uint64():
        return pa.int64()
    if pt.is_string(type) or pt.is_large_string(type) or pt.is_string_view(type):
        return pa.string()
    return type


def keyable(type: pa.DataType) -> bool:
    """Whether equality on this type can be a join key; lists, structs and the like are compared by DuckDB."""
    checks = (
        pt.is_integer,
        pt.is_floating,
        pt.is_boolean,
        pt.is_decimal,
        pt.is_date,
        pt.is_timestamp,
        pt.is_time,
        pt.is_binary,
        pt.is_large_binary,
    )
    return family(type) == pa.string() or any(check(type) for check in checks)


def common(left: pa.DataType, right: pa.DataType) -> str:
    """The DuckDB type as which two columns are compared: text becomes what it is compared with.

    Raises `TypeMismatch` for types that cannot be compared.
    """
    if pa.string() in (family(left), family(right)):
        return duck.type_name(right if family(left) == pa.string() else left)
    try:
        return duck.wider(left, right)
    except duckdb.Error:
        names = f"{duck.type_name(left)} and {duck.type_name(right)}"
        raise TypeMismatch(f"values of type {names} cannot be compared") from None


def lossless(narrow: pa.DataType, wide: pa.DataType) -> bool:
    """Whether a cast from one to the other keeps different values different."""
    if family(narrow) == family(wide):
        return True
    if pt.is_boolean(narrow):
        return bool(pt.is_integer(wide) or pt.is_floating(wide) or pt.is_decimal(wide))
    if pt.is_integer(narrow):
        return _integers_fit(narrow, wide)
    if pt.is_decimal(narrow) and pt.is_decimal(wide):
        return bool(wide.scale >= narrow.scale)
    if pt.is_float32(narrow):
        return bool(pt.is_float64(wide))
    if pt.is_timestamp(wide) and wide.tz is None:
        plain = pt.is_date32(narrow) or (pt.is_timestamp(narrow) and narrow.tz is None)
        return bool(plain) and _unit(narrow) <= _unit(wide)
    return False


def _integers_fit(narrow: pa.DataType, wide: pa.DataType) -> bool:
    if pt.is_float64(wide):
        return bool(narrow.bit_width <= 32)
    if pt.is_float32(wide):
        return bool(narrow.bit_width <= 16)
    # A decimal keeps every integer that it can hold at all; the cast of another fails.
    return bool(pt.is_decimal(wide)) or (pt.is_integer(wide) and wide == pa.uint64())


def _unit(type: pa.DataType) -> int:
    return ("s", "ms", "us", "ns").index(type.unit) if pt.is_timestamp(type) else 0
