"""Sorted runs: ranges of values, found by bisection."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ids = NDArray[np.int32]
Places = NDArray[np.int64]


@njit(nogil=True, cache=True)
def ranges_size(low: Places, high: Places, start: int, room: int) -> tuple[int, int]:
    """How many probes from `start` on fit into `room` places (always one), and how many places they span."""
    total = np.int64(0)
    for i in range(start, low.shape[1]):
        size = np.int64(0)
        for run in range(low.shape[0]):
            size += max(np.int64(0), high[run, i] - low[run, i])
        if i > start and total + size > room:
            return i, total
        total += size
    return low.shape[1], total


@njit(nogil=True, cache=True)
def ranges_rows(
    low: Places,
    high: Places,
    offsets: Places,
    ids: Ids,
    start: int,
    stop: int,
    position: Ids,
    mapped: bool,
    since: int,
    limit: int,
    at: Ids,
    found: Ids,
) -> int:
    """The visible rows in each probe's ranges, as pairs; returns how many."""
    n = 0
    for i in range(start, stop):
        for run in range(low.shape[0]):
            for place in range(low[run, i], high[run, i]):
                row = ids[offsets[run] + place]
                p = position[row] if mapped else row
                if p < limit and p >= since:
                    at[n] = i
                    found[n] = row
                    n += 1
    return n
