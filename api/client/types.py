"""The names that SQL has for the types of columns."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as pt

_NAMES = {
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INTEGER",
    pa.int64(): "BIGINT",
    pa.uint8(): "UTINYINT",
    pa.uint16(): "USMALLINT",
    pa.uint32(): "UINTEGER",
    pa.uint64(): "UBIGINT",
    pa.float16(): "REAL",
    pa.float32(): "REAL",
    pa.float64(): "DOUBLE",
    pa.date32(): "DATE",
    pa.date64(): "DATE",
    pa.null(): "NULL",
}


def sql_name(kind: pa.DataType) -> str:
    """DuckDB's name for a type of Arrow's."""
    if kind in _NAMES:
        return _NAMES[kind]
    if pt.is_string(kind) or pt.is_large_string(kind) or pt.is_string_view(kind):
        return "VARCHAR"
    if pt.is_decimal(kind):
        return f"DECIMAL({kind.precision},{kind.scale})"
    if pt.is_timestamp(kind):
        return "TIMESTAMP" if kind.tz is None else "TIMESTAMP WITH TIME ZONE"
    if pt.is_time(kind):
        return "TIME"
    if pt.is_duration(kind) or pt.is_interval(kind):
        return "INTERVAL"
    if pt.is_binary(kind) or pt.is_large_binary(kind) or pt.is_fixed_size_binary(kind):
        return "BLOB"
    if pt.is_dictionary(kind):
        return sql_name(kind.value_type)
    if pt.is_list(kind) or pt.is_large_list(kind):
        return f"{sql_name(kind.value_type)}[]"
    if pt.is_struct(kind):
        return "STRUCT"
    if pt.is_map(kind):
        return "MAP"
    return str(kind).upper()
