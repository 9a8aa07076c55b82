"""What is left of one set of ceilings: a query's own, or those that it has for one source."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from mediator.catalog.ceilings import Ceilings
from mediator.errors import Cause

if TYPE_CHECKING:
    from mediator.access.limits.stay import Stay


class Pocket:
    """`spent` is told once that nothing more can be paid. Seconds pass while there is a stay at the source."""

    def __init__(self, ceilings: Ceilings, spent: Callable[[], None], source: str = "") -> None:
        self.calls = 0
        self.bytes = 0
        self.empty: Cause | None = None  # why nothing more can be paid
        self._ceilings = ceilings
        self._spent = spent
        self._source = source
        self._stays: dict[Stay, None] = {}
        self._seconds = 0.0  # that the stays took which are over
        self._since = 0.0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def left(self) -> Ceilings:
        return self._ceilings.less(self.calls, self.bytes)

    @property
    def affords(self) -> bool:
        """Whether one more request can be paid for."""
        return self.empty is None and not self._called_enough and not self._stayed_enough

    def ready(self) -> bool:
        """Whether one more can be paid for, now that one is needed. If not, that is the end of it."""
        if self._called_enough:
            self._close(
                f"may send {self._ceilings.calls:,} requests{self._to('to')} (max_calls), and needs more"
            )
        elif self._stayed_enough:
            self._close_for_time()
        return self.empty is None

    def pay(self) -> None:
        """One request is about to be sent, for which it was ready."""
        self.calls += 1

    def received(self, size: int) -> None:
        """A reply of so many bytes was read."""
        self.bytes += size
        most = self._ceilings.bytes
        if most is not None and self.bytes >= most:
            self._close(f"may read {most:,} bytes{self._to('from')} (max_bytes), and has read {self.bytes:,}")

    def begin(self, stay: Stay) -> None:
        """From now on time passes."""
        seconds = self._ceilings.seconds
        if seconds is None or stay in self._stays:
            return
        if not self._stays:
            loop = asyncio.get_running_loop()
            self._since = loop.time()
            self._timer = loop.call_later(max(0.0, seconds - self._seconds), self._out_of_time)
        self._stays[stay] = None

    def end(self, stay: Stay) -> None:
        """It is over; when it was the last, time stands still."""
        if self._stays.pop(stay, stay) is None and not self._stays:
            self._seconds += asyncio.get_running_loop().time() - self._since
            self._stop_timer()

    def drop(self) -> None:
        """The query is over."""
        self._stays.clear()
        self._stop_timer()

    @property
    def _called_enough(self) -> bool:
        return self._ceilings.calls is not None and self.calls >= self._ceilings.calls

    @property
    def _stayed_enough(self) -> bool:
        return self._ceilings.seconds is not None and self._seconds >= self._ceilings.seconds

    def _out_of_time(self) -> None:
        self._timer = None
        self._close_for_time()
        for stay in tuple(self._stays):
            stay.out_of_time()

    def _close_for_time(self) -> None:
        most = self._ceilings.seconds
        self._close(f"may spend {most:g} s with requests{self._to('to')} (max_seconds), and needs more")

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _to(self, preposition: str) -> str:
        return f" {preposition} {self._source}" if self._source else ""

    def _close(self, why: str) -> None:
        if self.empty is None:
            self.empty = Cause("ceiling", f"the query {why}")
            self._spent()
