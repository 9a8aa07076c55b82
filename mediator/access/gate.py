"""How a source is entered: as many requests at once as it bears, so many a second, and not before it said."""

from __future__ import annotations

import math

from mediator.access.budget import Budget
from mediator.access.limiter import Limiter
from mediator.access.width import Width
from mediator.catalog.model import Source
from mediator.clock import Clock


class Gate:
    """One per source, shared by every query of the process. Counts who is inside."""

    def __init__(self, source: Source, clock: Clock) -> None:
        self.source = source
        self.clock = clock
        self.inside = 0
        self.most = 0  # that were ever inside at once
        self.width = Width(source.concurrency)
        self.retries = Budget(clock)
        self.refusals = Budget(clock, share=1.0)
        self._limiter = Limiter(source.rate, clock) if source.rate is not None else None
        self._held_until = -math.inf

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
        if self._limiter:
            self._limiter.take()

    def leave(self) -> None:
        self.inside -= 1

    def hold(self, until: float) -> None:
        """The source said when to come back; that goes for everyone."""
        self._held_until = max(self._held_until, until)
