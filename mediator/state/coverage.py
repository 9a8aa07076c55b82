"""What is known to be complete, as data: one entry per way of asking and binding.

The empty bind set has one binding, the empty one; its entry covers everything. An entry covers every lookup that binds
at least its fields, with equal values.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mediator.errors import Cause
from mediator.flow.events import Binding
from mediator.state.growable import Growable
from mediator.state.index import Index, Visible
from mediator.state.keys import Keys
from mediator.state.rowstore import RowStore

BindSet = tuple[str, ...]
States = NDArray[np.uint8]

FOREVER = float("inf")


class Known(IntEnum):
    """What is known of a binding's matches. It only ever goes down this list, or back to ASKED by a retry."""

    NOTHING = 0
    ASKED = 1
    COMPLETE = 2
    FAILED = 3


@dataclass(frozen=True, slots=True)
class Entry:
    """How far one binding's matches are known: since when, for how long, or why not."""

    known: Known
    at: float = 0.0
    until: float = FOREVER
    cause: Cause | None = None
    method: str = ""  # by which a failed lookup was asked


class Coverage:
    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._sets: dict[BindSet, _Entries] = {}

    def note(self, bind_set: BindSet, binding: Binding, entry: Entry) -> None:
        if bind_set not in self._sets:
            fields = [self._schema.field(f) for f in bind_set]
            self._sets[bind_set] = _Entries(pa.schema(fields))
        self._sets[bind_set].note(binding, entry)

    def get(self, bind_set: BindSet, binding: Binding) -> Entry | None:
        entries = self._sets.get(bind_set)
        return entries.get(binding) if entries else None

    def known(self, bind_set: BindSet, binding: Binding) -> Known:
        entry = self.get(bind_set, binding)
        return entry.known if entry else Known.NOTHING

    @property
    def whole(self) -> bool:
        """Whether everything has arrived."""
        return self.known((), ()) == Known.COMPLETE

    def entries(self) -> Iterator[tuple[BindSet, Binding, Entry]]:
        for bind_set, entries in self._sets.items():
            for binding, entry in entries.items():
                yield bind_set, binding, entry

    def states(self, bind_set: BindSet, keys: Keys) -> States:
        """What is known of each of these keys, as a vector of `Known`."""
        entries = self._sets.get(bind_set)
        return entries.states(keys) if entries else np.zeros(len(keys), np.uint8)

    def covering(
        self, bind_set: BindSet, binding: Binding, now: float
    ) -> tuple[BindSet, Binding, Entry] | None:
        """A complete and fresh entry that covers this lookup, the widest first."""
        values = dict(zip(bind_set, binding, strict=True))
        for fewer in sorted(self._sets, key=len):
            if all(f in values for f in fewer):
                part = tuple(values[f] for f in fewer)
                entry = self._sets[fewer].get(part)
                if entry and entry.known == Known.COMPLETE and entry.until >= now:
                    return fewer, part, entry
        return None


class _Entries:
    """The entries of one bind set, found by value or, for many at once, by key code."""

    def __init__(self, schema: pa.Schema) -> None:
        self._numbers: dict[Binding, int] = {}
        self._entries: list[Entry] = []
        self._known: Growable[np.uint8] = Growable(np.uint8)
        self._store = RowStore(schema)
        self._index = Index(self._store, tuple(schema.names)) if len(schema) else None
        self._unindexed: list[Binding] = []

    def note(self, binding: Binding, entry: Entry) -> None:
        number = self._numbers.get(binding)
        if number is None:
            self._numbers[binding] = len(self._entries)
            self._entries.append(entry)
            self._known.extend(np.array([entry.known], np.uint8))
            self._unindexed.append(binding)
        else:
            self._entries[number] = entry
            self._known.data[number] = entry.known

    def get(self, binding: Binding) -> Entry | None:
        number = self._numbers.get(binding)
        return None if number is None else self._entries[number]

    def items(self) -> Iterator[tuple[Binding, Entry]]:
        for binding, number in self._numbers.items():
            yield binding, self._entries[number]

    def states(self, keys: Keys) -> States:
        out = np.zeros(len(keys), np.uint8)
        if self._index is None:
            out[:] = self._known.data[0] if self._entries else 0
            return out
        self._take_in()
        start = taken = 0
        while start < len(keys):
            found = self._index.probe(keys, Visible(self._store.n), start, taken, max(len(keys), 64))
            out[found.at] = self._known.data[found.rows]
            start, taken = found.next, found.taken
        return out

    def _take_in(self) -> None:
        if self._unindexed:
            columns = zip(*self._unindexed, strict=True)
            arrays = [pa.array(list(c), f.type) for c, f in zip(columns, self._store.schema, strict=True)]
            self._store.append(pa.RecordBatch.from_arrays(arrays, schema=self._store.schema))
            self._unindexed.clear()
