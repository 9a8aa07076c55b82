"""What came into a SteM since the store was last told: rows and ends, in the order in which the SteM took them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import count

import pyarrow as pa

from mediator.catalog.model import BindSet, Relation
from mediator.flow.events import Binding
from mediator.store.records import Covered, Group, Sent

_NUMBERS = count()


class News:
    """Filled by one SteM, emptied by whoever takes it to the store; `stirred` is called when there is an end to take.

    An end is noted after the rows that it rests on, so whatever is taken at any moment can be stored as it is.
    """

    def __init__(self, relation: Relation, stirred: Callable[[], object], numbered: int = 0) -> None:
        self.stirred = stirred
        self._relation = relation
        self._number = next(_NUMBERS)
        self._numbered = numbered  # lookups of earlier processes: those of this one have the numbers after it
        self._rows: list[Sent] = []
        self._covered: list[Covered] = []

    def came(self, rows: pa.RecordBatch, at: float, lookup: int) -> None:
        if rows.num_rows:
            self._rows.append(Sent(rows, at, self._in_store(lookup)))

    def ended(self, bind_set: BindSet, binding: Binding, at: float, until: float, lookup: int) -> None:
        self._covered.append(Covered(bind_set, binding, at, until, self._in_store(lookup)))

    def take(self, offset: float) -> Group | None:
        """All of it, once, with its times moved by `offset`; none where nothing is new."""
        if not (self._rows or self._covered):
            return None
        rows = [replace(s, at=s.at + offset) for s in self._rows]
        covered = [replace(c, at=c.at + offset, until=c.until + offset) for c in self._covered]
        self._rows.clear()
        self._covered.clear()
        return Group(self._relation, self._number, rows, covered)

    def _in_store(self, lookup: int) -> int:
        return self._numbered + lookup if lookup else 0
