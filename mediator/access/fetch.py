"""One page from one mirror: asked again while that may help, within one deadline.

The inner layers of a request, in the order in which this file reads: robots, and a place at the source (breaker and
limiter, in the order of rank) in `Fetcher.page`; the deadline in `_Fetch.page`; retry in `_attempts`; pauses and
ceilings in `_try`; validators in `_ask`; the attempt's own timeout and the transport in `_send`; the wrapper's reading
in `_read`. The outer ones are named in `mediator.access`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial

from mediator.access.fresh.freshness import vouched
from mediator.access.fresh.recall import NOT_MODIFIED, Recall
from mediator.access.fresh.remembered import Memory
from mediator.access.limits.backoff import Backoff, Calendar
from mediator.access.limits.budget import Budget
from mediator.access.method import Method
from mediator.access.mirrors.runner import Claimant, Runner, Slot
from mediator.access.reading import understood
from mediator.access.web.login import Outdated, refused_as
from mediator.access.web.robots import RobotsPolicy
from mediator.access.web.stretches import Landed, Stretches
from mediator.access.web.transport import Streams, Transport
from mediator.catalog.model import BindSet
from mediator.catalog.wrapper import Binding, Cutter, Page, Reply, Request
from mediator.errors import Overloaded, RateLimited, Refused, SourceError, Spent, TimedOut, Unreadable
from mediator.store.shelf import Shelf, Shelved, Walked

_log = logging.getLogger(__name__)

_UNREADABLE = 2  # attempts at a reply that cannot be understood: a site that means it will say it again


@dataclass(frozen=True, slots=True)
class Errand:
    """What is to be fetched, for whom, and from where."""

    method: Method
    bind_set: BindSet
    bindings: tuple[Binding, ...]
    runner: Runner
    request: Request
    claimant: Claimant
    others: Callable[[], bool]  # whether another mirror could do it as well
    pay: Callable[[], bool]  # for one more request; false when nobody is left who would
    received: Callable[[int], None]  # so many bytes of a reply
    staying: Callable[
        [Callable[[str], None]], AbstractContextManager[None]
    ]  # charges the time; says when to stop
    vouched: Callable[
        [float, bool], None
    ]  # until when the site does so, and whether it may be kept on the disk
    asked_at: Callable[[float], None]  # told of a reply that was asked for before this trip began
    landed: Landed | None  # stretches of this page; none where it may only land as a whole
    land: Callable[[Page], None]  # one more of them
    check: Callable[[], None]  # raises `Spent` where nobody may get more of it

    @property
    def walked(self) -> Walked:
        return Walked(self.method.relation.name, self.method.declared.name, self.bind_set, self.bindings)


@dataclass(frozen=True)
class Fetcher:
    """Shared by all fetches of a process."""

    transport: Transport
    backoff: Backoff
    today: Calendar
    robots: RobotsPolicy
    memory: Memory = field(default_factory=Memory)
    shelf: Shelf | None = None  # replies of walks that an earlier process did not finish, and of this one's

    async def page(self, errand: Errand, slot: Slot | None = None) -> Page:
        """The page, or the `SourceError` that it failed with for good.

        Waiting for the first place is not charged to the deadline: it is no fault of the site, and it ends
        because everybody ahead has a deadline. Raises `LeftAlone` when its source is to be left alone before a request
        that would bring it is sent.
        """
        if self.shelf is not None and (page := await self._shelved(self.shelf, errand)) is not None:
            if slot is not None:
                slot.leave()
            return page
        slot = await self.robots.admit(errand.runner, errand.request, errand.claimant, slot)
        slot = slot or await errand.runner.claim(errand.claimant)
        return await _Fetch(self, errand).page(slot)

    async def begun_at(
        self, runners: Sequence[Runner], walked: Walked, first: Request, method: Method
    ) -> Runner | None:
        """The mirror whose first page is on the shelf: its pages go on there and nowhere else."""
        if self.shelf is None or not await asyncio.to_thread(self.shelf.began, walked):
            return None
        for runner in runners:
            fresh = method.declared.fresh_for
            if await asyncio.to_thread(self.shelf.get, walked, runner.mirror, first, fresh) is not None:
                return runner
        return None

    async def _shelved(self, shelf: Shelf, errand: Errand) -> Page | None:
        """The page as it was read before; nobody is asked for it, and nothing is charged."""
        e = errand
        fresh = e.method.declared.fresh_for
        found = await asyncio.to_thread(shelf.get, e.walked, e.runner.mirror, e.request, fresh)
        if found is None:
            return None
        try:
            page = await understood(e.method, e.request, e.bind_set, e.bindings, found.reply, self.today)
        except SourceError:  # it is read otherwise now
            return None
        if page.astray is not None:
            return None
        ahead = e.runner.now - shelf.now()  # of the wall's clock
        e.asked_at(found.at + ahead)
        e.vouched(found.until + ahead, True)
        return page


class _Fetch:
    """The attempts at one page."""

    def __init__(self, shared: Fetcher, errand: Errand) -> None:
        self._shared = shared
        self._errand = errand
        self._source = errand.runner.gate.source
        self._due = errand.runner.now + self._source.deadline
        self._attempt = 0
        self._garbled = 0
        self._last: SourceError | None = None
        self._logged_in_anew = False
        self._recall: Recall | None = None  # of the attempt that is under way
        self._timer: asyncio.Timeout | None = None
        self._patient: asyncio.Timeout | None = None  # that of an attempt
        self._stopped = ""

    async def page(self, slot: Slot) -> Page:
        try:
            async with asyncio.timeout_at(self._due) as self._timer:
                with self._errand.staying(self._stop):
                    return await self._attempts(slot)
        except TimeoutError:
            if self._stopped:
                raise Spent(self._stopped, self._source.name) from None
            raise self._out_of_time() from self._last

    async def _attempts(self, slot: Slot) -> Page:
        while True:
            self._attempt += 1
            try:
                with slot:
                    return await self._try(slot)
            except SourceError as error:
                self._last = error
                outdated = isinstance(error, Outdated) and not self._logged_in_anew
                delay = 0.0 if outdated else self._delay(error)
            if outdated:
                self._logged_in_anew = True  # once: what is new and is refused as well stays refused
            else:
                await asyncio.sleep(delay)
                await self._budget(self._last).paid()
            slot = await self._errand.runner.claim(self._errand.claimant)

    async def _try(self, slot: Slot) -> Page:
        daily = self._errand.runner.gate.daily
        if daily is not None:
            await daily.ready()
        if self._errand.claimant.barred(self._source.name):
            raise self._errand.runner.left_alone
        if not self._errand.pay():
            raise asyncio.CancelledError  # as the trip is: nothing more is sent, not even until that is noticed
        if daily is not None:
            daily.take()
        counts = self._errand.runner.counts
        counts.requests += 1
        self._errand.runner.measured.requests += 1
        if self._attempt > 1:
            counts.retried += 1
        else:
            self._errand.runner.gate.retries.earn()
        try:
            page = await self._ask(slot)
        except Spent:  # on so much of a long reply as has come
            slot.succeeded()
            raise
        except SourceError as error:
            slot.failed(error)
            raise
        except asyncio.CancelledError:
            if self._errand.runner.now >= self._due:
                slot.failed(self._out_of_time())
            raise
        slot.succeeded()
        self._errand.runner.gate.refusals.earn()
        counts.rows += page.rows.num_rows
        return page

    async def _ask(self, slot: Slot) -> Page:
        """One request and what its reply is read as, or was when it was last read."""
        e = self._errand
        memory = self._shared.memory
        recall = Recall(memory, e.runner.mirror, e.method, e.bind_set, e.bindings, e.request)
        self._recall = recall
        started = e.runner.now
        if e.landed is not None and e.landed.count:  # the rest of a page, which is no page by itself
            return await self._read(await self._send(e.request, slot))
        reply = await self._send(recall.request, slot)
        came = e.runner.now
        page = recall.confirmed(reply)
        if page is None:
            page = await self._read(reply)
        headers = recall.learn(reply, page)
        if e.landed is not None and e.landed.count:
            return page
        until, stored = self._vouched(headers, started, came)
        if not stored or page.astray is not None:
            return page
        if self._shared.shelf is not None and type(reply) is Reply:
            await self._shelve(self._shared.shelf, reply, page, started, until)
        return page

    def _vouched(self, headers: Mapping[str, str], asked: float, came: float) -> tuple[float, bool]:
        """Until when the site vouches for a reply, and whether it may be kept on the disk."""
        e = self._errand
        if (unsaid := e.method.declared.unsaid) is None:
            return float("inf"), True
        site = vouched(headers, came - asked, self._shared.today)
        until = came + (unsaid if site.seconds is None else site.seconds)
        e.vouched(until, site.stored)
        return until, site.stored

    async def _shelve(self, shelf: Shelf, reply: Reply, page: Page, asked: float, until: float) -> None:
        """Where it is one of several pages: what one request answers is in the store as soon."""
        e = self._errand
        if e.bind_set and not page.then and not await asyncio.to_thread(shelf.began, e.walked):
            return
        if reply.status == NOT_MODIFIED:  # its body is what it was; whoever goes on asks for it anew
            return
        ahead = shelf.now() - e.runner.now
        shelved = Shelved(reply, asked + ahead, until + ahead)
        try:
            await asyncio.to_thread(shelf.put, e.walked, e.runner.mirror, e.request, shelved)
        except OSError as error:
            _log.warning("A page cannot be put by, and will be asked for again after a break: %s", error)

    async def _send(self, request: Request, slot: Slot) -> Reply:
        runner = self._errand.runner
        started = runner.now
        patience = self._patience()
        try:
            async with asyncio.timeout(patience) as self._patient:
                reply = await self._sent(request, started)
        except TimeoutError:
            runner.gave_up(runner.now - started)
            raise TimedOut(f"no reply within {patience:.3g} s", again=True) from None
        except asyncio.CancelledError:
            runner.gave_up(runner.now - started)
            raise
        runner.took(runner.now - started)
        slot.vacate()
        self._errand.received(len(reply.body))
        return reply

    async def _sent(self, request: Request, started: float) -> Reply:
        e, transport = self._errand, self._shared.transport
        cutter: Callable[[Mapping[str, str]], Cutter | None] | None = getattr(
            e.method.wrapper, "cutter", None
        )
        if e.landed is None or cutter is None or not isinstance(transport, Streams):
            return await transport.send(e.runner.mirror, request)
        stretches = Stretches(e.landed, cutter, partial(self._land, e.landed, started))
        return await transport.stream(e.runner.mirror, request, stretches)

    async def _land(self, landed: Landed, asked: float, reply: Reply, stretch: bytes) -> None:
        """What has come of a long reply. The next stretch has as much time as a whole reply has."""
        e = self._errand
        e.received(len(stretch))
        page = await self._read(reply)
        later = await asyncio.to_thread(landed.followed, stretch)
        # From here on nothing is waited for: either a stretch has landed, or another attempt brings it.
        self._vouched({name.lower(): value for name, value in reply.headers.items()}, asked, e.runner.now)
        e.land(page)
        if self._recall is not None:
            self._recall.part(page.rows)
        e.runner.silence.heard(e.runner.now)
        e.runner.counts.rows += page.rows.num_rows
        landed.become(later, page.rows.num_rows)
        e.check()
        if self._timer is not None and self._patient is not None and not self._timer.expired():
            self._due = e.runner.now + self._source.deadline
            self._timer.reschedule(self._due)
            self._patient.reschedule(e.runner.now + self._patience())

    async def _read(self, reply: Reply) -> Page:
        e = self._errand
        try:
            return await understood(e.method, e.request, e.bind_set, e.bindings, reply, self._shared.today)
        except Refused as error:
            error.message = refused_as(error.message, reply.status, self._source)
            raise
        except Unreadable as error:
            if e.landed is not None and e.landed.size:
                error.message += f" (counted from {e.landed.place} of the reply)"
            raise

    def _stop(self, why: str) -> None:
        """A ceiling of time was reached: what is under way is broken off."""
        if self._timer is not None and not self._timer.expired():
            self._stopped = why
            self._timer.reschedule(self._errand.runner.now)

    def _patience(self) -> float:
        """Half of the time left, so that one that hangs leaves time for the next; all of it for the last."""
        left = self._due - self._errand.runner.now
        return left if self._attempt >= self._source.attempts else left / 2

    def _delay(self, error: SourceError) -> float:
        """Seconds until the next attempt. Raises the error when there should be none."""
        runner = self._errand.runner
        if isinstance(error, RateLimited) and error.after is not None:
            if error.after < self._source.deadline:
                runner.gate.hold(runner.now + error.after)
            else:
                runner.gate.shut_for(error.after)
        if not error.again or self._attempt >= self._source.attempts or self._too_garbled(error):
            raise error
        if not runner.fit and self._errand.others():
            raise error
        delay = self._shared.backoff.delay(self._attempt, error.after)
        if runner.now + delay >= self._due:
            if error.after is not None and runner.now + error.after >= self._due:
                error.message += (
                    f"; it asks to be left alone for {error.after:,.0f} s, and that is more than is left of the"
                    f" deadline of {self._source.deadline:g} s: raise 'deadline' to wait for it"
                )
            raise error
        return delay

    def _budget(self, error: SourceError) -> Budget:
        """What was refused for now is paid for by what was answered, so that a site which answers all it can in the end
        answers all; anything else is a failure."""
        gate = self._errand.runner.gate
        return gate.refusals if isinstance(error, (RateLimited, Overloaded)) else gate.retries

    def _too_garbled(self, error: SourceError) -> bool:
        self._garbled += isinstance(error, Unreadable)
        return self._garbled >= _UNREADABLE

    def _out_of_time(self) -> SourceError:
        said = f"no answer within {self._source.deadline:g} s"
        return TimedOut(f"{said}; at last: {self._last.message}" if self._last else said)
