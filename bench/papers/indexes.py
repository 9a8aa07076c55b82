"""Indexes for experiments: relations that can be looked up by one field, at so many seconds a lookup."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from time import thread_time

import numpy as np
import pyarrow as pa

from bench.feeding import catalog_of
from mediator.catalog.model import AccessMethod, Catalog, Field, Relation
from mediator.flow.events import Arrived, Ask, Binding, Event, Exhausted, Landing


class Index:
    """A table behind an index on one of its fields. A lookup keeps its caller busy, as one in a local file does: it is
    seconds of work, whatever else the machine does meanwhile."""

    def __init__(self, relation: str, table: pa.Table, field: str, seconds: float = 0.0) -> None:
        self.relation = relation
        self.field = field
        self.seconds = seconds
        self.schema: pa.Schema = table.schema
        self._rows = table.combine_chunks().to_batches()[0]
        self._places: dict[object, list[int]] = {}
        for place, value in enumerate(table.column(field).to_pylist()):
            self._places.setdefault(value, []).append(place)

    def answer(self, ask: Ask) -> Iterator[Event]:
        """All that was asked for, when it has taken its time."""
        until = thread_time() + self.seconds * len(ask.bindings)
        landing = Landing(self.found(ask.bindings))
        while thread_time() < until:
            pass
        if landing.rows.num_rows:
            yield Arrived(ask.number, landing)
        yield Exhausted(ask.number, ask.bindings, landings=(landing,))

    def found(self, bindings: tuple[Binding, ...]) -> pa.RecordBatch:
        """The rows that match any of these."""
        places = [place for (value,) in bindings for place in self._places.get(value, ())]
        return self._rows.take(pa.array(np.array(places, np.int64)))


def catalog_with(scanned: Mapping[str, pa.Table], *indexes: Index) -> Catalog:
    """Relations that a scan brings, and others that are only looked up."""
    catalog = catalog_of(scanned)
    looked_up = {index.relation: _relation(index) for index in indexes}
    return Catalog({**catalog.relations, **looked_up}, catalog.sources)


def _relation(index: Index) -> Relation:
    method = AccessMethod(f"by_{index.field}", "index", (), None, required=(index.field,))
    return Relation(index.relation, tuple(Field(f.name, f.type) for f in index.schema), (method,))
