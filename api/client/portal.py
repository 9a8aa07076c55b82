"""A thread with an event loop, where what is asynchronous runs for those who are not: scripts, notebooks, pandas.

It keeps one async context open, from its beginning to its end, in one task; each call is a task of its own beside it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any, Generic, TypeVar

from api.client.errors import Closed

T = TypeVar("T")

_GIVING_UP = 5.0  # seconds for a call that was interrupted to come to its end


class Portal:
    """Runs from when it is made until `close`. Any thread may call it."""

    def __init__(self, held: AbstractAsyncContextManager[object]) -> None:
        self._held = held
        self._opened: Future[None] = Future()
        # The garbage collector may come back here in the middle of a call, so the same thread may take it twice.
        self._lock = threading.RLock()
        self._closed = False
        self._calls: set[_Call[Any]] = set()
        self._thread = threading.Thread(target=self._run, name="mediator client", daemon=True)
        self._thread.start()
        self._opened.result()

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Its result. Ctrl-C meanwhile cancels it, and is raised when that is done."""
        if threading.current_thread() is self._thread:
            work.close()
            raise RuntimeError("the thread that would do it cannot wait for it")
        call = self._begun(work)
        try:
            return call.done.result()
        except KeyboardInterrupt:
            with suppress(BaseException):
                self._loop.call_soon_threadsafe(call.cancel)
                call.done.result(_GIVING_UP)
            raise

    def leave(self, work: Coroutine[Any, Any, object]) -> None:
        """Runs it, and waits for nothing. No effect once this is closed."""
        with suppress(Closed):
            self._begun(work)

    def close(self) -> None:
        """Ends what is being held, and the thread."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            with suppress(RuntimeError):  # the loop has ended by itself
                self._loop.call_soon_threadsafe(self._over.set)
        # The garbage collector may call this from the thread itself.
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _begun(self, work: Coroutine[Any, Any, T]) -> _Call[T]:
        call = _Call(work)
        with self._lock:
            # After a fork the thread is the parent's alone.
            if self._closed or not self._thread.is_alive():
                work.close()
                raise Closed("the client was closed")
            self._loop.call_soon_threadsafe(self._begin, call)
        return call

    def _begin(self, call: _Call[Any]) -> None:
        self._calls.add(call)
        call.task = self._group.create_task(call.run())
        call.task.add_done_callback(lambda _: self._ended(call))

    def _ended(self, call: _Call[Any]) -> None:
        self._calls.discard(call)
        call.over()

    def _run(self) -> None:
        try:
            asyncio.run(self._hold())
        except BaseException as error:
            if self._opened.done():
                raise
            self._opened.set_exception(error)

    async def _hold(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._over = asyncio.Event()
        async with self._held, asyncio.TaskGroup() as self._group:
            self._opened.set_result(None)
            await self._over.wait()
            for call in list(self._calls):
                call.cancel()


class _Call(Generic[T]):
    """Work, and where its result is waited for."""

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self.done: Future[T] = Future()
        self.task: asyncio.Task[None] | None = None
        self._work = work

    async def run(self) -> None:
        """Never raises: one call that fails is no matter of the others."""
        try:
            self.done.set_result(await self._work)
        except asyncio.CancelledError:
            self.over()
        except BaseException as error:
            self.done.set_exception(error)

    def cancel(self) -> None:
        if self.task is not None:
            self.task.cancel()

    def over(self) -> None:
        """Somebody may wait still for what was cancelled, before or after it began."""
        if not self.done.done():
            self._work.close()
            self.done.set_exception(Closed("the client was closed"))
