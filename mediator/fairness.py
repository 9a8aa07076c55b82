"""Who is next where one is served at a time: whoever has had the least of it, so that what is short need not wait for
all that is long.

It is fair queueing: on the lock's own scale, which moves on by each one's part of the time that is spent, nobody stands
further ahead than what it has had, nor further behind than a while. So whoever comes anew goes before those who have
been there for long, and yet nobody is passed over for ever.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from mediator.clock import Clock

_AHEAD = 0.5  # seconds that whoever comes anew may have before those who have been there


@dataclass(slots=True)
class Share:
    """What one of them has had. `urgent` goes before all others: it is about to end."""

    urgent: bool = False
    until: float = field(default=0.0, repr=False)  # the end of what it has had, on the lock's own scale


@dataclass(eq=False, slots=True)
class _Waiting:
    share: Share
    start: float
    turn: asyncio.Future[None]


class FairLock:
    """Of one event loop. It is handed from one to the next, so nobody who comes later slips in between."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._holder: Share | None = None
        self._start = self._since = 0.0  # of whoever holds it: on the scale, and by the clock
        self._now = 0.0  # on the scale
        self._waiting: list[_Waiting] = []

    @property
    def locked(self) -> bool:
        return self._holder is not None

    async def acquire(self, share: Share) -> None:
        start = max(share.until, self._now - _AHEAD)
        if self._holder is None:
            self._hand_to(share, start)
            return
        mine = _Waiting(share, start, asyncio.get_running_loop().create_future())
        self._waiting.append(mine)
        try:
            await mine.turn
        except asyncio.CancelledError:
            if mine in self._waiting:
                self._waiting.remove(mine)
            else:
                self.release()  # it was handed over in the same moment
            raise

    def release(self) -> None:
        assert self._holder is not None, "it is held"
        spent = self._clock() - self._since
        self._holder.until = self._start + spent
        self._holder = None
        self._now += spent / (1 + len(self._waiting))
        waiting = [w for w in self._waiting if not w.turn.done()]  # nor cancelled, in this moment
        if waiting:
            # Of equals the first that came.
            following = min(waiting, key=lambda w: (not w.share.urgent, w.start))
            self._waiting.remove(following)
            following.turn.set_result(None)
            self._hand_to(following.share, following.start)

    def _hand_to(self, share: Share, start: float) -> None:
        self._holder, self._start, self._since = share, start, self._clock()
