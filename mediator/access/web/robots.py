"""What each origin's robots.txt allows (RFC 9309), for the sources that obey it.

It is fetched before the first page of an origin, once for all that want one, through the same gate, transport and
bounds as a page, and holds for a day. What a site does not have (4xx) forbids nothing; what cannot be read (5xx, 429,
no connection, a redirect that is not followed) forbids everything until it can. Of an origin that was read before, the
old rules hold on meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from yarl import URL

from mediator.access.limits.backoff import Backoff, Calendar
from mediator.access.limits.gate import Gate
from mediator.access.mirrors.runner import Claimant, Runner, Slot
from mediator.access.reading import refusal
from mediator.access.web.quoting import plain, shown
from mediator.access.web.redirects import origin
from mediator.access.web.robots_text import AGENT, ROBOTS_TXT, Robots, parse
from mediator.access.web.transport import Transport, address
from mediator.catalog.model import Mirror
from mediator.catalog.wrapper import Reply, Request
from mediator.clock import Clock
from mediator.errors import RateLimited, Refused, SourceError, Spent, TimedOut

LASTS = 86_400.0  # seconds, as long as RFC 9309 allows
AGAIN = 60.0  # seconds after which one that could not be read is asked for again
_ATTEMPTS = 3
_SMALL = 16 << 10  # bytes
_MOST_PLACES = 10_000  # that are known at once
_MOST_RULES = 200_000  # of all of them together: some 50 MB
_LEAVE = "if you have leave to ask it nevertheless, declare robots: ignore"

Origin = tuple[str, str | None, int | None]


@dataclass(frozen=True, slots=True)
class _Known:
    """Of one origin: its rules, or why there are none."""

    rules: Robots
    until: float
    unread: str = ""


class RobotsPolicy:
    """One per process. Raises `Refused` for what may not be asked."""

    def __init__(self, transport: Transport, backoff: Backoff, today: Calendar) -> None:
        self._transport = transport
        self._backoff = backoff
        self._today = today
        self._known: dict[Origin, _Known] = {}
        self._locks: dict[Origin, asyncio.Lock] = {}

    async def admit(self, runner: Runner, request: Request, who: Claimant, slot: Slot | None) -> Slot | None:
        """A place that may be used for this request; none where it was spent on waiting, and another has to be claimed.

        Whoever waits for the file waits in a place: so no more wait than the source has places, and the rest stays in
        line. What comes after the wait is let in anew, at the pace that the file asks for.
        """
        if runner.gate.source.robots == "ignore":
            return slot
        try:
            url = address(runner.mirror, request)
            if not self._fresh(origin(url), runner.now):
                with slot or await runner.claim(who) as taken:
                    slot = None
                    await self._learn(origin(url), runner.gate.clock, lambda: self._fetched(runner, taken))
            runner.gate.space(self._known[origin(url)].rules.delay)
            self._check(url)
        except ValueError:
            return slot  # no address at all: whoever sends it says so
        except SourceError:
            if slot is not None:
                slot.leave()
            raise
        return slot

    async def follow(self, gate: Gate, request: Request, url: URL) -> None:
        """A page redirects here, where other rules may hold. For who has a place already."""
        if gate.source.robots == "ignore" or request == ROBOTS_TXT:
            return
        if not self._fresh(origin(url), gate.clock()):
            mirror = Mirror(gate.source.name, str(url.origin()))
            await self._learn(origin(url), gate.clock, lambda: self._once(gate, mirror))
        self._check(url)

    def space(self, gate: Gate, url: URL) -> None:
        """From now on the gate lets so much time go by as the rules want, of a place that was asked for its rules."""
        if gate.source.robots == "obey" and (known := self._known.get(origin(url))) is not None:
            gate.space(known.rules.delay)

    def _fresh(self, place: Origin, now: float) -> bool:
        known = self._known.get(place)
        return known is not None and now < known.until

    def _check(self, url: URL) -> None:
        known = self._known[origin(url)]
        if known.unread:
            raise Refused(
                f"robots.txt of {shown(url.origin())} cannot be read ({known.unread}), so nothing there may be asked;"
                f" it is tried again after {AGAIN:g} s; {_LEAVE}"
            )
        if (rule := known.rules.forbidding(url.raw_path_qs)) is not None:
            raise Refused(
                f"robots.txt of {shown(url.origin())} disallows {plain(url.raw_path)} for {AGENT}"
                f" ({plain(str(rule))}); {_LEAVE}"
            )

    async def _learn(self, place: Origin, clock: Clock, fetch: Callable[[], Awaitable[Reply]]) -> None:
        """Whoever comes first fetches it; should that be called back, the next one does."""
        async with self._locks.setdefault(place, asyncio.Lock()):
            if self._fresh(place, clock()):
                return
            try:
                reply = await fetch()
            except Spent:
                raise
            except SourceError as error:
                self._note(place, self._unread(place, error.message, clock() + AGAIN))
            else:
                self._note(place, _Known(await _parsed(reply), clock() + LASTS))

    def _note(self, place: Origin, known: _Known) -> None:
        """A site can lead to any number of places: those that were read first are forgotten."""
        self._known.pop(place, None)
        self._known[place] = known
        rules = sum(len(known.rules.rules) for known in self._known.values())
        while len(self._known) > 1 and (rules > _MOST_RULES or len(self._known) > _MOST_PLACES):
            place, known = next(iter(self._known.items()))
            rules -= len(known.rules.rules)
            del self._known[place]
            if not self._locks[place].locked():
                del self._locks[place]

    def _unread(self, place: Origin, why: str, until: float) -> _Known:
        before = self._known.get(place)
        if before is None or before.unread:
            return _Known(Robots(), until, why)
        return _Known(before.rules, until)

    async def _fetched(self, runner: Runner, slot: Slot) -> Reply:
        """All attempts in one place: the others are taken by those who wait for it."""
        deadline = runner.gate.source.deadline
        attempt = 0
        try:
            async with asyncio.timeout(deadline):
                while True:
                    attempt += 1
                    try:
                        return await self._in_place(runner, slot)
                    except SourceError as error:
                        await asyncio.sleep(self._delay(runner, attempt, error))
        except TimeoutError:
            raise TimedOut(f"no answer within {deadline:g} s") from None

    async def _in_place(self, runner: Runner, slot: Slot) -> Reply:
        try:
            reply = await self._once(runner.gate, runner.mirror)
        except SourceError as error:
            slot.failed(error)
            raise
        slot.vacate()
        slot.succeeded()
        return reply

    async def _once(self, gate: Gate, mirror: Mirror) -> Reply:
        if gate.daily is not None:
            await gate.daily.ready()
            gate.daily.take()
        reply = await self._transport.send(mirror, ROBOTS_TXT)
        if reply.status >= 500 or reply.status in (304, 429):
            raise refusal(reply, self._today)
        return reply

    def _delay(self, runner: Runner, attempt: int, error: SourceError) -> float:
        """Seconds until the next attempt. Raises the error when there should be none."""
        gate = runner.gate
        if isinstance(error, RateLimited) and error.after is not None and error.after < gate.source.deadline:
            gate.hold(runner.now + error.after)
        if not error.again or attempt >= min(_ATTEMPTS, gate.source.attempts) or not gate.retries.pays():
            raise error
        return self._backoff.delay(attempt, error.after)


async def _parsed(reply: Reply) -> Robots:
    """A large file is read in a thread, so that the loop keeps turning."""
    if not 200 <= reply.status < 300:
        return Robots()
    return await asyncio.to_thread(parse, reply.body) if len(reply.body) > _SMALL else parse(reply.body)
