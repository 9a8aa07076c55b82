"""Probes at work: several batches, and parts of them, at the same time, each timed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from mediator.clock import Clock
from mediator.eddy.destinations import Probe
from mediator.eddy.glancing import glance
from mediator.eddy.joining import Join, Met, meet, prepare, rejoined
from mediator.eddy.policy import Visit
from mediator.eddy.run import Run
from mediator.flow.batch import Batch
from mediator.state.hands import Hands

_BEHIND = 2_048  # rows that an index has yet to take in: fewer are taken in as soon as any are compared

Probed = tuple[
    Batch, Probe, list[tuple[Batch, Met]], float
]  # what was probed where, what was found, in what time


class Probing:
    def __init__(self, run: Run, hands: Hands, room: int, effort: Clock) -> None:
        self._run = run
        self._hands = hands
        self._room = room
        self._effort = effort
        self._joins: dict[tuple[int, int], Join] = {}

    def join(self, spanned: int, alias: int) -> Join:
        """How batches that span these are widened by the alias."""
        join = self._joins.get((spanned, alias))
        if join is None:
            join = self._joins[spanned, alias] = Join.of(self._run.block, spanned, alias)
        return join

    def behind(self, spanned: int, alias: int) -> int:
        """How many rows an index has to take in before batches that span these can probe it."""
        fields = (self._joins.get((spanned, alias)) or self.join(spanned, alias)).fields
        return self._run.aliases[alias].view.stem.behind(fields) if fields else 0

    def one(self, batch: Batch, where: Probe, room: int | None = None) -> tuple[Met, float]:
        """What the batch finds, and how many seconds of work that was."""
        join = self.join(batch.signature.spanned, where.alias)
        prepare(self._run, join, batch)
        return self._timed(join, batch, room)

    def glance(self, batch: Batch, where: Probe) -> Visit | None:
        """What it would find, by comparing some keys; where an index would have to be made to find out more."""
        join = self.join(batch.signature.spanned, where.alias)
        if self.behind(batch.signature.spanned, where.alias) < _BEHIND:
            return None
        began = self._effort()
        found = glance(self._run, join, batch)
        if found is None:
            return None
        seconds = self._effort() - began
        return Visit(batch.signature, where, found.rows, found.pairs, seconds, found.met, compared=True)

    def all(self, steps: Sequence[tuple[Batch, Probe]]) -> Iterator[Probed]:
        """Each batch in parts that are worth a hand each."""
        rows = sum(len(batch) for batch, _ in steps)
        pieces = [batch.parts(self._hands.share(rows)) for batch, _ in steps]
        tasks = []
        for (batch, where), parts in zip(steps, pieces, strict=True):
            join = self.join(batch.signature.spanned, where.alias)
            prepare(self._run, join, batch)
            tasks += [partial(self._timed, join, part) for part in parts]
        found = iter(self._hands.each(tasks, rows))
        for (batch, where), parts in zip(steps, pieces, strict=True):
            timed = [next(found) for _ in parts]
            met = rejoined(batch, parts, [met for met, _ in timed])
            yield batch, where, met, sum(seconds for _, seconds in timed)

    def _timed(self, join: Join, batch: Batch, room: int | None = None) -> tuple[Met, float]:
        began = self._effort()
        return meet(self._run, join, batch, self._room if room is None else room), self._effort() - began
