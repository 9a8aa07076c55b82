"""Chained indexes: each key has a chain of rows, from new to old; `following` names the next one, -1 the end.

The newest row of a key is found in one of two ways. A direct index has a place for every code from `low` on. A hashed
one has slots, probed one after another from the code's home: each holds 32 bits of the code's hash above the row's
number plus one, so that other keys are passed over without a look at their rows. An empty slot is 0.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Codes = NDArray[np.int64]
Ids = NDArray[np.int32]
Mask = NDArray[np.bool_]
Slots = NDArray[np.uint64]

_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_LOW = np.uint64(0xFFFFFFFF)
_TAG = np.uint64(32)
_ONE = np.uint64(1)


@njit(nogil=True, cache=True)
def bounds(codes: Codes, valid: Mask, nulls: bool, start: int, stop: int) -> tuple[int, int]:
    """The least and the greatest code of the valid rows; (0, -1) where there is none."""
    low, high = np.int64(0), np.int64(-1)
    first = True
    for row in range(start, stop):
        if nulls and not valid[row]:
            continue
        code = codes[row]
        if first:
            low, high, first = code, code, False
        low = min(low, code)
        high = max(high, code)
    return low, high


@njit(nogil=True, cache=True)
def link_direct(
    head: Ids, following: Ids, codes: Codes, valid: Mask, nulls: bool, low: int, start: int, stop: int
) -> bool:
    """Put rows [start, stop) at the front of their chains; whether any chain got a second row."""
    again = False
    for row in range(start, stop):
        if nulls and not valid[row]:
            continue
        place = codes[row] - low
        first = head[place]
        following[row] = first
        head[place] = row
        again |= first >= 0
    return again


@njit(nogil=True, cache=True)
def link_hashed(
    slots: Slots,
    following: Ids,
    codes: Codes,
    valid: Mask,
    nulls: bool,
    shift: np.uint64,
    start: int,
    stop: int,
) -> tuple[int, bool]:
    """Put rows [start, stop) at the front of their chains; how many keys are new, and whether any had a row already.

    There must be empty slots.
    """
    fresh = 0
    again = False
    last = len(slots) - 1
    for row in range(start, stop):
        if nulls and not valid[row]:
            continue
        code = codes[row]
        spread = np.uint64(code) * _SPREAD
        tag = spread & _LOW
        slot = np.int64(spread >> shift)
        following[row] = -1
        while True:
            entry = slots[slot]
            if entry == 0:
                fresh += 1
                break
            if entry >> _TAG == tag:
                first = np.int64(entry & _LOW) - 1
                if codes[first] == code:
                    following[row] = first
                    again = True
                    break
            slot = slot + 1 if slot < last else 0
        slots[slot] = tag << _TAG | np.uint64(row + 1)
    return fresh, again


@njit(nogil=True, cache=True)
def find_direct(
    head: Ids, low: int, wanted: Codes, valid: Mask, nulls: bool, start: int, stop: int, at: Ids, rows: Ids
) -> int:
    """The newest row of each of wanted[start:stop] that has one, as pairs; returns how many."""
    n = 0
    size = np.uint64(len(head))
    for i in range(start, stop):
        place = np.uint64(wanted[i] - low)
        row = head[np.int64(place)] if place < size else np.int32(-1)
        at[n] = i
        rows[n] = row
        n += (row >= 0) & (not nulls or valid[i])
    return n


@njit(nogil=True, cache=True)
def find_hashed(
    slots: Slots,
    codes: Codes,
    shift: np.uint64,
    wanted: Codes,
    valid: Mask,
    nulls: bool,
    start: int,
    stop: int,
    at: Ids,
    rows: Ids,
) -> int:
    """The same in slots. Some keys' first slots are loaded together, so that the memory is kept busy."""
    n = 0
    last = len(slots) - 1
    block = 64
    entries = np.empty(block, np.uint64)
    for first in range(start, stop, block):
        count = min(block, stop - first)
        for k in range(count):
            entries[k] = slots[np.int64(np.uint64(wanted[first + k]) * _SPREAD >> shift)]
        for k in range(count):
            i = first + k
            if nulls and not valid[i]:
                continue
            entry = entries[k]
            if entry == 0:
                continue
            code = wanted[i]
            spread = np.uint64(code) * _SPREAD
            tag = spread & _LOW
            slot = np.int64(spread >> shift)
            while entry != 0:
                if entry >> _TAG == tag:
                    row = np.int64(entry & _LOW) - 1
                    if codes[row] == code:
                        at[n] = i
                        rows[n] = row
                        n += 1
                        break
                slot = slot + 1 if slot < last else 0
                entry = slots[slot]
    return n


@njit(nogil=True, cache=True)
def keep_visible(position: Ids, mapped: bool, since: int, limit: int, at: Ids, rows: Ids, count: int) -> int:
    """Of `count` pairs those whose row the query has seen at a position in [since, limit), moved to the front."""
    n = 0
    for k in range(count):
        i, row = at[k], rows[k]
        p = position[row] if mapped else row
        at[n] = i
        rows[n] = row
        n += (p < limit) & (p >= since)
    return n


@njit(nogil=True, cache=True)
def follow_all(
    following: Ids,
    position: Ids,
    mapped: bool,
    since: int,
    limit: int,
    at: Ids,
    rows: Ids,
    count: int,
    out_at: Ids,
    out_rows: Ids,
    n: int,
) -> tuple[int, int]:
    """`count` chains side by side, link by link, as long as all of a link fits: visible rows go to `out`.

    Returns how many are out now, and how many chains go on; where those are is in `at` and `rows`.
    """
    while 0 < count <= len(out_at) - n:
        left = 0
        for k in range(count):
            i, row = at[k], rows[k]
            p = position[row] if mapped else row
            out_at[n] = i
            out_rows[n] = row
            n += (p < limit) & (p >= since)
            after = following[row]
            at[left] = i
            rows[left] = after
            left += after >= 0
        count = left
    return n, count


@njit(nogil=True, cache=True)
def follow_each(
    following: Ids,
    position: Ids,
    mapped: bool,
    since: int,
    limit: int,
    at: Ids,
    rows: Ids,
    count: int,
    taken: int,
    out_at: Ids,
    out_rows: Ids,
) -> tuple[int, int, int]:
    """One chain after the other, until the room is used up; the first has had `taken` of its rows already.

    Returns how many rows are out, which chain is not finished (`count`, when all are), and how many it has had.
    """
    n = 0
    room = len(out_at)
    for k in range(count):
        row = rows[k]
        had = 0
        while row >= 0:
            p = position[row] if mapped else row
            if p < limit and p >= since:
                had += 1
                if had > taken:
                    if n == room:
                        return n, k, had - 1
                    out_at[n] = at[k]
                    out_rows[n] = row
                    n += 1
            row = following[row]
        taken = 0
    return n, count, 0
