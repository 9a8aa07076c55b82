"""Costly predicates at work: how many rows are tested at once, and what that cost.

A step is cut to what takes about `slice` seconds, so that what it shows is learnt, and anybody who waits for the end of
the turn is heard, however much a row costs and however large batches are.
"""

from __future__ import annotations

import numpy as np

from mediator.clock import Clock
from mediator.eddy.run import Mask, Run
from mediator.flow.batch import Batch

SLICE = 0.01  # seconds
_FIRST = 1_024  # rows of a step of which nothing is known


class Selecting:
    def __init__(self, run: Run, clock: Clock, effort: Clock, slice: float = SLICE) -> None:
        self._run = run
        self._clock = clock
        self._effort = effort
        self._slice = slice
        self.took = 0.0
        self._known: dict[int, tuple[int, float]] = {}  # rows and seconds of the latest steps, by predicate

    def cut(self, batch: Batch, number: int) -> tuple[Batch, Batch | None]:
        """So much of the batch as is tested at once, and what is left of it."""
        most = self.most(number)
        if len(batch) <= most:
            return batch, None
        return batch.take(slice(0, most)), batch.take(slice(most, None))

    def test(self, batch: Batch, number: int) -> Mask:
        """Which rows pass. Seconds that it `took` are the thread's work, or where a caller's function may have waited
        for something, all of them; no less than was declared."""
        predicate = self._run.block.predicates[number]
        began, worked = self._clock(), self._effort()
        keep = predicate.test({c: self._run.gather(batch, c) for c in predicate.reads})
        seconds = self._effort() - worked
        if predicate.calls:
            seconds = max(seconds, self._clock() - began, predicate.seconds * len(batch))
        rows, spent = self._known.get(number, (0, 0.0))
        # The latest half counts as much as all before it.
        self._known[number] = rows // 2 + len(batch), spent / 2 + seconds
        self.took = seconds
        return keep

    def most(self, number: int) -> int:
        """How many rows are tested at once, by what is known now."""
        if not self._slice:
            return 1
        rows, seconds = self._known.get(number, (0, 0.0))
        per_row = seconds / rows if rows else self._run.block.predicates[number].seconds
        if not per_row:
            return np.iinfo(np.int32).max if rows else _FIRST
        return max(1, int(self._slice / per_row))
