"""Keys as 64-bit codes, and rows gathered by id."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from mediator.state.kernels.memory import AHEAD, prefetch

Codes = NDArray[np.int64]
Ids = NDArray[np.int32]
Mask = NDArray[np.bool_]

_A = np.uint64(0xBF58476D1CE4E5B9)
_B = np.uint64(0x94D049BB133111EB)


@njit(nogil=True, cache=True, inline="always")
def mixed(word: np.uint64) -> np.uint64:
    """Every bit of the result depends on every bit of the word."""
    word = (word ^ (word >> np.uint64(30))) * _A
    word = (word ^ (word >> np.uint64(27))) * _B
    return word ^ (word >> np.uint64(31))


@njit(nogil=True, cache=True)
def combine(codes: Codes, more: Codes) -> None:
    """Fold a further column's codes into those of the columns before it."""
    for i in range(len(codes)):
        codes[i] = np.int64(mixed(np.uint64(codes[i]) + _B) ^ np.uint64(more[i]) * _A)


@njit(nogil=True, cache=True)
def float_codes(values: NDArray[np.float64], out: Codes) -> None:
    """Equal floats get equal codes: both zeros are one, and so are all NaNs (as in DuckDB)."""
    bits = values.view(np.int64)
    for i in range(len(values)):
        value = values[i]
        if value == 0.0:
            out[i] = 0
        elif value != value:
            out[i] = 0x7FF8000000000000
        else:
            out[i] = bits[i]


@njit(nogil=True, cache=True)
def gather(values: NDArray[np.generic], rows: Ids, out: NDArray[np.generic]) -> None:
    last = len(rows) - 1
    for i in range(len(rows)):
        prefetch(values, np.int64(rows[min(i + AHEAD, last)]))
        out[i] = values[rows[i]]


@njit(nogil=True, cache=True)
def count_pairs(left: Codes, right: Codes, slots: Codes, counts: Codes) -> int:
    """How many pairs of one of each are equal. `slots` are a power of two and more than twice as many as `right`, and
    `counts` as many zeros."""
    last = np.uint64(len(slots) - 1)
    for i in range(len(right)):
        at = mixed(np.uint64(right[i])) & last
        while counts[at] and slots[at] != right[i]:
            at = (at + np.uint64(1)) & last
        slots[at] = right[i]
        counts[at] += 1
    found = 0
    for i in range(len(left)):
        at = mixed(np.uint64(left[i])) & last
        while counts[at] and slots[at] != left[i]:
            at = (at + np.uint64(1)) & last
        found += counts[at]
    return found


@njit(nogil=True, cache=True)
def same_codes(left: Codes, at: Ids, right: Codes, rows: Ids, out: Mask) -> None:
    """Clear `out` where left[at] and right[rows] differ."""
    for i in range(len(out)):
        out[i] &= left[at[i]] == right[rows[i]]
