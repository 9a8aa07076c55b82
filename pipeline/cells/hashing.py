"""A number for each value that is the same in every process: equal values of one type have equal numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numba import njit
from numpy.typing import NDArray

from mediator.state.kernels import KERNELS, forget_stale
from mediator.state.kernels.codes import float_codes, mixed

Hashes = NDArray[np.uint64]
_INTERVAL = 16  # bytes: months, days and nanoseconds

forget_stale(Path(__file__).parent, KERNELS)  # or two machines might send one value to two cells


def hashed(values: pa.Array) -> tuple[Hashes, NDArray[np.bool_]]:
    """The number of each value, and where there is one: NULL has none."""
    there = values.is_valid().to_numpy(zero_copy_only=False)
    if pt.is_nested(values.type):
        return _hashed_parts(values), there
    if pt.is_interval(values.type):
        values = values.view(pa.binary(_INTERVAL))
    if _is_text(values.type):
        return _hashed_texts(pc.cast(values, _large(values.type))), there
    out = np.empty(len(values), np.uint64)
    _mix(_words(values), out)
    return out, there


def hashed_rows(rows: pa.RecordBatch) -> Hashes:
    """The number of each row, of all its columns."""
    found = np.zeros(rows.num_rows, np.uint64)
    for column in rows.columns:
        found = found * np.uint64(31) + _or_nobody(column)
    return found


def _is_text(kind: pa.DataType) -> bool:
    checks = (
        pt.is_string,
        pt.is_large_string,
        pt.is_string_view,
        pt.is_binary,
        pt.is_large_binary,
        pt.is_binary_view,
    )
    return any(check(kind) for check in checks) or pt.is_fixed_size_binary(kind)


def _large(kind: pa.DataType) -> pa.DataType:
    text = pt.is_string(kind) or pt.is_large_string(kind) or pt.is_string_view(kind)
    return pa.large_string() if text else pa.large_binary()


def _words(values: pa.Array) -> NDArray[np.int64]:
    """One word for each value; any for NULL."""
    kind = values.type
    if pt.is_floating(kind):
        floats = pc.fill_null(values.cast(pa.float64()), 0.0).to_numpy(zero_copy_only=False)
        out = np.empty(len(values), np.int64)
        float_codes(np.ascontiguousarray(floats), out)
        return out
    if pt.is_uint64(kind):
        words: NDArray[np.int64] = pc.fill_null(values, 0).to_numpy(zero_copy_only=False).view(np.int64)
        return words
    if pt.is_integer(kind) or pt.is_boolean(kind):
        return _filled(values.cast(pa.int64()))
    if pt.is_date32(kind) or pt.is_time32(kind):
        return _filled(values.cast(pa.int32()).cast(pa.int64()))
    if pt.is_date64(kind) or pt.is_time64(kind) or pt.is_timestamp(kind) or pt.is_duration(kind):
        return _filled(values.cast(pa.int64()))
    return _hashed_texts(values.cast(pa.large_string())).view(
        np.int64
    )  # decimals, and whatever else is spelt in one way


def _hashed_parts(values: pa.Array) -> Hashes:
    """Of what its parts have, in their order; a NULL among them is a part as well."""
    if pt.is_struct(values.type):
        out = np.zeros(len(values), np.uint64)
        for part in values.flatten():
            _add(_or_nobody(part), np.arange(len(values) + 1), out)
        return out
    if pt.is_map(values.type):
        values = values.cast(pa.list_(values.type.field(0)))
    lengths = _filled(pc.list_value_length(values).cast(pa.int64()))
    out = lengths.astype(np.uint64)
    _add(_or_nobody(values.flatten()), np.concatenate([[0], np.cumsum(lengths)]), out)
    return out


def _or_nobody(values: pa.Array) -> Hashes:
    numbers, there = hashed(values)
    found: Hashes = np.where(there, numbers, np.uint64(1))
    return found


def _filled(values: pa.Array) -> NDArray[np.int64]:
    filled: NDArray[np.int64] = pc.fill_null(values, 0).to_numpy(zero_copy_only=False)
    return filled


def _hashed_texts(values: pa.Array) -> Hashes:
    out = np.empty(len(values), np.uint64)
    _, offsets, data = values.buffers()
    ends = (
        np.frombuffer(offsets, np.int64, len(values) + 1, values.offset * 8)
        if len(values)
        else np.zeros(1, np.int64)
    )
    heap = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)
    _hash_bytes(ends, heap, out)
    return out


@njit(nogil=True, cache=True)
def _mix(words: NDArray[np.int64], out: Hashes) -> None:
    for i in range(len(words)):
        out[i] = mixed(np.uint64(words[i]) + np.uint64(0x9E3779B97F4A7C15))


@njit(nogil=True, cache=True)
def _add(parts: Hashes, ends: NDArray[np.int64], out: Hashes) -> None:
    for i in range(len(out)):
        for k in range(ends[i], ends[i + 1]):
            out[i] = mixed(out[i] * np.uint64(31) + parts[k])


@njit(nogil=True, cache=True)
def _hash_bytes(ends: NDArray[np.int64], heap: NDArray[np.uint8], out: Hashes) -> None:
    for i in range(len(out)):
        word = np.uint64(0xCBF29CE484222325)
        for k in range(ends[i], ends[i + 1]):
            word = (word ^ np.uint64(heap[k])) * np.uint64(0x100000001B3)
        out[i] = mixed(word)
