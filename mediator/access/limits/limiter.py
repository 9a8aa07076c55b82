"""So many requests a second, and not one more."""

from __future__ import annotations

import math

from asyncio_throttle.throttler import Throttler

from mediator.catalog.rate import burst
from mediator.clock import Clock

# It counts when requests arrive, this side when they leave: the window is kept a little longer than asked.
_MARGIN = 1.02


class Limiter(Throttler):
    """asyncio-throttle's sliding window, on the clock of the loop.

    The library reads the wall's clock and polls every 10 ms. Here whoever waits is told when to come back, so
    that the queue stays a queue (the most urgent goes next, not the first to have asked) and a virtual clock
    will do.
    """

    def __init__(self, rate: float, clock: Clock) -> None:
        at_once = burst(rate)
        super().__init__(rate_limit=at_once, period=at_once / rate * _MARGIN)
        self._clock = clock

    def flush(self) -> None:
        """Forgets what has left the window."""
        now = self._clock()
        while self._task_logs and self._task_logs[0] + self.period <= now:
            self._task_logs.popleft()

    def ready_at(self) -> float:
        """From when on one more may go."""
        self.flush()
        if len(self._task_logs) < self.rate_limit:
            return -math.inf
        return float(self._task_logs[0] + self.period)

    def take(self, at: float | None = None) -> None:
        """One more goes now, or went then."""
        self._task_logs.append(self._clock() if at is None else at)

    async def acquire(self) -> None:
        """Would queue without regard to urgency: a gate asks `ready_at` and `take`s instead."""
        raise TypeError("a gate's limiter is not waited for: ask ready_at, then take")
