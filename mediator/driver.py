"""The one place where a running query meets asyncio: events in, turns taken, asks out, answers on.

A query has one task, which takes turns while there is anything to do and waits otherwise. Answers wait for their reader in
a buffer of bounded size: when it is full the query rests. A long turn is taken in a thread, so that the event loop stays
free; one lock keeps two queries from turning at once over the SteMs that they share.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Self

import pyarrow as pa

from mediator.access import Access
from mediator.flow.events import Ask, Event
from mediator.output.report import Report
from mediator.stages import Stages, Work

# Rows that a turn may find waiting and still be taken on the event loop.
_LIGHT = 2_048
_LIGHT_HOPS = 8
_HEAVY_HOPS = 16
# Rows that may wait for their reader.
_BUFFERED = 200_000


class Answers:
    """The answers of one query, batch by batch, as they are found.

    `async with` starts it and, at the end, cancels whatever is still under way. `report` can be read at any time; after
    the last batch it is final.
    """

    def __init__(self, stages: Stages, access: Access, turning: asyncio.Lock) -> None:
        self._stages = stages
        self._access = access
        self._turning = turning
        self._inbox: deque[Event] = deque()
        self._found: deque[pa.RecordBatch] = deque()
        self._waiting_rows = 0
        self._stirred = asyncio.Event()
        self._readable = asyncio.Event()
        self._writable = asyncio.Event()
        self._why_stop = ""
        self._over = False
        self._error: BaseException | None = None

    @property
    def schema(self) -> pa.Schema:
        return self._stages.query.schema

    @property
    def report(self) -> Report:
        return self._stages.report()

    async def __aenter__(self) -> Self:
        self._visit = self._access.visit(self._deliver)
        self._group = asyncio.TaskGroup()
        await self._group.__aenter__()
        self._pump = self._group.create_task(self._run())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pump.cancel()
        # The block's own error goes on as it is; the group only waits for the task.
        await self._group.__aexit__(None, None, None)
        async with self._turning:
            self._stages.stop("cancelled")
        self._visit.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> pa.RecordBatch:
        while not self._found:
            if self._error is not None:
                raise self._error
            if self._over:
                raise StopAsyncIteration
            self._readable.clear()
            await self._readable.wait()
        batch = self._found.popleft()
        self._waiting_rows -= batch.num_rows
        self._writable.set()
        return batch

    def stop(self, why: str) -> None:
        """End the query soon: what was found so far is answered, and the report is partial and says why."""
        self._why_stop = self._why_stop or why
        self._stirred.set()
        self._writable.set()

    async def snapshot(self) -> pa.Table | None:
        """The answer as it stands, for queries whose answer later rows may still change."""
        async with self._turning:
            return await asyncio.to_thread(self._stages.snapshot)

    def _deliver(self, event: Event) -> None:
        self._inbox.append(event)
        self._stirred.set()

    async def _run(self) -> None:
        try:
            await self._take(self._stages.start)
            while not self._stages.finished:
                if self._why_stop:
                    await self._take(lambda: self._stages.stop(self._why_stop))
                    break
                if self._stages.idle and not self._inbox:
                    self._stirred.clear()
                    await self._stirred.wait()
                    # What arrives within this turn of the loop is taken in together.
                    await asyncio.sleep(0)
                await self._take(self._turn)
                await self._room()
        except Exception as error:
            self._error = error
        finally:
            self._over = True
            self._readable.set()

    async def _take(self, turn: Callable[[], Work]) -> None:
        """One turn, here or in a thread; then do as it says."""
        async with self._turning:
            self._admit()
            if self._stages.load <= _LIGHT:
                work = turn()
            else:
                work = await _in_thread(turn)
        for command in work.commands:
            if isinstance(command, Ask):
                self._visit.ask(command)
            else:
                self._visit.cancel(command)
        for batch in work.answers:
            self._found.append(batch)
            self._waiting_rows += batch.num_rows
            self._readable.set()
        await asyncio.sleep(0)

    def _turn(self) -> Work:
        return self._stages.turn(_LIGHT_HOPS if self._stages.load <= _LIGHT else _HEAVY_HOPS)

    def _admit(self) -> None:
        while self._inbox:
            self._stages.admit(self._inbox.popleft())

    async def _room(self) -> None:
        """Wait until the reader has made room."""
        while self._waiting_rows > _BUFFERED and not self._why_stop:
            self._writable.clear()
            await self._writable.wait()


async def _in_thread(turn: Callable[[], Work]) -> Work:
    """Run to its end even if the caller is cancelled: what it works on is shared."""
    task = asyncio.get_running_loop().run_in_executor(None, turn)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise
