"""From the first request of a trip to its last page, at one mirror or another."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from mediator.access.fetch import Errand, Fetcher
from mediator.access.mirrors.contest import Contest, Outcome
from mediator.access.mirrors.runner import LeftAlone, Runner, Slot
from mediator.access.mirrors.twins import NotAlike, Twins
from mediator.access.pages import Pages
from mediator.access.reading import written
from mediator.access.trip import Trip
from mediator.access.web.stretches import Landed
from mediator.catalog.wrapper import Page, Request
from mediator.errors import CutShort, SourceError, Spent, TimedOut
from mediator.flow.events import Landing
from mediator.store.shelf import Walked


class Walk:
    """Carries out one trip.

    Pages of one mirror are not continued at another, whose order may differ, unless it was seen to show the same: what
    fails in the middle starts over there, and the rows that both brought vanish where they are built. So does what is
    to be left alone from now on; where nobody else can be asked it waits.
    """

    def __init__(self, trip: Trip, fetcher: Fetcher) -> None:
        self._trip = trip
        self._fetcher = fetcher
        self._method = trip.line.method
        self._race = self._method.race
        self._first: Request
        self._tried: list[Runner] = []  # twice in it: asked twice at once
        self._counted: set[Runner] = set()  # as asked
        self._failed: set[Runner] = set()
        self._running: Counter[Runner] = Counter()
        self._bytes: Counter[Runner] = Counter()  # of replies
        self._landed = Landed()

    async def answer(self, runner: Runner, slot: Slot) -> None:
        """Lands every page. Raises a `SourceError` when no mirror could bring them all, or nothing can be asked."""
        self._first = await self._written(runner.gate.source.deadline)
        place: Slot | None = slot
        begun = await self._begun_at()
        if begun is not None and begun is not runner:
            slot.leave()
            runner, place = begun, None
        while True:
            try:
                runner, came = await self._start(runner, place)
                if isinstance(came, SourceError):
                    raise came
                await self._finish(runner, came)
                return
            except CutShort:
                raise  # by any mirror, which are all alike
            except LeftAlone:
                self._tried = [other for other in self._tried if other in self._failed]
                runner = await self._let()
            except SourceError:
                other = self._untried()
                if other is None:
                    raise
                runner = other
            place = None

    async def _begun_at(self) -> Runner | None:
        trip, method = self._trip, self._method
        walked = Walked(method.relation.name, method.declared.name, trip.line.bind_set, trip.bindings)
        return await self._fetcher.begun_at(self._race.runners, walked, self._first, method)

    async def _written(self, deadline: float) -> Request:
        try:
            async with asyncio.timeout(deadline):
                return await written(self._method, self._trip.line.bind_set, self._trip.bindings)
        except TimeoutError:
            raise TimedOut(f"{self._method.name}: no request was written within {deadline:g} s") from None

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
        failed: list[Outcome] = []
        while True:
            outcome = await contest.outcome(patience if self._hedgeable else None)
            if outcome is None:
                other = self._race.hedge([*self._tried, *self._unpaid()], self._trip.hedging)
                patience *= 2  # where there was no room, look again, but not for ever at this pace
            elif isinstance(outcome[1], Page):
                return outcome
            else:
                failed.append(outcome)
                if isinstance(outcome[1], LeftAlone):
                    self._tried = [r for r in self._tried if r is not outcome[0]]
                if contest.running:
                    continue
                if (other := self._untried()) is None:
                    return _blamed(failed, outcome[0])
            if other is not None:
                self._tried.append(other)
                contest.send(other)

    @property
    def _hedgeable(self) -> bool:
        return not self._trip.over and self._race.hedgeable(self._tried)

    async def _begin(self, runner: Runner, slot: Slot | None) -> Page:
        if runner not in self._counted:
            self._counted.add(runner)
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
        fetch = partial(self._alone, runner)
        if len(self._race.runners) > 1:
            twins = Twins(runner, self._first, first, self._page)
            fetch = partial(self._shown, twins)
        pages = Pages(self._trip, self._first, fetch, width, self._landed, runner.mirror.base)
        try:
            await pages.land_all(first)
        except SourceError as error:
            self._note(runner, error)
            raise
        runner.counts.answered += len(self._trip.bindings)
        runner.measured.answered(self._trip.bindings, pages.rows, pages.count, self._bytes[runner])

    async def _alone(self, runner: Runner, request: Request) -> Page:
        """A later page of the only mirror there is, as soon as that may be asked."""
        while True:
            await self._trip.cleared([runner.mirror.source])
            with suppress(LeftAlone):
                return await self._page(runner, request)

    async def _shown(self, twins: Twins, request: Request) -> Page:
        """A later page: from the mirror that began; where that one is late, or left alone, from another that shows the
        same pages. Raises `LeftAlone` where only a mirror may be asked that does not."""
        while True:
            tried = await self._willing(twins)
            async with asyncio.TaskGroup() as group:
                contest = Contest(group, lambda r, _: twins.page(r, request))
                for runner in tried:
                    contest.send(runner)
                came = await self._shown_first(contest, twins, tried)
                contest.end()
            if isinstance(came, Page):
                return came
            paused = self._trip.barred(twins.leader.mirror.source)
            if not isinstance(came, LeftAlone) and not (paused and isinstance(came, NotAlike)):
                raise came

    async def _willing(self, twins: Twins) -> list[Runner]:
        """Whom to ask for a later page, as soon as anybody may be asked: a mirror that is known to show the same pages
        before one that may turn out to."""
        while True:
            open_ = [r for r in self._race.runners if not self._trip.barred(r.mirror.source)]
            if known := [runner for runner in twins.known if runner in open_]:
                return self._race.preferred(known)
            promising = self._race.another(runner for runner in open_ if twins.promising(runner))
            if promising is not None:
                return [promising]
            if any(runner not in self._failed for runner in open_):
                raise twins.leader.left_alone
            await self._trip.cleared(
                [r.mirror.source for r in self._race.runners if twins.promising(r) or r not in self._failed]
            )

    async def _shown_first(self, contest: Contest, twins: Twins, tried: list[Runner]) -> Page | SourceError:
        """Who has the page first; where nobody has, what was wrong with the mirror that was asked first."""
        failed: list[Outcome] = []
        patience = then = self._race.patience(tried[0])
        while True:
            barred = [*self._unpaid(), *(2 * [r for r in self._race.runners if not twins.promising(r)])]
            open_ = not self._trip.over and self._race.hedgeable([*tried, *barred])
            outcome = await contest.outcome(patience if open_ else None)
            if outcome is None:
                other = self._race.hedge([*tried, *barred], self._trip.hedging)
                patience, then = then, 2 * then  # once more soon: by then a mirror that has stalled is known
            elif isinstance(outcome[1], Page):
                return outcome[1]
            else:
                failed.append(outcome)
                if contest.running:
                    continue
                other = self._race.another(
                    r for r in self._race.runners if r not in [*tried, *barred] and not self._trip.over
                )
                if other is None:
                    return _blamed(failed, tried[0])[1]
            if other is not None:
                tried.append(other)
                contest.send(other)

    async def _page(self, runner: Runner, request: Request, slot: Slot | None = None) -> Page:
        source = runner.mirror.source
        self._trip.fares.check(source)
        errand = Errand(
            self._method,
            self._trip.line.bind_set,
            self._trip.bindings,
            runner,
            request,
            self._trip,
            others=lambda: (other := self._untried()) is not None and other.fit,
            pay=partial(self._trip.fares.pay, source),
            received=partial(self._received, runner),
            staying=partial(self._trip.fares.staying, source),
            vouched=self._trip.vouched,
            asked_at=self._trip.asked_at,
            landed=self._landed if self._streams else None,
            land=self._land,
            check=partial(self._trip.fares.check, source),
        )
        return await self._fetcher.page(errand, slot)

    @property
    def _streams(self) -> bool:
        """Whether a long page may land stretch by stretch: where no other request may bring the same rows, and nothing
        hangs on which page they are of."""
        declared, runners = self._method.declared, self._race.runners
        alone = len(runners) == 1 and not runners[0].gate.source.twice
        return alone and declared.at_most is None and not declared.order

    def _land(self, stretch: Page) -> None:
        """A part of the first page has come."""
        if not self._landed.count:
            self._trip.begin()
        if stretch.rows.num_rows:
            self._trip.land(Landing(stretch.rows, page=self._first, stretch=self._landed.count))

    def _received(self, runner: Runner, size: int) -> None:
        self._bytes[runner] += size
        self._trip.fares.received(runner.mirror.source, size)

    def _unpaid(self) -> list[Runner]:
        """Twice each mirror to which no late request may be sent: not everybody aboard could pay for it, or all leave
        it alone."""
        trip = self._trip
        return 2 * [
            r
            for r in self._race.runners
            if not trip.fares.affords(r.mirror.source) or trip.barred(r.mirror.source)
        ]

    def _note(self, runner: Runner, error: SourceError) -> None:
        """Counts the failure of one mirror, and says in the error whose it was."""
        if isinstance(error, Spent | LeftAlone):
            return
        self._failed.add(runner)
        if self._running[runner] <= 1:
            runner.counts.failed += len(self._trip.bindings)
        error.message = f"{self._method.name} at {runner.mirror.source}: {error.message}"

    async def _let(self) -> Runner:
        """The mirror to begin at anew, as soon as one may be asked that has not failed."""
        while (runner := self._untried()) is None:
            left = [r.mirror.source for r in self._race.runners if r not in self._failed]
            await self._trip.cleared(left)
        return runner

    def _untried(self) -> Runner | None:
        """The mirror to turn to next.

        None for a trip that was called back: Python 3.11's task group forgets that its own task was cancelled
        when one of its children fails in the same moment, and the walk would go on.
        """
        if self._trip.over:
            return None
        return self._race.another(
            r for r in self._race.runners if r not in self._tried and not self._trip.barred(r.mirror.source)
        )


def _blamed(failed: Sequence[Outcome], first: Runner) -> Outcome:
    """Of several failures the one that is told, the first mirror's rather than another's. A pause is told where nothing
    else went wrong, that mirrors do not show the same pages where nothing was paused either."""
    return min(
        failed, key=lambda o: (isinstance(o[1], NotAlike), isinstance(o[1], LeftAlone), o[0] is not first)
    )
