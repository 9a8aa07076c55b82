"""What askers and the drive do between the cells of a block and the sites, without Spark: what several cells ask for is
asked once, and what comes is sent to the cells that it may concern."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import count

import pyarrow as pa

from mediator.errors import Cause
from pipeline.cells.envelopes import Broken, Came, Envelope, Lookup, Over
from pipeline.cells.hypercube import Hypercube
from pipeline.cells.wings import Winged


class Hub:
    def __init__(self, cube: Hypercube | Winged) -> None:
        self._cube = cube
        self._numbers = count()
        self._askers: dict[Lookup, set[int]] = {}  # of what was ever asked: the cells that have
        self._ended: dict[Lookup, Over | Broken] = {}
        self._due: dict[int, list[Envelope]] = defaultdict(list)

    def asked(self, cell: int, lookups: Iterable[Lookup]) -> list[Lookup]:
        """A cell asks for these; which of them nobody has asked for yet."""
        new = []
        for lookup in lookups:
            askers = self._askers.setdefault(lookup, set())
            if not askers:
                new.append(lookup)
            if cell not in askers and lookup in self._ended:
                self._due[cell].append(self._ended[lookup])
            askers.add(cell)
        return new

    def came(self, lookups: Sequence[Lookup], rows: pa.RecordBatch) -> int:
        """A reply brought rows. Its number, by which `over` knows it."""
        number = next(self._numbers)
        for cell, places in self._cube.cells_of(lookups[0].relation, rows):
            part = rows if len(places) == rows.num_rows else rows.take(pa.array(places))
            for lookup in lookups:  # it will want to know of the end as well
                self._askers.setdefault(lookup, set()).add(cell)
            self._due[cell].append(Came(tuple(lookups), number, part))
        return number

    def over(self, lookup: Lookup, at: float, until: float, landings: Sequence[int]) -> None:
        self._end(Over(lookup, at, until, tuple(landings)))

    def broken(self, lookup: Lookup, cause: Cause) -> None:
        self._end(Broken(lookup, cause))

    def _end(self, ended: Over | Broken) -> None:
        self._ended[ended.lookup] = ended
        for cell in self._askers.get(ended.lookup, ()):
            self._due[cell].append(ended)

    def due(self, cell: int) -> list[Envelope]:
        """What the cell has not been told yet, in the order in which it happened."""
        return self._due.pop(cell, [])

    @property
    def idle(self) -> bool:
        """Whether every cell has been told everything."""
        return not any(self._due.values())
