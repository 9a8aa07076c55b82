"""What rows go by in all cells: the place that one has in a cell's store is another row's in another cell.

Rows that are alike go to the same cells. Where they are one row, they have one number; in a bag they are counted, and
each of those cells counts them alike, in whatever order they came.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline.cells.hashing import hashed_rows

if TYPE_CHECKING:
    from mediator.state.rowstore import RowStore

_NEXT = np.uint64(0x9E3779B97F4A7C15)  # odd, so that it takes long to come round


class Naming:
    """Of the rows of one store."""

    def __init__(self, store: RowStore, bag: bool) -> None:
        self._store, self._bag = store, bag
        self._names = np.empty(0, np.int64)
        self._seen: dict[int, int] = {}  # how many rows of a bag are alike

    def names(self, rows: pa.Array) -> pa.Array:
        """Of rows by their places in the store."""
        if len(self._names) < self._store.n:
            self._names = np.concatenate([self._names, self._further(len(self._names), self._store.n)])
        return pa.array(self._names[rows.to_numpy()])

    def _further(self, start: int, stop: int) -> NDArray[np.int64]:
        found = hashed_rows(self._store.rows(range(start, stop)))
        if self._bag:
            found = found + _NEXT * np.array([self._count(number) for number in found.tolist()], np.uint64)
        return found.view(np.int64)

    def _count(self, number: int) -> int:
        before = self._seen.get(number, 0)
        self._seen[number] = before + 1
        return before
