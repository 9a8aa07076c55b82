"""The one place where a running query meets asyncio: events in, turns taken, asks out, answers on.

A query has one task, which takes turns while there is anything to do and waits otherwise. Answers wait for
their reader in a buffer of bounded size: when it is full the query rests. A long turn is taken in a thread,
so that the event loop stays free; `Turns` keeps two queries from turning at once over the SteMs that they
share.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Self, TypeVar

import pyarrow as pa

from mediator.access import Access
from mediator.catalog.ceilings import NO_CEILINGS, Ceilings
from mediator.errors import MediatorError
from mediator.flow.events import Ask, Event
from mediator.output.report import Report
from mediator.stages import Stages, Work
from mediator.state.memory import SPARE, WAIT

T = TypeVar("T")

# Rows that a turn may find waiting and still be taken on the event loop.
_LIGHT = 2_048
_LIGHT_HOPS = 8
_HEAVY_HOPS = 16
# Rows that may wait for their reader.
_BUFFERED = 200_000
_NOWHERE: Mapping[str, Ceilings] = {}


class Turns:
    """Queries over shared SteMs turn one at a time: `async with turns` is a turn.

    What comes for any of them goes to its eddy before anybody turns again. So a lookup that has been answered
    is stored when another query looks for it, however long the one that asked for it rests.
    """

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._due: deque[Callable[[], object]] = deque()
        self._queries: dict[Answers, None] = {}
        self._closed = False
        self._tidying: asyncio.TimerHandle | None = None

    def join(self, query: Answers) -> None:
        """Another query will turn, until it leaves."""
        if self._closed:
            raise MediatorError("The mediator has been closed: no query can be started")
        self._queries[query] = None

    def leave(self, query: Answers) -> None:
        self._queries.pop(query, None)
        self._tidy_later()

    async def close(self, why: str) -> None:
        """Stop all queries, and wait until none turns any more."""
        self._closed = True
        for query in tuple(self._queries):
            await query.stopped(why)
        if self._tidying is not None:
            self._tidying.cancel()
        SPARE.release(wait=0.0)

    async def __aenter__(self) -> None:
        await self._lock.acquire()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.catch_up()
        finally:
            self._lock.release()

    def between(self, step: Callable[[], object]) -> None:
        """Do something short as soon as nobody turns: now, or after the turn that is being taken."""
        self._due.append(step)
        if not self._lock.locked():
            self.catch_up()

    def catch_up(self) -> None:
        """Do what is due. For whoever turns, between two steps."""
        while self._due:
            self._due.popleft()()

    def _tidy_later(self) -> None:
        """The memory that queries have left goes back to the system when no other has used it for a while."""
        if self._tidying is None and SPARE.size and not self._closed:
            self._tidying = asyncio.get_running_loop().call_later(WAIT, self._tidy)

    def _tidy(self) -> None:
        self._tidying = None
        SPARE.release()
        self._tidy_later()


class Answers:
    """The answers of one query, batch by batch, as they are found.

    `async with` starts it and, at the end, cancels whatever is still under way. `report` can be read at any
    time; after the last batch it is final.
    """

    def __init__(
        self,
        schema: pa.Schema,
        stages: Callable[[], Stages],
        access: Access,
        turns: Turns,
        ceilings: Ceilings = NO_CEILINGS,
        ceilings_at: Mapping[str, Ceilings] = _NOWHERE,
        warnings: Sequence[str] = (),
    ) -> None:
        self.schema = schema
        self.warnings = tuple(warnings)  # what is amiss already, before anything is asked
        self._make_stages = stages
        self._access = access
        self._turns = turns
        self._ceilings = ceilings
        self._ceilings_at = ceilings_at  # single sources
        self._stages: Stages | None = None
        self._found: deque[pa.RecordBatch] = deque()
        self._waiting_rows = 0
        self._stirred = asyncio.Event()
        self._readable = asyncio.Event()
        self._why_stop = ""
        self._why_broken_off = ""
        self._over = asyncio.Event()
        self._error: BaseException | None = None
        self._apart = False  # a thread is taking this query's turn
        self._timer: asyncio.TimerHandle | None = None
        self._watched = False  # somebody wanted the report meanwhile
        self._last_report = Report()

    @property
    def report(self) -> Report:
        """How things stand; while a thread takes a turn, how they stood before that."""
        if self._apart:
            self._watched = True
            return self._last_report
        if self._stages is not None:
            self._last_report = self._stages.report()
        return replace(self._last_report, stopped=self._last_report.stopped or self._why_broken_off)

    async def __aenter__(self) -> Self:
        if self._stages is not None:
            raise RuntimeError("These answers have been asked for already: a query runs once")
        self._turns.join(self)
        try:
            await self._start()
        except BaseException as error:
            self._over.set()
            self._break_off(f"failed: {error}")
            self._turns.leave(self)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pump.cancel()
        try:
            # The block's own error goes on as it is; the group only waits for the task.
            await self._group.__aexit__(None, None, None)
        finally:
            self._break_off("cancelled")
            self._turns.leave(self)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> pa.RecordBatch:
        if self._stages is None:
            raise RuntimeError("The query has not been started: `async with ... as answers` does")
        while not self._found:
            if self._error is not None:
                raise self._error
            if self._over.is_set():
                raise StopAsyncIteration
            self._readable.clear()
            await self._readable.wait()
        batch = self._found.popleft()
        self._waiting_rows -= batch.num_rows
        self._stirred.set()
        return batch

    def stop(self, why: str) -> None:
        """End the query soon: what was found so far is answered, and the report is partial and says why."""
        self._why_stop = self._why_stop or why or "stopped"
        self._stirred.set()

    async def stopped(self, why: str) -> None:
        """`stop`, and wait until no more turns are taken for this query."""
        self.stop(why)
        await self._over.wait()

    async def snapshot(self) -> pa.Table | None:
        """The answer as it stands, for queries whose answer later rows may still change."""
        if self._stages is None:
            return None
        async with self._turns:
            return await self._in_thread(self._stages.snapshot)

    async def _start(self) -> None:
        self._visit = self._access.visit(self._deliver, self._ceilings, self._ceilings_at)
        self._watch_the_time()
        async with self._turns:
            # In one turn, so that what is found to be stored and fresh still is when it is asked for.
            self._stages = self._make_stages()
            work = self._stages.start()
        self._last_report = self._stages.report()
        self._obey(work)
        self._group = asyncio.TaskGroup()
        await self._group.__aenter__()
        self._pump = self._group.create_task(self._run(self._stages))
        self._pump.add_done_callback(self._ended)

    def _watch_the_time(self) -> None:
        seconds = self._ceilings.seconds
        if seconds is not None:
            why = f"the query may take {seconds:g} s (max_seconds), and needs more"
            self._timer = asyncio.get_running_loop().call_later(seconds, self.stop, why)

    @property
    def _full(self) -> bool:
        return self._waiting_rows > _BUFFERED

    def _deliver(self, event: Event) -> None:
        if self._stages is not None:
            self._turns.between(partial(self._stages.admit, event))
        self._stirred.set()

    async def _run(self, stages: Stages) -> None:
        try:
            while not stages.finished and not self._why_stop:
                if self._full or stages.idle:
                    await self._stirred.wait()
                    # What arrives within this turn of the loop is taken in together.
                    await asyncio.sleep(0)
                self._stirred.clear()
                if not self._full and not self._why_stop:
                    await self._take(stages, self._turn)
            if not stages.finished:
                await self._take(stages, lambda s: s.stop(self._why_stop))
        except Exception as error:
            self._error = error
            self._break_off(f"failed: {error}")

    async def _take(self, stages: Stages, turn: Callable[[Stages], Work]) -> None:
        """One turn, here or in a thread; then do as it says."""
        async with self._turns:
            if stages.load <= _LIGHT:
                work = turn(stages)
            else:
                work = await self._in_thread(partial(turn, stages))
                self._turns.catch_up()
                work = stages.reconsidered(work)
        self._obey(work)
        await asyncio.sleep(0)

    @staticmethod
    def _turn(stages: Stages) -> Work:
        if stages.load > _LIGHT:
            return stages.turn(_HEAVY_HOPS)
        work = stages.turn()
        for _ in range(1, _LIGHT_HOPS):
            if stages.idle or stages.load > _LIGHT:
                break
            work.add(stages.turn())
        return work

    def _obey(self, work: Work) -> None:
        for command in work.commands:
            if isinstance(command, Ask):
                self._visit.ask(command)
            else:
                self._visit.cancel(command)
        for batch in work.answers:
            self._found.append(batch)
            self._waiting_rows += batch.num_rows
            self._readable.set()

    def _break_off(self, why: str) -> None:
        """Call back all that is under way. No effect on a query that has ended."""
        if self._timer is not None:
            self._timer.cancel()
        self._visit.close()
        if self._stages is not None and not self._stages.finished:
            self._why_broken_off = self._why_broken_off or why
            self._turns.between(partial(self._stages.abandon, why))

    def _ended(self, pump: asyncio.Task[None]) -> None:
        if pump.cancelled() and self._error is None:
            self._error = MediatorError("The query was left before its end")
        self._over.set()
        self._readable.set()

    async def _in_thread(self, work: Callable[[], T]) -> T:
        """Run to its end even if the caller is cancelled: what it works on is shared."""
        if self._watched and self._stages is not None:
            self._last_report = self._stages.report()
        self._apart = True
        done = asyncio.get_running_loop().run_in_executor(None, work)
        cancelled: asyncio.CancelledError | None = None
        while not done.done():
            try:
                await asyncio.wait([done])
            except asyncio.CancelledError as error:
                cancelled = error
        self._apart = False
        if cancelled is not None:
            done.exception()  # nobody is left to be told
            raise cancelled
        return done.result()
