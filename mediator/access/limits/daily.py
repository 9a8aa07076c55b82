"""A source's daily budget: so many requests in a day (UTC), of all queries together."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import date, datetime, timedelta
from typing import Protocol

from mediator.access.limits.backoff import Calendar
from mediator.errors import SpentToday

_BLOCKS = 20  # into which a day's requests are divided, each noted before any of it is sent
_LARGEST = 100  # requests of one


class Book(Protocol):
    """Where it is noted, for the next process, how many requests were or may have been sent. Blocks."""

    def noted(self, source: str) -> tuple[date, int] | None: ...

    def note(self, source: str, day: date, count: int) -> None: ...


class Daily:
    """Counts each request before it is sent; in the book stand more, never fewer, than were sent.

    A clock that is set back is not believed: the later day goes on, and the budget is renewed when it has passed.
    """

    def __init__(self, source: str, most: int, today: Calendar, book: Book | None = None) -> None:
        self.most = most
        self._source = source
        self._today = today
        self._book = book
        noted = book.noted(source) if book is not None else None
        self._day, self._used = noted or (today().date(), 0)
        self._may_use = self._used  # so many are in the book
        self._noting: asyncio.Future[None] | None = None

    @property
    def left(self) -> int:
        """Requests that may still be sent today."""
        self._turn()
        return max(0, self.most - self._used)

    @property
    def spent(self) -> SpentToday | None:
        """Why no request may be sent any more, if none may."""
        if self.left:
            return None
        renewed = datetime.combine(self._day + timedelta(days=1), datetime.min.time())
        return SpentToday(
            f"{self._source} takes {self.most:,} requests a day, and has had them: its daily budget is renewed at "
            f"{renewed:%Y-%m-%d %H:%M} UTC",
            self._source,
        )

    async def ready(self) -> None:
        """Waits until one more may be sent: until it is in the book. Raises `SpentToday` when none may.

        Nothing may come between this and `take`.
        """
        while True:
            if (spent := self.spent) is not None:
                raise spent
            if self._book is None or self._used < self._may_use:
                return
            await self._note(self._book)

    def take(self) -> None:
        """One is sent now."""
        self._used += 1

    def settle(self) -> None:
        """The process ends: the book need not say more than was sent. Blocks."""
        if self._book is not None and self._used < self._may_use:
            with suppress(OSError):  # then it says more than was sent, which does no harm
                self._book.note(self._source, self._day, self._used)
                self._may_use = self._used

    def _turn(self) -> None:
        today = self._today().date()
        if today > self._day:
            self._day, self._used, self._may_use = today, 0, 0

    async def _note(self, book: Book) -> None:
        """One block more, for all who wait for it."""
        if self._noting is None:
            block = max(1, min(_LARGEST, self.most // _BLOCKS))
            day, count = self._day, min(self.most, self._used + block)
            loop = asyncio.get_running_loop()
            self._noting = loop.run_in_executor(None, book.note, self._source, day, count)
            self._noting.add_done_callback(lambda done: self._noted(day, count, done))
        noting = self._noting
        await asyncio.wait([noting])
        if (error := noting.exception()) is not None:
            why = f"what is sent to {self._source} cannot be noted, so nothing is: {error}"
            raise SpentToday(why, self._source) from error

    def _noted(self, day: date, count: int, done: asyncio.Future[None]) -> None:
        self._noting = None
        if not done.cancelled() and done.exception() is None and day == self._day:
            self._may_use = max(self._may_use, count)
