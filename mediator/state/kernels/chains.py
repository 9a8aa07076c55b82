"""Chained indexes: `head` names the newest row of a chain, `following` the next older one, -1 the end.

In a direct index a chain is a key, found by `code - low`. In a hashed one it is a bucket, found by the high bits of
the code's product with an odd constant. A chain runs from new rows to old.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Codes = NDArray[np.int64]
Ids = NDArray[np.int32]
Mask = NDArray[np.bool_]

_SPREAD = np.uint64(0x9E3779B97F4A7C15)


@njit(nogil=True, cache=True, inline="always")
def bucket(code: np.int64, shift: np.uint64) -> np.int64:
    return np.int64((np.uint64(code) * _SPREAD) >> shift)


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
        slot = codes[row] - low
        first = head[slot]
        following[row] = first
        head[slot] = row
        again |= first >= 0
    return again


@njit(nogil=True, cache=True)
def link_hashed(
    head: Ids, following: Ids, codes: Codes, valid: Mask, nulls: bool, shift: np.uint64, start: int, stop: int
) -> None:
    """Put rows [start, stop) at the front of their buckets' chains."""
    for row in range(start, stop):
        if nulls and not valid[row]:
            continue
        slot = bucket(codes[row], shift)
        following[row] = head[slot]
        head[slot] = row


@njit(nogil=True, cache=True)
def probe_single(
    head: Ids, low: int, wanted: Codes, valid: Mask, nulls: bool, start: int,
    limit: int, at: Ids, found: Ids,
) -> int:
    """Probe a direct index whose chains hold one row each and whose rows are seen in order. Returns the matches."""
    n = 0
    size = np.uint64(len(head))
    for i in range(start, len(wanted)):
        slot = np.uint64(wanted[i] - low)
        if slot < size and not (nulls and not valid[i]):
            row = head[np.int64(slot)]
            at[n] = i
            found[n] = row
            n += (row >= 0) & (row < limit)
    return n


@njit(nogil=True, cache=True)
def probe_chains(
    head: Ids, following: Ids, codes: Codes, hashed: bool, low: int, shift: np.uint64,
    wanted: Codes, valid: Mask, nulls: bool, start: int, taken: int,
    position: Ids, mapped: bool, since: int, limit: int, at: Ids, found: Ids,
) -> tuple[int, int, int]:
    """Matches of wanted[start:], the first of which has already had `taken` of its own.

    A row counts when the query has seen it at a position in [since, limit). Returns how many were found, the
    first probe that is not finished (the length, when all are), and how many that one has had by now.
    """
    n = 0
    size = np.uint64(len(head))
    room = len(at)
    for i in range(start, len(wanted)):
        if nulls and not valid[i]:
            taken = 0
            continue
        code = wanted[i]
        if hashed:
            row = head[bucket(code, shift)]
        else:
            slot = np.uint64(code - low)
            row = head[np.int64(slot)] if slot < size else np.int32(-1)
        had = 0
        while row >= 0:
            if not hashed or codes[row] == code:
                p = position[row] if mapped else row
                if p < limit and p >= since:
                    had += 1
                    if had > taken:
                        if n == room:
                            return n, i, had - 1
                        at[n] = i
                        found[n] = row
                        n += 1
            row = following[row]
        taken = 0
    return n, len(wanted), 0


@njit(nogil=True, cache=True)
def first_of(
    head: Ids, following: Ids, codes: Codes, hashed: bool, low: int, shift: np.uint64,
    wanted: Codes, valid: Mask, nulls: bool, found: Ids,
) -> None:
    """For each wanted code the newest row that has it, else -1."""
    size = np.uint64(len(head))
    for i in range(len(wanted)):
        found[i] = -1
        if nulls and not valid[i]:
            continue
        code = wanted[i]
        if hashed:
            row = head[bucket(code, shift)]
            while row >= 0 and codes[row] != code:
                row = following[row]
        else:
            slot = np.uint64(code - low)
            row = head[np.int64(slot)] if slot < size else np.int32(-1)
        found[i] = row
