"""A place for every code from `low` on, which holds the newest row of that code plus one; 0 where there is none."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from mediator.state.kernels.memory import AHEAD, prefetch

Codes = NDArray[np.int64] | NDArray[np.int32]  # the numbers of strings are the narrower ones
Ids = NDArray[np.int32]
Mask = NDArray[np.bool_]


@njit(nogil=True, cache=True)
def bounds(codes: Codes, valid: Mask, nulls: bool, start: int, stop: int) -> tuple[int, int]:
    """The least and the greatest code of the valid rows in [start, stop); (0, -1) where there is none."""
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
    head: Ids, low: int, following: Ids, codes: Codes, valid: Mask, nulls: bool, start: int, stop: int
) -> tuple[int, bool]:
    """Put rows [start, stop) at the front of their chains, up to the first one that has no place.

    Returns which one that is (`stop`, when all have one), and whether any chain got a second row.
    """
    again = False
    size, last = np.uint64(len(head)), stop - 1
    for row in range(start, min(start + AHEAD, stop)):
        prefetch(head, codes[row] - low)
    for row in range(start, stop):
        prefetch(head, codes[min(row + AHEAD, last)] - low)
        if nulls and not valid[row]:
            continue
        place = np.uint64(codes[row] - low)
        if place >= size:
            return row, again
        first = head[np.int64(place)]
        following[row] = first - 1
        head[np.int64(place)] = row + 1
        again |= first > 0
    return stop, again


@njit(nogil=True, cache=True)
def find_direct(
    head: Ids,
    low: int,
    wanted: Codes,
    valid: Mask,
    nulls: bool,
    ids: Ids,
    picked: bool,
    offset: int,
    start: int,
    stop: int,
    position: Ids,
    mapped: bool,
    since: int,
    limit: int,
    at: Ids,
    rows: Ids,
) -> int:
    """The newest row of each of the keys [start, stop), where the query has seen it, as pairs; returns how many."""
    n = 0
    size, last = np.uint64(len(head)), stop - 1
    if picked:
        for k in range(start, min(start + 2 * AHEAD, stop)):
            prefetch(wanted, np.int64(ids[k]))
        for k in range(start, min(start + AHEAD, stop)):
            prefetch(head, wanted[ids[k]] - low)
    else:
        for k in range(start, min(start + AHEAD, stop)):
            prefetch(head, wanted[offset + k] - low)
    for k in range(start, stop):
        soon = min(k + AHEAD, last)
        if picked:
            prefetch(wanted, np.int64(ids[min(k + 2 * AHEAD, last)]))
            prefetch(head, wanted[ids[soon]] - low)
            key = np.int64(ids[k])
        else:
            prefetch(head, wanted[offset + soon] - low)
            key = offset + k
        place = np.uint64(wanted[key] - low)
        row = np.int64(head[np.int64(place)]) - 1 if place < size else np.int64(-1)
        at[n] = k
        rows[n] = row
        p = np.int64(position[row if row > 0 else 0]) if mapped else row
        n += (row >= 0) & (p >= since) & (p < limit) & (not nulls or valid[key])
    return n
