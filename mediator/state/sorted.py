"""An index for inequalities and bands: sorted runs of one column's values, at least halving in size.

Numbers and what is stored as numbers (dates, times) can be sorted here; NULLs are left out. A NaN is greater than every
number, as in DuckDB.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mediator.state.columns import FixedColumn, is_fixed
from mediator.state.index import Found, Visible
from mediator.state.kernels import runs as run_kernels
from mediator.state.rowstore import RowStore

Ids = NDArray[np.int32]
Mask = NDArray[np.bool_]
Values = NDArray[np.generic]

_NO_IDS: Ids = np.zeros(0, np.int32)
MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def sortable(type_: pa.DataType) -> bool:
    """Whether values of this type are kept as numbers in their own order."""
    return is_fixed(type_)


class SortedRuns:
    def __init__(self, store: RowStore, field: str) -> None:
        self._store = store
        self._field = field
        self.n = 0
        self._runs: list[tuple[Values, Ids]] = []

    def probe(
        self,
        bounds: Sequence[tuple[str, Values]],
        nulls: Mask | None,
        visible: Visible,
        start: int,
        room: int,
    ) -> Found:
        """Rows whose value v satisfies `v op bound` for each of the bounds; a NULL bound matches nothing.

        Whole probes only, so that a run that is merged in between repeats nothing: `taken` is always 0.
        """
        self.extend()
        count = len(bounds[0][1])
        low = np.zeros((len(self._runs), count), np.int64)
        high = np.empty((len(self._runs), count), np.int64)
        for number, (values, _) in enumerate(self._runs):
            high[number] = len(values)
            for op, bound in bounds:
                place = np.searchsorted(values, bound, side="left" if op in ("<", ">=") else "right")
                if op in ("<", "<="):
                    np.minimum(high[number], place, out=high[number])
                else:
                    np.maximum(low[number], place, out=low[number])
        if nulls is not None:
            high[:, nulls] = 0
        stop, total = run_kernels.ranges_size(low, high, start, room)
        at, found = np.empty(total, np.int32), np.empty(total, np.int32)
        offsets = np.cumsum([0, *(len(ids) for _, ids in self._runs)]).astype(np.int64)
        ids = np.concatenate([ids for _, ids in self._runs]) if self._runs else _NO_IDS
        mapped = visible.position is not None
        n = run_kernels.ranges_rows(
            low,
            high,
            offsets,
            ids,
            start,
            stop,
            visible.position if visible.position is not None else _NO_IDS,
            mapped,
            visible.since,
            visible.limit,
            at,
            found,
        )
        return Found(at[:n], found[:n], stop, 0)

    def extend(self) -> None:
        if self.n == self._store.n:
            return
        fresh = range(self.n, self._store.n)
        column = self._store.column(self._field)
        assert isinstance(column, FixedColumn)
        values, valid = column.numbers(fresh)
        ids = np.arange(fresh.start, fresh.stop, dtype=np.int32)
        if valid is not None:
            values, ids = values[valid], ids[valid]
        self.n = self._store.n
        while self._runs and len(self._runs[-1][1]) < 2 * len(ids):
            older = self._runs.pop()
            values, ids = np.concatenate([older[0], values]), np.concatenate([older[1], ids])
        if len(ids):
            order = np.argsort(values, kind="stable")
            self._runs.append((values[order], ids[order]))
