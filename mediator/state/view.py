"""What one query has seen of a SteM: which rows, in which order, and what it knows to be complete.

Positions count the rows delivered to the query. As long as those are the store's first rows in their own order, a
position is a row id and nothing is kept.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from mediator.flow.batch import Rows, as_ids
from mediator.state.coverage import Coverage
from mediator.state.growable import Growable
from mediator.state.index import Visible
from mediator.state.keys import Part, keys_of
from mediator.state.stem import SteM

Ids = NDArray[np.int32]
Mask = NDArray[np.bool_]

UNSEEN = np.iinfo(np.int32).max


class View:
    """A query's own sight of one relation."""

    def __init__(self, stem: SteM) -> None:
        self.stem = stem
        self.coverage = Coverage(stem.relation.schema)
        self._order = _Order()

    @property
    def count(self) -> int:
        """How many rows the query has been given."""
        return self._order.count

    def deliver(self, ids: Rows) -> Rows:
        """Give the query these rows; those it has already, or another version of, are left out."""
        fresh = ids
        if self.stem.relation.repeats or not self._order.follows(ids):
            fresh = self._order.unseen(ids, self.stem.store.n)
            if self.stem.relation.key and len(fresh):
                fresh = self._without_versions(fresh)
        self._order.add(fresh, self.stem.store.n)
        return fresh

    def given(self, since: int) -> Rows:
        """The rows that the query has been given from this position on, in that order."""
        return self._order.between(since, self.count)

    def visible(self, limit: int, since: int = 0) -> Visible:
        return Visible(limit, since, self._order.positions(self.stem.store.n))

    def _without_versions(self, ids: Ids) -> Ids:
        """Drop rows whose key the query has seen: the first version to arrive is the one it keeps."""
        key = self.stem.relation.key
        index = self.stem.index(key)
        keys = keys_of([Part(self.stem.store.column(f).keyed(), ids) for f in key])
        keep = np.ones(len(ids), np.bool_)
        start = taken = 0
        positions = self._order.positions(self.stem.store.n)
        while start < len(keys):
            found = index.probe(keys, Visible(UNSEEN), start, taken, max(64, 2 * len(keys)))
            seen = found.rows < self.count if positions is None else positions[found.rows] != UNSEEN
            earlier = np.isin(found.rows, ids) & (found.rows < ids[found.at])
            keep[found.at[seen | earlier]] = False
            start, taken = found.next, found.taken
        return ids[keep]


class AliasView:
    """One alias's share of a view: the rows that pass the alias's selections."""

    def __init__(self, view: View, select: Callable[[Rows], Mask] | None) -> None:
        self.view = view
        self._select = select
        self._order = _Order(sparse=True) if select else view._order
        self._places: Growable[np.int32] = Growable(np.int32)

    @property
    def selected(self) -> int:
        return self._places.n if self._select else self.view.count

    def admit(self, fresh: Rows, start: int) -> Rows:
        """Of rows that the view was just given, from position `start` on, those that pass."""
        if self._select is None or not len(fresh):
            return fresh
        passes = self._select(fresh)
        ids = as_ids(fresh)[passes]
        places = (np.flatnonzero(passes) + start).astype(np.int32)
        self._order.place(ids, places, self.view.stem.store.n)
        self._places.extend(places)
        return ids

    def visible(self, limit: int, since: int = 0) -> Visible:
        if self._select is None:
            return self.view.visible(limit, since)
        return Visible(limit, since, self._order.positions(self.view.stem.store.n))

    def ids(self, limit: int, since: int = 0) -> Rows:
        """The rows seen at positions in [since, limit), in that order."""
        if self._select is None:
            return self._order.between(since, limit)
        first, last = np.searchsorted(self._places.used, [since, limit])
        return self._order.between(int(first), int(last))


class _Order:
    """Which rows came, in which order: `id = order[k]` and `position[id]`, or nothing while both say `k`."""

    def __init__(self, sparse: bool = False) -> None:
        self.count = 0
        self._ids: Growable[np.int32] | None = Growable(np.int32) if sparse else None
        self._position: Growable[np.int32] | None = Growable(np.int32, fill=UNSEEN) if sparse else None

    def follows(self, ids: Rows) -> bool:
        """Whether adding these keeps order and ids the same."""
        return self._ids is None and isinstance(ids, range) and (not len(ids) or ids.start == self.count)

    def unseen(self, ids: Rows, total: int) -> Ids:
        found = np.unique(as_ids(ids))
        if self._position is None:
            fresh: Ids = found[found >= self.count]
        else:
            self._position.grow(total)
            fresh = found[self._position.data[found] == UNSEEN]
        return fresh

    def add(self, ids: Rows, total: int) -> None:
        start = self.count
        if not self.follows(ids):
            if self._ids is None and _is_run(ids, start):
                self.count += len(ids)
                return
            self._spell_out(total)
            self.place(as_ids(ids), np.arange(start, start + len(ids), dtype=np.int32), total)
        else:
            self.count += len(ids)

    def place(self, ids: Ids, places: Ids, total: int) -> None:
        assert self._ids is not None
        assert self._position is not None
        self._position.grow(total)
        self._position.data[ids] = places
        self._ids.extend(ids)
        self.count += len(ids)

    def positions(self, total: int) -> Ids | None:
        if self._position is None:
            return None
        self._position.grow(total)
        return self._position.used

    def between(self, first: int, last: int) -> Rows:
        return range(first, last) if self._ids is None else self._ids.used[first:last]

    def _spell_out(self, total: int) -> None:
        if self._ids is None:
            self._ids = Growable(np.int32)
            self._ids.extend(np.arange(self.count, dtype=np.int32))
            self._position = Growable(np.int32, fill=UNSEEN)
            self._position.grow(total)
            self._position.data[: self.count] = self._ids.used


def _is_run(ids: Rows, start: int) -> bool:
    return bool(len(ids) and ids[0] == start and ids[-1] == start + len(ids) - 1)
