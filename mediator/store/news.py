"""What came into a SteM since the store was last told: rows and ends, in the order in which the SteM took them."""

from __future__ import annotations

from collections.abc import Callable
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

    def __init__(self, relation: Relation, stirred: Callable[[], object]) -> None:
        self.stirred = stirred
        self._relation = relation
        self._number = next(_NUMBERS)
        self._rows: list[Sent] = []
        self._covered: list[Covered] = []

    def came(self, rows: pa.RecordBatch, at: float) -> None:
        if rows.num_rows:
            self._rows.append(Sent(rows, at))

    def ended(self, bind_set: BindSet, binding: Binding, at: float, until: float) -> None:
        self._covered.append(Covered(bind_set, binding, at, until))

    def take(self, offset: float) -> Group | None:
        """All of it, once, with its times moved by `offset`; none where nothing is new."""
        if not (self._rows or self._covered):
            return None
        rows = [Sent(s.rows, s.at + offset) for s in self._rows]
        covered = [Covered(c.bind_set, c.binding, c.at + offset, c.until + offset) for c in self._covered]
        self._rows.clear()
        self._covered.clear()
        return Group(self._relation, self._number, rows, covered)
