"""Chains: each key has one, of its rows from new to old; `following` names the next row, -1 the end."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from mediator.state.kernels.memory import AHEAD, prefetch

Ids = NDArray[np.int32]


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

    Returns how many are out now, and how many chains go on; where those are is in `at` and `rows`. Where positions are
    row ids, a chain is over when it comes to rows before `since`.
    """
    oldest = 0 if mapped else since
    while 0 < count <= len(out_at) - n:
        left = 0
        for k in range(count):
            prefetch(following, np.int64(rows[min(k + AHEAD, count - 1)]))
            i, row = at[k], rows[k]
            out_at[n] = i
            out_rows[n] = row
            p = np.int64(position[row]) if mapped else np.int64(row)
            n += (p >= since) & (p < limit)
            after = following[row]
            at[left] = i
            rows[left] = after
            left += after >= oldest
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
    oldest = 0 if mapped else since
    for k in range(count):
        row = rows[k]
        had = 0
        while row >= oldest:
            p = np.int64(position[row]) if mapped else np.int64(row)
            if since <= p < limit:
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
