"""The best k rows of an ORDER BY ... LIMIT k, and whether rows that are still to come can be among them.

They cannot where a lookup sends its rows in the order that is asked for: what comes after its last page so far is no
better than the last row of that page. Pages that were asked for side by side count from the first one that is still
missing, and a lookup that begins anew, at another mirror, begins anew here. Where a site does not keep to its order
all is read, as if it had declared none, and the report says so.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mediator.catalog.model import AccessMethod
from mediator.flow.events import Landing
from mediator.query.model import BlockStage, Top

Key = tuple[object, ...]
_PLACES = [f"k{n}" for n in range(64)]


class TopRun:
    """One run of a `Top` over the rows of a block of one alias."""

    def __init__(self, top: Top, below: BlockStage) -> None:
        self._top = top
        self._names = [name for name, _ in top.keys]
        fields = {o.name: o.column.field for o in below.block.outputs}
        self._fields = [fields[name] for name in self._names]
        self._descending = [descending for _, descending in top.keys]
        self._best: pa.Table | None = None
        self._bounds: dict[int, Sequel] = {}

    @property
    def complaints(self) -> list[str]:
        return [b.complaint for b in self._bounds.values() if b.complaint]

    def watch(self, ask: int, relation: str, method: AccessMethod) -> None:
        """A lookup was asked that brings all rows that matter; if it brings them in a useful order, mind its pages."""
        wanted = [f"-{f}" if d else f for f, d in zip(self._fields, self._descending, strict=True)]
        shared = 0
        for mine, theirs in zip(wanted, method.order, strict=False):
            if mine != theirs:
                break
            shared += 1
        if shared and method.proves == "all" and method.batch_size == 1:
            columns, descending = self._fields[:shared], self._descending[:shared]
            self._bounds[ask] = Sequel(f"{relation}.{method.name}", columns, descending)

    def came(self, ask: int, landing: Landing) -> None:
        if (bound := self._bounds.get(ask)) is not None:
            bound.came(landing)

    def feed(self, batch: pa.RecordBatch) -> None:
        """Answers that the block has given."""
        if not self._bounds or not batch.num_rows:
            return
        fresh = _keyed([batch.column(name) for name in self._names])
        all_ = fresh if self._best is None else pa.concat_tables([self._best, fresh])
        self._best = all_.take(_sorted(all_, self._descending)[: self._top.count])

    @property
    def certain(self) -> bool:
        """Whether the best k so far stay the best. To be asked when every row that came has been fed."""
        best = self._best
        if best is None or best.num_rows < self._top.count:
            return False
        worst = _row(best, best.num_rows - 1)
        return any(self._beaten(worst, bound) for bound in self._bounds.values())

    def _beaten(self, worst: Key, bound: Sequel) -> bool:
        """Whether nothing that is yet to come is better than this row."""
        if bound.last is None or None in bound.last:
            return False  # where the NULLs are, nobody has seen
        shared = len(bound.last)
        if shared == len(worst) and worst == bound.last:
            return True
        return _before(worst[:shared], bound.last, self._descending)


class Sequel:
    """The pages of one lookup in their order: the last row of those that came without a gap."""

    def __init__(self, method: str, fields: Sequence[str], descending: Sequence[bool]) -> None:
        self.last: Key | None = None
        self.complaint = ""
        self._method = method
        self._fields = fields
        self._descending = descending
        self._next = 0
        self._early: dict[
            int, list[Key]
        ] = {}  # of pages after one that is missing: their first row and their last

    def came(self, landing: Landing) -> None:
        if self.complaint:
            return
        if landing.place == 0:
            self.last, self._next = None, 0
            self._early.clear()
        rows = _keyed([landing.rows.column(f) for f in self._fields])
        if not np.array_equal(_sorted(rows, self._descending).to_numpy(), np.arange(rows.num_rows)):
            self._complain()
            return
        self._early[landing.place] = [_row(rows, n) for n in (0, rows.num_rows - 1) if rows.num_rows]
        while (ends := self._early.pop(self._next, None)) is not None:
            self._next += 1
            for key in ends:
                if self.last is not None and _before(key, self.last, self._descending):
                    self._complain()
                    return
                self.last = key

    def _complain(self) -> None:
        names = ", ".join(f"-{f}" if d else f for f, d in zip(self._fields, self._descending, strict=True))
        self.complaint = f"{self._method} is not as declared: its rows do not come in the order {names}"
        self.last = None


def _keyed(columns: Sequence[pa.Array]) -> pa.Table:
    return pa.Table.from_arrays([pa.chunked_array([c]) for c in columns], _PLACES[: len(columns)])


def _sorted(rows: pa.Table, descending: Sequence[bool]) -> pa.Array:
    """The places of the rows in their order: equal ones as they stand, NULLs last."""
    ways = ["descending" if d else "ascending" for d in descending]
    keys = list(zip(rows.column_names, ways, strict=False))
    return pc.sort_indices(rows, sort_keys=keys)  # with NULLs at the end


def _row(rows: pa.Table, number: int) -> Key:
    return tuple(column[number].as_py() for column in rows.columns)


def _before(left: Key, right: Key, descending: Sequence[bool]) -> bool:
    """Whether one key comes before another, and does not equal it."""
    for mine, theirs, down in zip(left, right, descending, strict=False):
        if mine == theirs:
            continue
        if mine is None or theirs is None:
            return theirs is None
        return bool(mine > theirs) if down else bool(mine < theirs)  # type: ignore[operator]
    return False
