"""Arrow's values as Python's. Nothing of the engine is imported for it."""

from __future__ import annotations

import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt


def python_values(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Times finer than a microsecond, which Python has not, are cut to it. An interval is a timedelta, with 30 days for
    a month, which Python has not either."""
    coarse = _coarse(column.type)
    found: list[Any] = (column if coarse == column.type else pc.cast(column, coarse, safe=False)).to_pylist()
    if not pt.is_interval(column.type):
        return found
    return [None if v is None else _timedelta(*v) for v in found]


def _coarse(kind: pa.DataType) -> pa.DataType:
    if pt.is_timestamp(kind) and kind.unit == "ns":
        return pa.timestamp("us", kind.tz)
    if pt.is_time64(kind) and kind.unit == "ns":
        return pa.time64("us")
    if pt.is_duration(kind) and kind.unit == "ns":
        return pa.duration("us")
    return kind


def _timedelta(months: int, days: int, nanoseconds: int) -> datetime.timedelta:
    return datetime.timedelta(days=30 * months + days, microseconds=nanoseconds // 1_000)
