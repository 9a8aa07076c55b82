"""One mirror of one access method in the race: how it is entered, how it has done, who waits for it."""

from __future__ import annotations

import asyncio
import heapq
import math
from dataclasses import dataclass, field
from itertools import count
from types import TracebackType
from typing import Protocol, Self

from mediator.access.desk import Desk
from mediator.access.limits.breaker import Breaker
from mediator.access.limits.gate import Gate
from mediator.access.mirrors.latency import Latency
from mediator.access.mirrors.silence import Silence
from mediator.access.queue import Rank
from mediator.catalog.measured import Measured, Measurements, Place
from mediator.catalog.model import Mirror
from mediator.errors import Overloaded, RateLimited, Refused, SourceError

LEAST = 0.01  # seconds: no request is taken to be faster
_NEWEST = 0.1  # weight of the newest attempt in the error rate


@dataclass(slots=True)
class Counts:
    """Bindings are counted once per mirror that was asked for them, requests once per attempt."""

    asked: int = 0
    answered: int = 0
    failed: int = 0
    requests: int = 0
    retried: int = 0
    errors: int = 0
    hedges: int = 0
    rows: int = 0


class LeftAlone(SourceError):
    """Nothing was sent: everybody who waits would have this source left alone. No fault of it, and no answer."""

    kind = "paused"


class Claimant(Protocol):
    """On whose account a place is waited for."""

    @property
    def rank(self) -> Rank:
        """How urgent that is by now."""
        ...

    def barred(self, source: str) -> bool:
        """Whether this source is to be left alone for now."""
        ...


class Runner:
    """Mirrors of one method run against one another; statistics and breaker are each mirror's own."""

    def __init__(
        self, mirror: Mirror, gate: Gate, desk: Desk, place: Place, measurements: Measurements
    ) -> None:
        self.mirror = mirror
        self.gate = gate
        self.desk = desk
        self.breaker = Breaker()
        self._place = place
        self._measurements = measurements
        earlier = measurements.at(place)
        self.latency = Latency(earlier.latency)
        self.error_rate = earlier.error_rate
        self.inside = 0  # attempts under way
        self.counts = Counts()
        self.silence = Silence()
        self._claims: list[_Claim] = []
        self._order = count()

    @property
    def measured(self) -> Measured:
        """By this process, and by those before it; to be added to."""
        return self._measurements.adding(self._place)

    @property
    def now(self) -> float:
        return self.gate.clock()

    @property
    def room(self) -> bool:
        """Whether an attempt may go right now."""
        return self.free_at() <= self.now

    @property
    def fit(self) -> bool:
        """Whether the breaker lets anybody in, and the gate is not shut."""
        return self.breaker.ready_at <= self.now and self.gate.shut is None

    @property
    def expected(self) -> float:
        """Seconds that one request is expected to take, failures included."""
        return self.latency.mean / max(0.05, 1.0 - self.error_rate)

    @property
    def seconds(self) -> float:
        """What it is expected to take, for who compares; the least there is while nothing is known."""
        return max(LEAST, self.expected if self.latency.known else 0.0)

    def free_at(self) -> float:
        if self.gate.shut is not None:
            return math.inf
        return max(self.gate.ready_at(), self.breaker.ready_at)

    def drained(self, requests: int) -> float:
        """Seconds until so many more requests would have been let in, by what is known."""
        source = self.gate.source
        return requests * max(
            self.expected / self.gate.width.places, 1.0 / source.rate if source.rate else 0.0
        )

    def enter(self) -> Slot:
        """Takes a place, which `room` promised."""
        self.gate.enter()
        self.inside += 1
        return Slot(self, self.breaker.enter())

    def took(self, seconds: float) -> None:
        """A reply came after so long."""
        self.silence.heard(self.now)
        self.latency.add(seconds, self.now)
        self.measured.latency.add(seconds)

    def gave_up(self, seconds: float) -> None:
        """No reply came for so long. That is news only when it is longer than usual."""
        if self.latency.at_least(seconds, self.now):
            self.measured.latency.add(seconds)

    async def claim(self, who: Claimant) -> Slot:
        """Waits for a place in the order of rank, behind nobody who is less urgent.

        Raises `LeftAlone` as soon as the source is to be left alone.
        """
        if who.barred(self.mirror.source):
            raise self.left_alone
        claim = _Claim(who.rank, next(self._order), who, asyncio.get_running_loop().create_future())
        heapq.heappush(self._claims, claim)
        self.desk.stir(self)
        try:
            return await claim.place
        except asyncio.CancelledError:
            if claim.place.done() and not claim.place.cancelled() and claim.place.exception() is None:
                claim.place.result().leave()  # it was granted just before it was no longer wanted
            claim.place.cancel()
            raise

    @property
    def left_alone(self) -> LeftAlone:
        return LeftAlone(f"{self.mirror.source} is paused")

    def hurry(self, who: Claimant) -> None:
        """What waits on this account has another rank from now on."""
        mine = [claim for claim in self._claims if claim.who is who]
        for claim in mine:
            claim.rank = who.rank
        if mine:
            heapq.heapify(self._claims)

    def turn_away(self, who: Claimant) -> None:
        """What waits on this account waits no longer: the source is to be left alone."""
        for claim in self._claims:
            if claim.who is who and not claim.place.done():
                claim.place.set_exception(self.left_alone)

    def waiting(self) -> int:
        return sum(not claim.place.done() for claim in self._claims)

    def rank(self) -> Rank | None:
        while self._claims and self._claims[0].place.done():
            heapq.heappop(self._claims)
        if not self._claims:
            return None
        urgency, order, waiting = self._claims[0].rank
        return urgency / self.seconds, order, waiting

    def serve(self) -> bool:
        if (shut := self.gate.shut) is not None:
            heapq.heappop(self._claims).place.set_exception(shut)
            return True
        if not self.room:
            return False
        heapq.heappop(self._claims).place.set_result(self.enter())
        return True

    def ready_at(self) -> float:
        return self.free_at()


class Slot:
    """A place at a source for one attempt: given back on leaving, whatever happens."""

    def __init__(self, runner: Runner, on_probation: bool) -> None:
        self._runner = runner
        self._on_probation = on_probation
        self._entered = runner.now
        self._number = runner.gate.width.enter()
        self._last_place = runner.gate.full
        runner.silence.sent(self._number, self._entered)
        self._seconds = 0.0
        self._inside = True
        self._told = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.leave()

    def leave(self) -> None:
        """Done, or called back. Who was on probation and has not told how it went leaves that open."""
        self.vacate()
        if self._on_probation and not self._told:
            self._told = True
            self._runner.breaker.abandoned()

    def vacate(self) -> None:
        """The site has answered: somebody else may ask while the reply is being read."""
        if self._inside:
            self._inside = False
            self._seconds = self._runner.now - self._entered
            self._runner.gate.leave()
            self._runner.silence.over(self._number)
            self._runner.inside -= 1
            self._runner.desk.stir()

    def succeeded(self) -> None:
        self._told = True
        runner = self._runner
        runner.error_rate -= _NEWEST * runner.error_rate
        runner.breaker.succeeded()
        if self._last_place:
            runner.gate.width.answered(self._number, self._seconds)

    def failed(self, error: SourceError) -> None:
        """A clear no, or "too many", is an answer: it does not make the mirror a sick one."""
        runner = self._runner
        runner.counts.errors += 1
        runner.measured.failed(error.kind)
        runner.error_rate += _NEWEST * (1.0 - runner.error_rate)
        self._told = True
        if _too_much(error) and not self._on_probation:
            runner.gate.width.refused(self._number)
        if _sick(error):
            runner.breaker.failed(runner.now, self._on_probation)
        else:
            runner.breaker.succeeded()


@dataclass(order=True, slots=True)
class _Claim:
    rank: Rank
    order: int
    who: Claimant = field(compare=False)
    place: asyncio.Future[Slot] = field(compare=False)


def _sick(error: SourceError) -> bool:
    if isinstance(error, Refused):
        return error.again
    return error.kind != "rate limited"


def _too_much(error: SourceError) -> bool:
    return isinstance(error, RateLimited | Overloaded)
