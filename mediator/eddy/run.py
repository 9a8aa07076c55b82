"""One block's run: what a query has seen of each alias, and how rows are read from there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mediator.flow.batch import Batch, Own, Rows, Signature, as_ids, joined, taken
from mediator.query.model import ROW_ID, Alias, Block, Column, Predicate
from mediator.state.rowstore import PackedRows, RowStore
from mediator.state.stem import SteM
from mediator.state.view import AliasView, View

Mask = NDArray[np.bool_]
Positions = NDArray[np.int32]


class Run:
    """A block laid over the SteMs of its relations."""

    def __init__(self, block: Block, stems: Mapping[str, SteM], largest_batch: int) -> None:
        self.block = block
        self.largest_batch = largest_batch
        self.views = {name: View(stem) for name, stem in stems.items()}
        for alias in block.aliases:
            store = stems[alias.relation.name].store
            _compute(store, alias)
        self.aliases = tuple(self._alias_view(a.number) for a in block.aliases)

    def view(self, alias: int) -> View:
        return self.aliases[alias].view

    def deliver(self, relation: str, ids: Rows) -> list[Batch]:
        """Give the query these rows; the batches of those that are new to it, for each alias of the relation."""
        view = self.views[relation]
        before = view.count
        fresh = view.deliver(ids)
        batches: list[Batch] = []
        for alias in self.block.aliases:
            if alias.relation.name == relation:
                rows = self.aliases[alias.number].admit(fresh, before)
                batches += self._singletons(alias.number, rows, self._seen(alias.number, relation, before))
        return batches

    def pass_by(self, alias: int, rows: pa.RecordBatch) -> list[Batch]:
        """Batches of rows of the alias that pass its selections and are not built."""
        store = RowStore.of(self.block.aliases[alias].relation.schema, rows)
        _compute(store, self.block.aliases[alias])
        kept: Rows = range(store.n)
        selections = self._selections(alias)
        if selections:
            kept = np.flatnonzero(_selected(selections, store, kept)).astype(np.int32)
        batches = self._singletons(alias, kept, (0,) * len(self.aliases))
        return [batch.with_(own=Own(alias, store)) for batch in batches]

    def packed(self, batches: Sequence[Batch]) -> Batch:
        """Unbuilt batches that are alike as one."""
        own = batches[0].own
        if len(batches) == 1 or own is None:
            return batches[0]
        parts = [(self.store(b, own.alias), r) for b in batches if (r := b.rows[own.alias]) is not None]
        store = PackedRows(parts)
        _compute(store, self.block.aliases[own.alias])
        vectors = [[r for r in of if r is not None] for of in zip(*(b.rows for b in batches), strict=True)]
        rows: list[Rows | None] = [joined(v) if v else None for v in vectors]
        rows[own.alias] = range(store.n)
        return batches[0].with_(rows=tuple(rows), own=Own(own.alias, store))

    def store(self, batch: Batch, alias: int) -> RowStore:
        """Where the batch's rows of an alias lie."""
        if batch.own is not None and batch.own.alias == alias:
            own: RowStore = batch.own.store
            return own
        return self.view(alias).stem.store

    def gather(self, batch: Batch, column: Column, at: Positions | slice | None = None) -> pa.Array:
        """A column of the batch's rows, or of those at some positions."""
        rows = batch.rows[column.alias]
        assert rows is not None
        if at is not None:
            rows = taken(rows, at)
        return read(self.store(batch, column.alias), column.field, rows)

    def gather_all(self, batches: Sequence[Batch], column: Column) -> pa.Array:
        """A column of all rows of these batches, one after the other."""
        if len({id(self.store(b, column.alias)) for b in batches}) > 1:
            return pa.concat_arrays([self.gather(b, column) for b in batches])
        rows = joined([r for b in batches if (r := b.rows[column.alias]) is not None])
        return read(self.store(batches[0], column.alias), column.field, rows)

    def prepare(self, batch: Batch, columns: Iterable[Column]) -> None:
        """Complete these columns, so that several may be gathered at once."""
        for column in columns:
            if column.field != ROW_ID:
                self.store(batch, column.alias).column(column.field)

    def everything(self, alias: int) -> Batch:
        """All rows that the query has of an alias, as a batch that may join with all it has of the others."""
        view = self.aliases[alias]
        seen = tuple(a.view.count for a in self.aliases)
        return self._single(alias, view.ids(view.view.count), seen)

    def _alias_view(self, number: int) -> AliasView:
        alias = self.block.aliases[number]
        view, selections = self.views[alias.relation.name], self._selections(number)
        return AliasView(view, partial(_selected, selections, view.stem.store) if selections else None)

    def _selections(self, alias: int) -> list[Predicate]:
        """The predicates on this alias alone that are tested on every row that comes."""
        return [p for p in self.block.predicates if p.aliases == 1 << alias and not p.costly]

    def _seen(self, newest: int, relation: str, before: int) -> tuple[int, ...]:
        """How much of each alias a new batch may join with. Rows of one relation are ordered by (time, alias), so
        that in a self-join a row meets itself once."""
        return tuple(
            before if a.relation.name == relation and a.number > newest else self.view(a.number).count
            for a in self.block.aliases
        )

    def _singletons(self, alias: int, rows: Rows, seen: tuple[int, ...]) -> list[Batch]:
        step = self.largest_batch
        return [self._single(alias, rows[i : i + step], seen) for i in range(0, len(rows), step)]

    def _single(self, alias: int, rows: Rows, seen: tuple[int, ...]) -> Batch:
        vectors: list[Rows | None] = [None] * len(self.aliases)
        vectors[alias] = rows
        return Batch(Signature(1 << alias), tuple(vectors), seen)


def read(store: RowStore, field: str, rows: Rows) -> pa.Array:
    """A field of stored rows; or their ids, where it is called so."""
    if field == ROW_ID:
        return pa.array(as_ids(rows).astype(np.int64))
    return store.gather(field, rows)


def _selected(predicates: Sequence[Predicate], store: RowStore, rows: Rows) -> Mask:
    """Which of these stored rows pass all of the predicates."""
    keep = np.ones(len(rows), np.bool_)
    for predicate in predicates:
        left = np.flatnonzero(keep)
        keep[left] = predicate.test({c: read(store, c.field, taken(rows, left)) for c in predicate.reads})
    return keep


def _compute(store: RowStore, alias: Alias) -> None:
    for computed in alias.computed:
        store.compute(computed.name, computed.type, computed.reads, computed.evaluate)
