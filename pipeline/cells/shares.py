"""Into how many shares each dimension is cut, so that each cell has the fewest rows.

All cuts are looked at, dimension by dimension, but for those that cannot become better than one that is known: however
the cells that are left are given out, no alias is cut by more than all of them. So what is found is the best there is,
unless more than `_MOST` beginnings are still open at once; then those that promise most go on, and it may be missed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

_MOST = 1 << 20
_EQUAL = 1.0 + 1e-12  # fullnesses that differ by less differ by how they were added up

Shares = tuple[int, ...]
Dimensions = Sequence[Collection[int]]  # the aliases of each


def shares_of(dimensions: Dimensions, sizes: Sequence[float], cells: int) -> Shares:
    """Of at most so many cells; among cuts that are as good, the fewer cells."""
    if not dimensions:
        return ()
    bound = fullness(dimensions, _grown(dimensions, sizes, cells), sizes) * _EQUAL
    begun = np.ones((1, 0), np.int64)
    for place in range(len(dimensions)):
        begun = _longer(begun, cells, last=place + 1 == len(dimensions))
        least = _least(dimensions, begun, sizes, cells)
        open_ = np.flatnonzero(least <= bound)
        if len(open_) > _MOST:
            open_ = open_[np.argpartition(least[open_], _MOST)[:_MOST]]
        begun, least = begun[open_], least[open_]
    good = begun[least <= least.min() * _EQUAL]
    return _trimmed(dimensions, tuple(good[np.argmin(np.prod(good, axis=1))].tolist()), sizes)


def fullness(dimensions: Dimensions, shares: Shares, sizes: Sequence[float]) -> float:
    """Rows of each cell."""
    return sum(
        size / prod(share for aliases, share in zip(dimensions, shares, strict=True) if alias in aliases)
        for alias, size in enumerate(sizes)
    )


def _longer(begun: NDArray[np.int64], cells: int, last: bool) -> NDArray[np.int64]:
    """Each beginning with each share that the next dimension can have; the last one takes all that there are left."""
    room = cells // np.prod(begun, axis=1, dtype=np.int64)
    if last:
        return np.column_stack([begun, room])
    which = np.repeat(np.arange(len(begun)), room)
    first = np.repeat(np.cumsum(room) - room, room)
    return np.column_stack([begun[which], np.arange(len(which)) - first + 1])


def _least(
    dimensions: Dimensions, begun: NDArray[np.int64], sizes: Sequence[float], cells: int
) -> NDArray[np.float64]:
    """The rows that each cell has at least, whatever the other dimensions' shares."""
    done = begun.shape[1]
    left = cells // np.prod(begun, axis=1, dtype=np.int64)
    rows = np.zeros(len(begun))
    for alias, size in enumerate(sizes):
        parts = np.ones(len(begun), np.int64)
        for place in range(done):
            if alias in dimensions[place]:
                parts *= begun[:, place]
        if any(alias in aliases for aliases in dimensions[done:]):
            parts *= left
        rows += size / parts
    return rows


def _grown(dimensions: Dimensions, sizes: Sequence[float], cells: int) -> Shares:
    """A good cut to begin with: whatever step helps most for the cells that it costs, as long as there is one."""
    shares: Shares = (1,) * len(dimensions)
    while True:
        steps = [(*shares[:n], shares[n] + 1, *shares[n + 1 :]) for n in range(len(shares))]
        gains = {
            step: (fullness(dimensions, shares, sizes) - fullness(dimensions, step, sizes))
            / (prod(step) - prod(shares))
            for step in steps
            if prod(step) <= cells
        }
        if not gains:
            return shares
        shares = max(gains, key=gains.__getitem__)


def _trimmed(dimensions: Dimensions, shares: Shares, sizes: Sequence[float]) -> Shares:
    """Without the shares that do not help: what is cut has so few rows that it does not count."""
    rows = fullness(dimensions, shares, sizes) * _EQUAL
    for place in range(len(shares)):
        for fewer in range(1, shares[place]):
            tried = (*shares[:place], fewer, *shares[place + 1 :])
            if fullness(dimensions, tried, sizes) <= rows:
                shares = tried
                break
    return shares
