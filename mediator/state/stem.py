"""The SteM: one relation's rows, stored and indexed once for all queries, and what they are known to cover.

It knows nothing of any query. What a query has been given of it is that query's `View`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mediator.catalog.bindfields import EQUAL, holds, operator_of, parted, subschema
from mediator.catalog.model import Relation
from mediator.flow.batch import Rows, joined, taken
from mediator.flow.events import Binding, Landing
from mediator.state.coverage import FOREVER, BindSet, Coverage, Entry, Known
from mediator.state.index import Index, Visible
from mediator.state.keys import NO_IDS, Keys, Part, keys_of
from mediator.state.rowstore import RowStore
from mediator.state.sorted import SortedRuns
from mediator.state.vocabulary import Vocabulary
from mediator.store.news import News
from mediator.store.records import Group, Kept

Ids = NDArray[np.int32]

_ROOM = 1 << 16
_SLOT = 16  # bytes of an index for each row
_EARLIER = -1  # the number of no lookup of this process


@dataclass(frozen=True, slots=True)
class _End:
    """An EOT that was received: what it covers, and what came before it."""

    bind_set: BindSet
    bindings: Sequence[Binding]
    entry: Entry
    landings: Sequence[Landing]


class SteM:
    def __init__(self, relation: Relation, news: News | None = None) -> None:
        self.relation = relation
        self._news = news  # what the durable store has not been told; none where nothing outlives the process
        self.store = RowStore(relation.schema)
        self.coverage = Coverage(relation.schema)
        self.scanning = 0  # queries that a scan is bringing rows to
        self._scan: int | None = None  # of a bag: the number of the lookup that its first rows are of
        self._mark = object()  # by which landings know it, and do not keep it
        self._elsewhere: dict[Landing, Rows] = {}  # what a SteM in whose place this one came has stored too
        self._received: list[Landing | _End] = []
        self._indexes: dict[tuple[str, ...], Index] = {}
        self._runs: dict[str, SortedRuns] = {}

    @property
    def size(self) -> int:
        """Bytes of memory, about."""
        return self.store.size + _SLOT * self.store.n * len(self._indexes)

    def index(self, fields: tuple[str, ...]) -> Index:
        if fields not in self._indexes:
            self._indexes[fields] = Index(self.store, fields)
        return self._indexes[fields]

    def behind(self, fields: tuple[str, ...]) -> int:
        """How many rows an index on these fields would have to take in before it is of use."""
        index = self._indexes.get(fields)
        return self.store.n - (0 if index is None else index.n)

    def apart(self) -> list[Index]:
        """Indexes that share no column."""
        return [index for fields, index in self._indexes.items() if len(fields) == 1]

    def runs(self, field: str) -> SortedRuns:
        if field not in self._runs:
            self._runs[field] = SortedRuns(self.store, field)
        return self._runs[field]

    def receive(self, landing: Landing) -> None:
        """Rows came for it. They are stored when somebody looks."""
        self._received.append(landing)
        self._stir()

    def promise(
        self, bind_set: BindSet, bindings: Sequence[Binding], entry: Entry, landings: Sequence[Landing]
    ) -> None:
        """An EOT came for it: with these landings, which were received before, this is covered."""
        self._received.append(_End(bind_set, bindings, entry, landings))
        self._stir()

    def catch_up(self, now: float) -> None:
        """Store and note everything received."""
        for received in self._received:
            if isinstance(received, Landing):
                self.build(received, now)
            else:
                self._note(received, now)
        self._received.clear()

    def build(self, landing: Landing, now: float) -> Rows:
        """Store what is not there yet; the ids of all the rows that landed. A second build of it changes nothing."""
        ids = landing.ids if landing.stem is self._mark else self._elsewhere.get(landing)
        if ids is None:
            if self._scan is None and landing.rows.num_rows:
                self._scan = landing.lookup
            ids = self._merged(landing.rows) if self.relation.repeats else self.store.append(landing.rows)
            if self._news is not None and landing.kept and self._lasts(landing.lookup):
                self._news.came(landing.rows, now, landing.lookup)
            if landing.ids is None:
                landing.ids, landing.stem = ids, self._mark
            else:
                self._elsewhere[landing] = ids
        return ids

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
        self._scan = _EARLIER if self.store.n else None
        methods = self.relation.methods
        longest = max(m.fresh_for for m in methods)
        # No site says "for ever": that was said before the site was believed.
        unsaid = max(m.fresh_for if m.unsaid is None else m.unsaid for m in methods)
        for c in kept.covered:
            at = c.at + offset
            # No longer than what is declared now allows.
            until = min(c.until + offset, at + (longest if c.until < FOREVER else unsaid))
            brought: Rows = range(self.store.n)
            if self.relation.repeats:
                brought = _compact(kept.brought.get(c.lookup, NO_IDS))
            self.coverage.note(c.bind_set, c.binding, Entry(Known.COMPLETE, at, until, brought=brought))

    def covered(
        self, bind_set: BindSet, binding: Binding, now: float, max_age: float
    ) -> tuple[BindSet, Binding, Entry] | None:
        """The entry by which this lookup can be served from here, if it is fresh enough."""
        self.catch_up(now)
        found = self.coverage.covering(bind_set, binding, now)
        return found if found and now - found[2].at <= max_age else None

    def vouched(self, bind_set: BindSet, binding: Binding, entry: Entry) -> Rows:
        """Ids of the rows that an entry of this binding vouches for: those that its own lookup brought."""
        if not bind_set:
            return range(self.store.n) if entry.brought is None else entry.brought
        equal = [n for n, name in enumerate(bind_set) if operator_of(name) == EQUAL]
        fields, values = tuple(bind_set[n] for n in equal), tuple(binding[n] for n in equal)
        ids = self._having(fields, values, entry.brought)
        for name, value in zip(bind_set, binding, strict=True):
            field, operator = parted(name)
            if operator != EQUAL and len(ids):
                column = self.store.gather(field, ids)
                met = holds(name, column, pa.scalar(value, column.type)).fill_null(False)
                ids = taken(ids, np.flatnonzero(met.to_numpy(zero_copy_only=False)))
        return ids

    def _having(self, fields: tuple[str, ...], values: Binding, among: Rows | None) -> Rows:
        """Ids of the rows that have these values."""
        if not fields:
            return range(self.store.n) if among is None else among
        wanted = self._as_rows(fields, [values])
        keys = keys_of([Part(wanted.column(f).keyed(), range(1)) for f in fields])
        _, rows = self._all_matches(keys, fields)
        rows = np.unique(rows)
        return rows if among is None else rows[_contained(rows, among)]

    def _note(self, end: _End, now: float) -> None:
        lookup = end.landings[0].lookup if end.landings else 0
        ids = [self.build(landing, now) for landing in end.landings]
        # An end that names no landings, as those of what no site sends do not, is of all there is.
        if ids or self.relation.repeats or not self._lasts(lookup):
            entry = replace(end.entry, brought=_all_of(ids))
        else:
            entry = end.entry
        for binding in end.bindings:
            known = self.coverage.get(end.bind_set, binding)
            if known is None or known.at <= entry.at:  # else this is told late, by a query that was busy
                self.coverage.note(end.bind_set, binding, entry)
            if self._news is not None and self._lasts(lookup):
                self._news.ended(end.bind_set, binding, entry.at, entry.until, lookup)

    def _lasts(self, lookup: int) -> bool:
        """Whether what a lookup brings may go to the durable store. A second scan of a bag may not, which a query sends
        that began before the first one broke off: the store could not tell their rows apart."""
        return self.relation.repeats or self._scan in (None, lookup)

    def _stir(self) -> None:
        if self._news is not None:
            self._news.stirred()

    def _as_rows(self, bind_set: BindSet, bindings: Sequence[Binding]) -> RowStore:
        schema = subschema(self.relation.schema, bind_set)
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

    def _merged(self, rows: pa.RecordBatch) -> Ids:
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
            stored[missing] = added.start + np.searchsorted(kept, firsts).astype(np.int32)
        return stored


def updates(stems: Iterable[SteM]) -> list[Callable[[], None]]:
    """What brings indexes up to date, in pieces that may be done side by side: a vocabulary is one person's work, with
    the indexes of its columns."""
    spoken: dict[Vocabulary, list[Index]] = {}
    pieces: list[Callable[[], None]] = []
    for stem in stems:
        for vocabulary in stem.store.vocabularies():
            spoken.setdefault(vocabulary, [])
        for index in stem.apart():
            if index.vocabulary is None:
                pieces.append(index.extend)
            else:
                spoken[index.vocabulary].append(index)
    return [partial(_update, vocabulary, indexes) for vocabulary, indexes in spoken.items()] + pieces


def _update(vocabulary: Vocabulary, indexes: Sequence[Index]) -> None:
    vocabulary.settle()
    for index in indexes:
        index.extend()


def _all_of(parts: Sequence[Rows]) -> Rows:
    """Each of these ids once, in ascending order."""
    ids = joined(parts) if parts else NO_IDS
    return ids if isinstance(ids, range) else _compact(np.unique(ids))


def _compact(ids: Ids) -> Rows:
    """Ids in ascending order, without keeping those that are a range."""
    if len(ids) and int(ids[-1]) - int(ids[0]) + 1 == len(ids):
        return range(int(ids[0]), int(ids[-1]) + 1)
    return ids


def _contained(ids: Ids, among: Rows) -> NDArray[np.bool_]:
    """Which of the ids are among those, which are in ascending order."""
    if isinstance(among, range):
        return (ids >= among.start) & (ids < among.stop)
    if not len(among):
        return np.zeros(len(ids), np.bool_)
    at = np.minimum(np.searchsorted(among, ids), len(among) - 1)
    found: NDArray[np.bool_] = among[at] == ids
    return found


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
