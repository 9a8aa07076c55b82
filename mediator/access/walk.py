"""From the first request of a trip to its last page, at one mirror or another."""

from __future__ import annotations

import asyncio
from collections import Counter

from mediator.access.contest import Contest, Outcome
from mediator.access.fetch import Errand, Fetcher
from mediator.access.pages import Pages
from mediator.access.reading import written
from mediator.access.runner import Runner, Slot
from mediator.access.trip import Trip
from mediator.catalog.wrapper import Page, Request
from mediator.errors import SourceError


class Walk:
    """Carries out one trip. Raises a `SourceError` from the start when its request cannot be written.

    Pages of one mirror are not continued at another, whose order may differ: what fails in the middle starts
    over there, and the rows that both brought vanish where they are built.
    """

    def __init__(self, trip: Trip, fetcher: Fetcher) -> None:
        self._trip = trip
        self._fetcher = fetcher
        self._method = trip.line.method
        self._race = self._method.race
        self._first = written(self._method, trip.line.bind_set, trip.bindings)
        self._tried: list[Runner] = []  # twice in it: asked twice at once
        self._running: Counter[Runner] = Counter()

    async def answer(self, runner: Runner, slot: Slot) -> None:
        """Lands every page. Raises a `SourceError` when no mirror could bring them all."""
        place: Slot | None = slot
        while True:
            runner, came = await self._start(runner, place)
            if isinstance(came, SourceError):
                raise came
            try:
                await self._finish(runner, came)
                return
            except SourceError:
                other = self._untried()
                if other is None:
                    raise
            runner, place = other, None

    async def _start(self, runner: Runner, slot: Slot | None) -> Outcome:
        """The first page, from whichever mirror has it first; an error when none that is left brings it."""
        self._tried.append(runner)
        if not self._race.hedgeable(self._tried):
            return runner, await self._begin(runner, slot)
        async with asyncio.TaskGroup() as group:
            contest = Contest(group, self._begin)
            contest.send(runner, slot)
            outcome = await self._decided(contest, runner)
            contest.end()
        return outcome

    async def _decided(self, contest: Contest, runner: Runner) -> Outcome:
        """Sends another mirror after one that is late, or in place of one that has failed, until one wins."""
        patience = self._race.patience(runner)
        while True:
            outcome = await contest.outcome(patience if self._hedgeable else None)
            if outcome is None:
                other = self._race.hedge(self._tried) if self._trip.affords else None
                patience *= 2  # where there was no room, look again, but not for ever at this pace
            elif isinstance(outcome[1], Page):
                return outcome
            elif contest.running:
                continue
            elif (other := self._untried()) is None:
                return outcome
            if other is not None:
                self._tried.append(other)
                contest.send(other)

    @property
    def _hedgeable(self) -> bool:
        return not self._trip.over and self._race.hedgeable(self._tried)

    async def _begin(self, runner: Runner, slot: Slot | None) -> Page:
        if self._tried.count(runner) == 1:
            runner.counts.asked += len(self._trip.bindings)
        self._running[runner] += 1
        try:
            return await self._page(runner, self._first, slot)
        except SourceError as error:
            self._note(runner, error)
            raise
        finally:
            self._running[runner] -= 1

    async def _finish(self, runner: Runner, first: Page) -> None:
        width = runner.gate.source.concurrency
        try:
            await Pages(self._trip, self._first, lambda r: self._page(runner, r), width).land_all(first)
        except SourceError as error:
            self._note(runner, error)
            raise
        runner.counts.answered += len(self._trip.bindings)

    async def _page(self, runner: Runner, request: Request, slot: Slot | None = None) -> Page:
        errand = Errand(
            self._method,
            self._trip.line.bind_set,
            self._trip.bindings,
            runner,
            request,
            self._trip.rank,
            others=lambda: (other := self._untried()) is not None and other.fit,
            pay=self._trip.pay,
            received=self._trip.received,
        )
        return await self._fetcher.page(errand, slot)

    def _note(self, runner: Runner, error: SourceError) -> None:
        """Counts the failure of one mirror, and says in the error whose it was."""
        if self._running[runner] <= 1:
            runner.counts.failed += len(self._trip.bindings)
        error.message = f"{self._method.name} at {runner.mirror.source}: {error.message}"

    def _untried(self) -> Runner | None:
        """The mirror to turn to next.

        None for a trip that was called back: Python 3.11's task group forgets that its own task was cancelled
        when one of its children fails in the same moment, and the walk would go on.
        """
        if self._trip.over:
            return None
        return self._race.another(r for r in self._race.runners if r not in self._tried)
