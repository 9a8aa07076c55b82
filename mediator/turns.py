"""Queries over shared SteMs take turns, one at a time, and what comes for any of them is taken in between."""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from typing import Protocol, TypeVar

from mediator.alarm import Alarm
from mediator.clock import Clock, monotonic
from mediator.errors import MediatorError
from mediator.fairness import FairLock, Share
from mediator.query import duck
from mediator.state.memory import SPARE, WAIT
from mediator.statements.patience import Aside

T = TypeVar("T")

_TURNERS = 320  # threads at most: one turns, each other one waits for what was taken aside
_ASIDES = 64
_HUMBLE = 10  # by how much nicer than others they are who work aside


class Turning(Protocol):
    """A query that turns."""

    async def stopped(self, why: str) -> None:
        """Stop it, and wait until it turns no more."""
        ...


class Turns:
    """Queries over shared SteMs turn one at a time: `async with turns.taken(share)` is a turn. Whoever has turned for
    the shortest time is next.

    What comes for any of them goes to its eddy before anybody turns again. So a lookup that has been answered
    is stored when another query looks for it, however long the one that asked for it rests.
    """

    def __init__(self, clock: Clock = monotonic) -> None:
        self._lock = FairLock(clock)
        self._due: deque[Callable[[], object]] = deque()
        self._queries: dict[Turning, None] = {}
        self._closed = False
        self._tidying = Alarm()
        self._turners = ThreadPoolExecutor(_TURNERS, "turn")
        # Who waits for other processes is not humble: it holds the interpreter at times, and everybody would wait.
        humbly = None if duck.elsewhere() else _humbly
        self._asides = ThreadPoolExecutor(_ASIDES, "aside", initializer=humbly)

    def join(self, query: Turning) -> None:
        """Another query will turn, until it leaves."""
        if self._closed:
            raise MediatorError("The mediator has been closed: no query can be started")
        self._queries[query] = None

    def leave(self, query: Turning) -> None:
        self._queries.pop(query, None)
        self._tidy_later()

    async def close(self, why: str) -> None:
        """Stop all queries, and wait until none turns any more."""
        self._closed = True
        for query in tuple(self._queries):
            await query.stopped(why)
        self._tidying.off()
        self._turners.shutdown(wait=False)
        self._asides.shutdown(wait=False)

    @asynccontextmanager
    async def taken(self, share: Share | None = None) -> AsyncIterator[None]:
        """Of what a query has turned in all; without it, by somebody who has not turned before."""
        await self._lock.acquire(share or Share())
        try:
            self.catch_up()  # with what came while it was handed over
            yield
            self.catch_up()
        finally:
            self._lock.release()

    def in_thread(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """A long turn, in a thread of its own."""
        return asyncio.get_running_loop().run_in_executor(self._turners, work)

    def aside(self, loop: asyncio.AbstractEventLoop, share: Share) -> Aside:
        """For whoever turns in a thread: have something done that touches nothing that queries share, while others
        turn. What is computed in this process has less of the processors than they have."""

        def done(work: Callable[[], T]) -> T:
            asyncio.run_coroutine_threadsafe(self._step_out(), loop).result()
            try:
                return self._asides.submit(work).result()
            finally:
                asyncio.run_coroutine_threadsafe(self._lock.acquire(share), loop).result()

        return done

    async def _step_out(self) -> None:
        self.catch_up()
        self._lock.release()

    def between(self, step: Callable[[], object]) -> None:
        """Do something short as soon as nobody turns: now, or after the turn that is being taken."""
        self._due.append(step)
        if not self._lock.locked:
            self.catch_up()

    def catch_up(self) -> None:
        """Do what is due. For whoever turns, between two steps."""
        while self._due:
            self._due.popleft()()

    def _tidy_later(self) -> None:
        """The memory that queries have left goes back to the system when no other has used it for a while."""
        if not self._tidying.was_set and SPARE.size and not self._closed:
            self._tidying.set(asyncio.get_running_loop().time() + WAIT, self._tidy)

    def _tidy(self) -> None:
        self._tidying.off()
        SPARE.release()
        self._tidy_later()


def _humbly() -> None:
    """This thread leaves the processors to the others; where a system has no such thing, it is one among them."""
    with suppress(OSError, AttributeError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _HUMBLE)
