"""Keys are taken a block at a time: which rows they lie in."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from mediator.state.kernels.memory import prefetch

Ids = NDArray[np.int32]

BLOCK = 128  # keys that are taken together: by the end of a pass what the first of them needs has come


@njit(nogil=True, cache=True, inline="always")
def block_rows(
    data: NDArray[np.int64] | NDArray[np.int32],
    width: int,
    ids: Ids,
    picked: bool,
    offset: int,
    first: int,
    stop: int,
    rows: NDArray[np.int64],
) -> int:
    """The rows of the keys from `first` on, as many as there are in a block, and `data` about to be there for them.

    Keys are the rows `ids`, where those are `picked`, else a range that begins at `offset`.
    """
    count = min(BLOCK, stop - first)
    if picked:
        for k in range(count):
            rows[k] = ids[first + k]
            prefetch(data, width * rows[k])
    else:
        for k in range(count):
            rows[k] = offset + first + k
    return count
