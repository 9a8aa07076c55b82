"""What may be asked on top: a share of the requests that are made anyway, and a trickle."""

from __future__ import annotations

import asyncio
from collections import deque

from mediator.clock import Clock

SHARE = 0.1  # retries that one request pays for; of what was refused for now, one answer pays for one
TRICKLE = 1.0  # retries a second, whatever else is asked: who asks little may try again too
SAVED = 10.0  # retries that can be saved up


class Budget:
    """One per source, for the retries of all its visitors: a site that is down is not asked twice as much for it.

    Whoever has to wait for its turn to be paid for waits in the order of coming.
    """

    def __init__(
        self, clock: Clock, share: float = SHARE, trickle: float = TRICKLE, saved: float = SAVED
    ) -> None:
        self._clock = clock
        self._share, self._trickle, self._most = share, trickle, saved
        self._saved = saved
        self._counted_at = clock()
        self._queue: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def waiting(self) -> int:
        return sum(not place.done() for place in self._queue)

    def earn(self) -> None:
        """A request is made that nobody has to pay for."""
        self._save(self._share)
        self._serve()

    def pays(self) -> bool:
        """Whether one more can be paid for now; if so, it is."""
        self._count()
        if self._queue or not self._affordable:
            return False
        self._saved -= 1.0
        return True

    async def paid(self) -> None:
        """Waits until one more can be paid for."""
        if self.pays():
            return
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append(place)
        self._serve()
        await place

    @property
    def _affordable(self) -> bool:
        return self._saved >= 1.0 - 1e-9  # a timer may be early by less than it can tell

    def _save(self, more: float) -> None:
        self._saved = min(self._most, self._saved + more)

    def _count(self) -> None:
        now = self._clock()
        self._save((now - self._counted_at) * self._trickle)
        self._counted_at = now

    def _serve(self) -> None:
        self._count()
        while self._queue and (self._affordable or self._queue[0].done()):
            place = self._queue.popleft()
            if not place.done():
                self._saved -= 1.0
                place.set_result(None)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._queue:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later((1.0 - self._saved) / self._trickle, self._serve)
