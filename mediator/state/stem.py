"""The SteM: one relation's rows, stored and indexed once for all queries, and what they are known to cover.

It knows nothing of any query. What a query has been given of it is that query's `View`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mediator.catalog.model import Relation
from mediator.flow.batch import Rows
from mediator.flow.events import Binding, Landing
from mediator.state.coverage import BindSet, Coverage, Entry, Known
from mediator.state.growable import Growable
from mediator.state.index import Index, Visible
from mediator.state.keys import Keys, Part, keys_of
from mediator.state.rowstore import RowStore
from mediator.state.sorted import SortedRuns
from mediator.store.news import News
from mediator.store.records import Group, Kept

Ids = NDArray[np.int32]

_ROOM = 1 << 16


class SteM:
    def __init__(self, relation: Relation, news: News | None = None) -> None:
        self.relation = relation
        self._news = news  # what the durable store has not been told; none where nothing outlives the process
        self.store = RowStore(relation.schema)
        self.coverage = Coverage(relation.schema)
        self.scanning = 0  # queries that a scan is bringing rows to
        self._received: list[Landing | tuple[BindSet, Binding, Entry]] = []
        self._indexes: dict[tuple[str, ...], Index] = {}
        self._runs: dict[str, SortedRuns] = {}
        # When each row was last sent, so that one that its site has dropped is not served as fresh. A bag's rows all
        # come from one scan: nothing is kept for them.
        self._sent: Growable[np.float64] = Growable(np.float64)

    def index(self, fields: tuple[str, ...]) -> Index:
        if fields not in self._indexes:
            self._indexes[fields] = Index(self.store, fields)
        return self._indexes[fields]

    def apart(self) -> list[Index]:
        """Indexes that may be brought up to date side by side: those that share no column."""
        return [index for fields, index in self._indexes.items() if len(fields) == 1]

    def runs(self, field: str) -> SortedRuns:
        if field not in self._runs:
            self._runs[field] = SortedRuns(self.store, field)
        return self._runs[field]

    def receive(self, landing: Landing) -> None:
        """Rows came for it. They are stored when somebody looks."""
        self._received.append(landing)
        self._stir()

    def promise(self, bind_set: BindSet, binding: Binding, entry: Entry) -> None:
        """An EOT came for it: with what was received before, this is covered."""
        self._received.append((bind_set, binding, entry))
        self._stir()

    def catch_up(self, now: float) -> None:
        """Store and note everything received."""
        for received in self._received:
            if isinstance(received, Landing):
                self.build(received, now)
            else:
                self.coverage.note(*received)
                if self._news is not None:
                    bind_set, binding, entry = received
                    self._news.ended(bind_set, binding, entry.at, entry.until)
        self._received.clear()

    def build(self, landing: Landing, now: float) -> Rows:
        """Store what is not there yet; the ids of all the rows that landed. A second build of it changes nothing."""
        if landing.ids is None:
            landing.ids = (
                self._merged(landing.rows, now) if self.relation.repeats else self.store.append(landing.rows)
            )
            if self._news is not None:
                self._news.came(landing.rows, now)
        return landing.ids

    def news(self, now: float, offset: float) -> Group | None:
        """What came since this was last asked, for the durable store, its times moved by `offset`."""
        if self._news is None:
            return None
        self.catch_up(now)
        return self._news.take(offset)

    def restore(self, kept: Kept, offset: float) -> None:
        """Take back what outlived an earlier process, its times moved by `offset`. For a SteM that is still empty."""
        for batch in kept.rows.to_batches():
            self.store.append(batch)
        if self.relation.repeats:
            self._sent.extend(kept.sent + offset)
        longest = max(m.fresh_for for m in self.relation.methods)
        for c in kept.covered:
            at = c.at + offset
            # No longer than what is declared now allows.
            until = min(c.until + offset, at + longest)
            self.coverage.note(c.bind_set, c.binding, Entry(Known.COMPLETE, at, until))

    def covered(
        self, bind_set: BindSet, binding: Binding, now: float, max_age: float
    ) -> tuple[BindSet, Binding, Entry] | None:
        """The entry by which this lookup can be served from here, if it is fresh enough."""
        self.catch_up(now)
        found = self.coverage.covering(bind_set, binding, now)
        return found if found and now - found[2].at <= max_age else None

    def matching(self, bind_set: BindSet, bindings: Sequence[Binding], since: Sequence[float]) -> Rows:
        """Ids of rows that have these values and were sent no earlier than `since`."""
        if not bind_set:
            if not self.relation.repeats:
                return range(self.store.n)
            sent = self._sent.used >= since[0]
            return range(self.store.n) if sent.all() else np.flatnonzero(sent).astype(np.int32)
        wanted = self._as_rows(bind_set, bindings)
        keys = keys_of([Part(wanted.column(f).keyed(), range(len(bindings))) for f in bind_set])
        at, rows = self._all_matches(keys, bind_set)
        if self.relation.repeats:
            rows = rows[self._sent.data[rows] >= np.asarray(since)[at]]
        return np.unique(rows)

    def _stir(self) -> None:
        if self._news is not None:
            self._news.stirred()

    def _as_rows(self, bind_set: BindSet, bindings: Sequence[Binding]) -> RowStore:
        schema = pa.schema([self.relation.schema.field(f) for f in bind_set])
        arrays = [pa.array(list(c), f.type) for c, f in zip(zip(*bindings, strict=True), schema, strict=True)]
        store = RowStore(schema)
        store.append(pa.RecordBatch.from_arrays(arrays, schema=schema))
        return store

    def _all_matches(self, keys: Keys, fields: tuple[str, ...]) -> tuple[Ids, Ids]:
        index, start, taken = self.index(fields), 0, 0
        at: list[Ids] = [np.zeros(0, np.int32)]
        rows: list[Ids] = [np.zeros(0, np.int32)]
        while start < len(keys):
            found = index.probe(keys, Visible(self.store.n), start, taken, max(_ROOM, len(keys)))
            at.append(found.at)
            rows.append(found.rows)
            start, taken = found.next, found.taken
        return np.concatenate(at), np.concatenate(rows)

    def _merged(self, rows: pa.RecordBatch, now: float) -> Ids:
        """Set semantics: a row equal to a stored one in every column is that row."""
        fresh = RowStore(self.relation.schema)
        fresh.append(rows)
        stored = np.full(fresh.n, -1, np.int32)
        if fresh.n:
            at, twins = self._all_matches(_whole_rows(fresh), _with_whole_row(self.store))
            stored[at] = twins
        missing = np.flatnonzero(stored < 0).astype(np.int32)
        if len(missing):
            firsts = _first_twins(fresh, missing)
            kept = np.unique(firsts)
            added = self.store.append(rows.take(pa.array(kept)))
            self._sent.grow(self.store.n)
            stored[missing] = added.start + np.searchsorted(kept, firsts).astype(np.int32)
        self._sent.data[stored] = now
        return stored


_WHOLE = "#whole row"


def _with_whole_row(store: RowStore) -> tuple[str, ...]:
    """Give the store, once, a column with each row's text, in which a NULL equals a NULL."""
    store.compute(_WHOLE, pa.large_string(), tuple(store.schema.names), _row_texts)
    return (_WHOLE,)


def _whole_rows(store: RowStore) -> Keys:
    (field,) = _with_whole_row(store)
    return keys_of([Part(store.column(field).keyed(), range(store.n))])


def _row_texts(rows: pa.RecordBatch) -> pa.Array:
    # A value's text is unique within its type, and the length before it keeps neighbours apart.
    return pa.array(
        ["".join(f"{len(t)}:{t}" for t in map(repr, row)) for row in _tuples(rows)], pa.large_string()
    )


def _tuples(rows: pa.RecordBatch) -> list[tuple[object, ...]]:
    return list(zip(*(c.to_pylist() for c in rows.columns), strict=True))


def _first_twins(store: RowStore, rows: Ids) -> Ids:
    """For each of these rows the first of them that equals it."""
    first: dict[str, int] = {}
    texts = store.gather(_WHOLE, rows).to_pylist()
    return np.array([first.setdefault(t, r) for t, r in zip(texts, rows.tolist(), strict=True)], np.int32)
