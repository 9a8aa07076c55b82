"""Rows that wait before a choice, rather than behind a lookup.

Where a batch could go to one of several SteMs whose rows must be looked up, what it is sent to is queued there, and the
choice is made. So no more rows that need a lookup are let go than keep the site busy; the rest stays free to go
elsewhere, should the site turn slow or another fast. Rows whose matches are known to be there don't count.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from mediator.eddy.asking import Asking
from mediator.eddy.destinations import Destination, Probe
from mediator.flow.batch import Batch

BACKLOG = 16  # lookups under way that are always borne
EVERYTHING = 1 << 30  # where none is too many


class Backlog:
    def __init__(self, asking: Asking, relations: Sequence[str], least: int = BACKLOG) -> None:
        """`relations` are the names of the aliases' relations."""
        self._asking = asking
        self._relations = relations
        self._least = max(1, least)  # else nothing would ever go
        self._held: deque[Batch] = deque()
        self._ended = 0  # lookups, when they were last let go

    @property
    def rows(self) -> int:
        return sum(len(batch) for batch in self._held)

    def cut(self, batch: Batch, where: Destination, legal: Sequence[Destination]) -> Batch | None:
        """So much of the batch as goes there now, if any; the rest is kept here."""
        if len(legal) < 2 or not isinstance(where, Probe) or not self._asking.chosen[where.alias].depends:
            return batch
        room = max(0, self._asking.pace.room(self._relations[where.alias], self._least))
        if room >= len(batch):
            return batch
        doubtful = self._asking.uncovered(batch, where.alias)
        asking = () if doubtful is None else np.flatnonzero(doubtful)
        if len(asking) <= room:
            return batch
        stop = int(asking[room])
        if not stop:
            self._held.append(batch)
            return None
        self._held.appendleft(batch.take(slice(stop, None)))
        return batch.take(slice(0, stop))

    def due(self, resting: bool = False) -> list[Batch]:
        """Of what has been kept, as much as some site could take now that more lookups have ended; one batch at least,
        where none is under way, or everything else is `resting`."""
        pace = self._asking.pace
        idle = resting or not pace.pending
        if not self._held or (pace.ends == self._ended and not idle):
            return []
        self._ended = pace.ends
        rooms = [
            pace.room(name, self._least)
            for name, provider in zip(self._relations, self._asking.chosen, strict=True)
            if provider.depends
        ]
        room = max(rooms, default=1)
        due: list[Batch] = []
        while self._held and (room > 0 or (idle and not due)):
            due.append(self._held.popleft())
            room -= len(due[-1])
        return due

    def forget(self) -> None:
        """Nothing more is wanted."""
        self._held.clear()
