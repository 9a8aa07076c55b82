"""One block's run: what a query has seen of each alias, and how rows are read from there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mediator.flow.batch import Batch, Rows, Signature, as_ids, taken
from mediator.query.model import ROW_ID, Block, Column, Predicate
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
            for computed in alias.computed:
                store.compute(computed.name, computed.type, computed.reads, computed.evaluate)
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

    def gather(self, batch: Batch, column: Column, at: Positions | slice | None = None) -> pa.Array:
        """A column of the batch's rows, or of those at some positions."""
        rows = batch.rows[column.alias]
        assert rows is not None
        if at is not None:
            rows = taken(rows, at)
        return self.read(column, rows)

    def read(self, column: Column, rows: Rows) -> pa.Array:
        if column.field == ROW_ID:
            return pa.array(as_ids(rows).astype(np.int64))
        return self.view(column.alias).stem.store.gather(column.field, rows)

    def everything(self, alias: int) -> Batch:
        """All rows that the query has of an alias, as a batch that may join with all it has of the others."""
        view = self.aliases[alias]
        seen = tuple(a.view.count for a in self.aliases)
        return self._single(alias, view.ids(view.view.count), seen)

    def _alias_view(self, number: int) -> AliasView:
        alias = self.block.aliases[number]
        own = [p for p in self.block.predicates if p.aliases == 1 << number and not p.costly]
        view = self.views[alias.relation.name]
        return AliasView(view, partial(self._select, own) if own else None)

    def _select(self, predicates: Sequence[Predicate], rows: Rows) -> Mask:
        """Which of these stored rows pass the selections."""
        keep = np.ones(len(rows), np.bool_)
        for predicate in predicates:
            left = np.flatnonzero(keep)
            columns = {c: self.read(c, taken(rows, left)) for c in predicate.reads}
            keep[left] = predicate.test(columns)
        return keep

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
