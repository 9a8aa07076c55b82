"""How a source is entered: as many requests at once as it bears, so many a second, and not before it said."""

from __future__ import annotations

import math

from mediator.access.limits.budget import Budget
from mediator.access.limits.daily import Daily
from mediator.access.limits.limiter import Limiter
from mediator.access.limits.width import Width
from mediator.catalog.model import Source
from mediator.clock import Clock
from mediator.errors import RateLimited, SourceError

_LONGEST = 3600.0  # seconds for which a site is left alone, whatever it says


class Gate:
    """One per source, shared by every query of the process. Counts who is inside."""

    def __init__(self, source: Source, clock: Clock, daily: Daily | None = None) -> None:
        self.source = source
        self.daily = daily
        self.clock = clock
        self.inside = 0
        self.most = 0  # that were ever inside at once
        self.width = Width(source.concurrency)
        self.retries = Budget(clock)
        self.refusals = Budget(clock, share=1.0)
        self.tokens = 0  # requests for a token to log in with
        self._limiter = Limiter(source.rate, clock) if source.rate is not None else None
        self._held_until = -math.inf
        self._shut_until = -math.inf
        self._why_shut = ""
        self._spacing = 0.0
        self._entered_at = -math.inf

    @property
    def shut(self) -> SourceError | None:
        """Why the source may not be asked any more for now, and nobody waits until it may."""
        if self.clock() < self._shut_until:
            return RateLimited(self._why_shut)
        return self.daily.spent if self.daily is not None else None

    @property
    def full(self) -> bool:
        return self.inside >= self.width.places

    def ready_at(self) -> float:
        """From when on one more may go in; infinite while that depends on somebody coming out."""
        return math.inf if self.full else self.limited_until()

    def limited_until(self) -> float:
        """How long the limiter, or the source's own word, keeps everybody out."""
        return max(self._held_until, self._limiter.ready_at() if self._limiter else -math.inf)

    def enter(self) -> None:
        self.inside += 1
        self.most = max(self.most, self.inside)
        self._entered_at = self.clock()
        if self._limiter:
            self._limiter.take()

    def token_asked(self) -> None:
        """Somebody inside asks for a token first: at once, and who comes next waits for longer."""
        self.tokens += 1
        if self._limiter:
            self._limiter.take(self.clock())

    def leave(self) -> None:
        self.inside -= 1

    def hold(self, until: float) -> None:
        """The source said when to come back; that goes for everyone."""
        self._held_until = max(self._held_until, until)

    def shut_for(self, seconds: float) -> None:
        """The same, where that is later than anybody waits for: who asked all the same would but annoy it."""
        self._shut_until = max(self._shut_until, self.clock() + min(seconds, _LONGEST))
        self._why_shut = (
            f"{self.source.name} has asked to be left alone for {seconds:,.0f} s, and that is more than its deadline of"
            f" {self.source.deadline:g} s: raise 'deadline' to wait for it"
        )

    def space(self, seconds: float) -> None:
        """From now on at least so many seconds lie between two, or as many as the declared rate wants."""
        if seconds == self._spacing:
            return
        self._spacing = seconds
        rates = [rate for rate in (self.source.rate, 1.0 / seconds if seconds else None) if rate is not None]
        self._limiter = Limiter(min(rates), self.clock) if rates else None
        if self._limiter:
            self._limiter.take(self._entered_at)
