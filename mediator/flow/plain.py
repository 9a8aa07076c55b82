"""Python's own values, by which lookups are told apart.

NaN is always the same object: to Python it equals nothing, but for that one; to SQL it equals itself.
"""

from __future__ import annotations

import math

import pyarrow as pa


def plain(values: pa.Array) -> list[object]:
    """Raises `OverflowError` or `ValueError` where Python has no such value."""
    found: list[object] = values.to_pylist()
    if not pa.types.is_floating(values.type):
        return found
    return [math.nan if value != value else value for value in found]
