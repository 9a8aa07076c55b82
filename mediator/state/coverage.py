"""What is known to be complete, as data: one entry per way of asking and binding.

The empty bind set has one binding, the empty one; its entry covers everything. An entry covers every lookup from which
all that it binds follows: that binds at least its fields, with equal values, and bounds that are no wider.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mediator.catalog.bindfields import EQUAL, Facts, facts, follows, operator_of, parted, subschema
from mediator.errors import Cause
from mediator.flow.batch import Rows
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
    """How far one binding's matches are known: since when, for how long, or why not.

    In a SteM also by which rows: those that this lookup `brought`, and not what others brought before, meanwhile or
    later, which may be of another state of the site. None says all that are stored.
    """

    known: Known
    at: float = 0.0
    until: float = FOREVER
    cause: Cause | None = None
    method: str = ""  # by which a failed lookup was asked
    brought: Rows | None = field(default=None, compare=False, repr=False)


class Coverage:
    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._sets: dict[BindSet, _Entries] = {}

    def note(self, bind_set: BindSet, binding: Binding, entry: Entry) -> None:
        if bind_set not in self._sets:
            self._sets[bind_set] = _Entries(subschema(self._schema, bind_set))
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

    def numbers(self, bind_set: BindSet, keys: Keys) -> NDArray[np.int32]:
        """Which entry of the bind set is each key's, by the order in which they were first noted; -1 where none is."""
        entries = self._sets.get(bind_set)
        return entries.found(keys) if entries else np.full(len(keys), -1, np.int32)

    def states_of(self, bind_set: BindSet, numbers: NDArray[np.int32]) -> States:
        """What is known of each of these entries; nothing, where there is none."""
        entries = self._sets.get(bind_set)
        return entries.states_of(numbers) if entries else np.zeros(len(numbers), np.uint8)

    def bindings(self, bind_set: BindSet, numbers: Iterable[int]) -> list[Binding]:
        """The bindings of these entries."""
        return [self._sets[bind_set].bindings[number] for number in numbers]

    def covering(
        self, bind_set: BindSet, binding: Binding, now: float
    ) -> tuple[BindSet, Binding, Entry] | None:
        """The complete and fresh entry that covers this lookup and was asked last; of equals the widest."""
        known = facts(bind_set, binding)
        newest: tuple[BindSet, Binding, Entry] | None = None
        for fewer in sorted(self._sets, key=len):
            for part, entry in self._sets[fewer].implied(known):
                fresh = entry.known == Known.COMPLETE and entry.until >= now
                if fresh and (newest is None or entry.at > newest[2].at):
                    newest = fewer, part, entry
        return newest


class _Entries:
    """The entries of one bind set, found by value or, for many at once, by key code."""

    def __init__(self, schema: pa.Schema) -> None:
        self.bindings: list[Binding] = []
        self._numbers: dict[Binding, int] = {}
        self._entries: list[Entry] = []
        self._known: Growable[np.uint8] = Growable(np.uint8)
        self._store = RowStore(schema)
        self._index = Index(self._store, tuple(schema.names)) if len(schema) else None
        self._unindexed: list[Binding] = []
        self._names = tuple(schema.names)
        self._equal = tuple(n for n, name in enumerate(self._names) if operator_of(name) == EQUAL)
        # Where there are bounds: the bindings that have the same values in the fields that are to be equal.
        self._bounded: dict[Binding, list[Binding]] | None = (
            None if len(self._equal) == len(self._names) else {}
        )

    def note(self, binding: Binding, entry: Entry) -> None:
        number = self._numbers.get(binding)
        if number is None:
            self._numbers[binding] = len(self._entries)
            self.bindings.append(binding)
            self._entries.append(entry)
            self._known.extend(np.array([entry.known], np.uint8))
            self._unindexed.append(binding)
            if self._bounded is not None:
                self._bounded.setdefault(self._values(binding), []).append(binding)
        else:
            self._entries[number] = entry
            self._known.data[number] = entry.known

    def get(self, binding: Binding) -> Entry | None:
        number = self._numbers.get(binding)
        return None if number is None else self._entries[number]

    def implied(self, known: Facts) -> Iterator[tuple[Binding, Entry]]:
        """The entries of bindings that every row meets of which this is known."""
        wanted = [known.get(parted(self._names[n])) for n in self._equal]
        if None in wanted:
            return
        alike = [tuple(wanted)] if self._bounded is None else self._bounded.get(tuple(wanted), ())
        for binding in alike:
            number = self._numbers.get(binding)
            pairs = zip(self._names, binding, strict=True)
            if number is not None and (self._bounded is None or all(follows(n, v, known) for n, v in pairs)):
                yield binding, self._entries[number]

    def _values(self, binding: Binding) -> Binding:
        return tuple(binding[n] for n in self._equal)

    def items(self) -> Iterator[tuple[Binding, Entry]]:
        for binding, number in self._numbers.items():
            yield binding, self._entries[number]

    def states(self, keys: Keys) -> States:
        return self.states_of(self.found(keys))

    def states_of(self, numbers: NDArray[np.int32]) -> States:
        known: States = self._known.data[numbers]  # the last one's, where there is none
        known[numbers < 0] = Known.NOTHING
        return known

    def found(self, keys: Keys) -> NDArray[np.int32]:
        """The number of each key's entry; -1 where there is none."""
        out = np.full(len(keys), -1, np.int32)
        if self._index is None:
            out[:] = len(self._entries) - 1
            return out
        self._take_in()
        start = taken = 0
        while start < len(keys):
            found = self._index.probe(keys, Visible(self._store.n), start, taken, max(len(keys), 64))
            out[found.at] = found.rows
            start, taken = found.next, found.taken
        return out

    def _take_in(self) -> None:
        if self._unindexed:
            columns = zip(*self._unindexed, strict=True)
            arrays = [pa.array(list(c), f.type) for c, f in zip(columns, self._store.schema, strict=True)]
            self._store.append(pa.RecordBatch.from_arrays(arrays, schema=self._store.schema))
            self._unindexed.clear()
