"""The one place where a running query meets asyncio: events in, turns taken, asks out, answers on.

A query has one task, which takes turns while there is anything to do and waits otherwise. Answers wait for
their reader in a buffer of bounded size: when it is full the query rests. A long turn is taken in a thread,
so that the event loop stays free; `Turns` keeps two queries from turning at once over the SteMs that they
share.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Self, TypeVar

import pyarrow as pa

from mediator.access import Access, Statistics
from mediator.access.wishes import Hedging
from mediator.alarm import Alarm
from mediator.catalog.ceilings import NO_CEILINGS, Ceilings
from mediator.errors import MediatorError
from mediator.fairness import Share
from mediator.flow.events import Ask, Event
from mediator.live import Live, sources_of
from mediator.output.records import Record, Records, Rows
from mediator.output.report import Paused, Report
from mediator.output.work import Work
from mediator.stages import Stages
from mediator.standing import Standing
from mediator.statements.patience import Interrupted, Patience
from mediator.steering import CannotSteer, Steering, Wheel
from mediator.tracing.trace import Trace
from mediator.turns import Turns
from mediator.unread import Unread

T = TypeVar("T")

# Rows that a turn may find waiting and still be taken on the event loop.
_LIGHT = 2_048
_LIGHT_STEPS = 8
_HEAVY_STEPS = 4
_LONGEST = 0.03  # seconds of one turn, after which no further step of it is begun
_LAST_WORDS = 0.2  # seconds that a query which is to stop may take to say what it has found
_NOWHERE: Mapping[str, Ceilings] = {}
_NO_BOOST: Mapping[str, float] = {}


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
        trace: Trace | None = None,
        wheel: Wheel | None = None,
        hedging: Hedging = "some",
        buffered: int = 200_000,
    ) -> None:
        self.schema = schema
        self.warnings = tuple(warnings)  # what is amiss already, before anything is asked
        self._make_stages = stages
        self._access = access
        self._turns = turns
        self._ceilings = ceilings
        self._ceilings_at = ceilings_at  # single sources
        self._trace = trace
        self._wheel = wheel
        self._hedging: Hedging = hedging
        self._held: tuple[Paused, ...] | None = None  # what waited for paused sources when the query ended
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stages: Stages | None = None
        self._standing = Standing()
        self._stirred = asyncio.Event()
        self._unread = Unread(buffered, self._stirred.set)
        self._why_stop = ""
        self._why_broken_off = ""
        self._over = asyncio.Event()
        self._error: BaseException | None = None
        self._fault: Exception | None = None  # of a step that was done between two turns
        self._since: float | None = None
        self._time_up, self._waking, self._last_words = Alarm(), Alarm(), Alarm()
        self._share = Share()  # of the turns
        self._patience = Patience()
        self._sources: tuple[str, ...] = ()

    @property
    def report(self) -> Report:
        """How things stand; while a thread takes a turn, how they stood before that."""
        report = self._standing.report()
        report = replace(report, stopped=report.stopped or self._why_broken_off)
        if self._loop is not None:
            report = replace(report, paused=self.paused)
        if self.untraced:
            report = replace(report, remarks=(*report.remarks, self.untraced))
        return report

    @property
    def untraced(self) -> str:
        """Why the trace is not whole; nothing where it is, or where none was wanted."""
        return self._trace.error if self._trace is not None else ""

    def live(self) -> Live:
        """How the query routes, what it waits for and what is stored, as it stands; while a thread takes a turn, how it
        stood before that."""
        return self._standing.live().with_sources(self._access.sources(self._sources))

    def statistics(self) -> Statistics:
        """What every source has been asked and has answered, by all queries of the process."""
        return self._access.statistics()

    async def __aenter__(self) -> Self:
        if self._stages is not None:
            raise RuntimeError("These answers have been asked for already: a query runs once")
        self._turns.join(self)
        try:
            await self._start()
        except BaseException as error:
            self._over.set()
            self._unread.end()
            self._break_off(f"failed: {error}")
            self._turns.leave(self)
            await self._close_trace()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._patience.lose()
        self._pump.cancel()
        try:
            # The block's own error goes on as it is; the group only waits for the task.
            await self._group.__aexit__(None, None, None)
        finally:
            self._break_off("cancelled")
            self._turns.leave(self)
            await self._close_trace()

    async def leave(self) -> list[pa.RecordBatch]:
        """End at once, in place of leaving the block, for whoever goes on elsewhere: answers that were found and not
        read yet."""
        await self.__aexit__(None, None, None)
        return self._unread.answers()

    @property
    def ended(self) -> bool:
        """Whether nothing more will be found."""
        return self._stages is not None and self._stages.finished

    @property
    def size(self) -> int:
        """Bytes of memory that what was found of its relations takes, about."""
        return self._stages.size if self._stages is not None else 0

    @property
    def spent(self) -> tuple[int, int]:
        """Requests that were sent for it, and bytes that came."""
        return self._visit.spent

    @property
    def left(self) -> dict[str, Ceilings]:
        """What it may still spend at the sources that there are ceilings for."""
        return self._visit.left

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> pa.RecordBatch:
        while (record := await self._next()) is not None:
            if isinstance(record, Rows):
                return record.batch
        raise StopAsyncIteration

    def records(self) -> Records:
        """Everything in its order: answers and, where they are asked for, partial answers and what became of them."""
        return Records(self._next)

    async def _next(self) -> Record | None:
        """What is to be told next; none after the end."""
        if self._stages is None:
            raise RuntimeError("The query has not been started: `async with ... as answers` does")
        return await self._unread.next()

    @property
    def steering(self) -> Steering:
        """How the query is steered."""
        return self._wheel.steering if self._wheel is not None else Steering()

    def steer(
        self,
        *,
        prefer: Mapping[str, float] | None = None,
        pause: Collection[str] = (),
        resume: Collection[str] = (),
        boost: Mapping[str, float] = _NO_BOOST,
    ) -> Steering:
        """Change the order of things in mid-run; the answer stays what it is. May be called from any thread.

        `prefer` takes the place of all that was preferred before; none leaves it. Sources to `pause` are asked nothing
        more for this query until they are to `resume`; a `boost` of 1 is none. What is wrong raises a `CannotSteer` or
        a `QueryError`, and changes nothing. No effect on a query that has ended. Returns what holds from now on.
        """
        if self._wheel is None:
            raise CannotSteer("these answers cannot be steered")
        if self._over.is_set():
            return self._wheel.steering
        steering = self._wheel.turn(prefer=prefer, pause=pause, resume=resume, boost=boost)
        if self._loop is not None:
            if _running_in(self._loop):
                self._steered()
            else:
                with suppress(RuntimeError):  # the loop was closed meanwhile: the query has ended
                    self._loop.call_soon_threadsafe(self._steered)
        return steering

    def stop(self, why: str) -> None:
        """End the query soon: what was found so far is answered, and the report is partial and says why."""
        self._why_stop = self._why_stop or why or "stopped"
        self._share.urgent = True
        self._stirred.set()
        if self._loop is not None and not self._over.is_set():
            with suppress(RuntimeError):  # the loop was closed meanwhile: the query has ended
                self._loop.call_soon_threadsafe(self._hurry)

    def _hurry(self) -> None:
        """What SQL still makes of what was found has so much time, and no more."""
        if self._loop is not None and not self._last_words.was_set and not self._over.is_set():
            self._last_words.set(self._loop.time() + _LAST_WORDS, self._patience.lose)

    async def stopped(self, why: str) -> None:
        """`stop`, and wait until no more turns are taken for this query."""
        self.stop(why)
        await self._over.wait()

    async def snapshot(self) -> pa.Table | None:
        """The answer as it stands, for queries whose answer later rows may still change; not of one that is to end."""
        if self._stages is None or self._why_stop:
            return None
        async with self._turns.taken(self._share):
            return await self._in_thread(self._stages.snapshot)

    async def _close_trace(self) -> None:
        if self._trace is not None:
            await asyncio.to_thread(self._trace.close, self.report)

    async def _start(self) -> None:
        self._visit = self._access.visit(self._deliver, self._ceilings, self._ceilings_at)
        self._loop = asyncio.get_running_loop()
        self._patience = Patience(self._turns.aside(self._loop, self._share))
        self._visit.hedge(self._hedging)
        if self._wheel is not None:
            self._visit.steer(self._wheel.steering.paused, self._wheel.steering.boost)
        self._watch_the_time()
        if self._trace is not None:
            await asyncio.to_thread(self._trace.open, asyncio.get_running_loop().time)
        async with self._turns.taken(self._share):
            # In one turn, so that what is found to be stored and fresh still is when it is asked for.
            self._stages = self._make_stages()
            self._standing.begin(self._stages)
            work = await self._begun(self._stages)
        self._standing.report()  # so that there is one while a thread takes the first turn
        self._sources = tuple(s for eddy in self._stages.eddies().values() for s in sources_of(eddy))
        self._steered()
        self._obey(work)
        self._group = asyncio.TaskGroup()
        await self._group.__aenter__()
        self._pump = self._group.create_task(self._run(self._stages))
        self._pump.add_done_callback(self._ended)

    async def _begun(self, stages: Stages) -> Work:
        if not stages.starts_with_sql:
            return stages.start()
        try:
            work = await self._in_thread(stages.start)
        except Interrupted:  # it was told to stop meanwhile, and does so in its first turn
            return Work()
        self._turns.catch_up()
        return stages.reconsidered(work)

    def since(self, moment: float) -> None:
        """Its time began then, by the event loop's clock: what came before its start is counted."""
        self._since = moment

    def _watch_the_time(self) -> None:
        seconds = self._ceilings.seconds
        if seconds is not None:
            why = f"the query may take {seconds:g} s (max_seconds), and needs more"
            loop = asyncio.get_running_loop()
            began = loop.time() if self._since is None else self._since
            self._time_up.set(began + seconds, partial(self.stop, why))

    def _steered(self) -> None:
        """What waits is put in its new order; what floats is, as soon as nobody turns."""
        if self._wheel is None or self._over.is_set():
            return
        self._visit.steer(self._wheel.steering.paused, self._wheel.steering.boost)
        # While the query starts they are kept: it asks for them once more when there is somebody to be told.
        preferences = self._wheel.preferences() if self._stages is not None else None
        if preferences is not None and self._stages is not None:
            self._between(partial(self._stages.prefer, preferences))
        self._stirred.set()

    @property
    def paused(self) -> tuple[Paused, ...]:
        """The sources that are paused, and how much waits for each; when the query ended, if it has."""
        return self._paused() if self._held is None else self._held

    def _paused(self) -> tuple[Paused, ...]:
        waiting = self._visit.paused()
        return tuple(Paused(source, waiting.get(source, 0)) for source in self.steering.paused)

    def _deliver(self, event: Event) -> None:
        if self._trace is not None:
            self._trace.happened(event)
        if self._stages is not None:
            self._between(partial(self._stages.admit, event))
        self._stirred.set()

    def _between(self, step: Callable[[], object]) -> None:
        """As soon as nobody turns, which may be after another query's turn: so what goes wrong in it is kept for this
        query's own."""

        def kept() -> None:
            try:
                step()
            except Exception as error:
                self._fault = self._fault or error
                self._stirred.set()

        self._turns.between(kept)

    async def _run(self, stages: Stages) -> None:
        try:
            while not stages.finished and not self._why_stop:
                if self._unread.full or stages.idle:
                    # No turn is taken while its reader is behind: whatever is due, who has read stirs it.
                    if stages.due is not None and not self._unread.full:
                        self._waking.set(stages.due, self._stirred.set)
                    await self._stirred.wait()
                    self._waking.off()
                    # What arrives within this turn of the loop is taken in together.
                    await asyncio.sleep(0)
                self._stirred.clear()
                if not self._unread.full and not self._why_stop:
                    with suppress(Interrupted):  # it was to stop in the middle of a statement
                        await self._take(stages, self._turn)
            if not stages.finished:
                self._held = self._paused()
                await self._take(stages, lambda s: s.stop(self._why_stop))
        except Exception as error:
            self._error = error
            self._break_off(f"failed: {error}")

    async def _take(self, stages: Stages, turn: Callable[[Stages], Work]) -> None:
        """One turn, here or in a thread; then do as it says. Raises what went wrong since the last one."""
        if self._fault is not None:
            raise self._fault
        if self._trace is not None and self._trace.behind:
            await asyncio.to_thread(self._trace.caught_up)
        async with self._turns.taken(self._share):
            if stages.load <= _LIGHT and not stages.computes:
                work = turn(stages)
            else:
                work = await self._in_thread(partial(turn, stages))
                self._turns.catch_up()
                work = stages.reconsidered(work)
        self._obey(work)
        await asyncio.sleep(0)

    def _turn(self, stages: Stages) -> Work:
        """A few batches, and no more of them when others have waited for long enough."""
        assert self._loop is not None
        until, heavy, work = self._loop.time() + _LONGEST, stages.load > _LIGHT, Work()
        for step in range(_HEAVY_STEPS if heavy else _LIGHT_STEPS):
            # Twice as many each time: how long one takes is known then.
            work.add(stages.turn(1 << step, self._unread.room) if heavy else stages.turn())
            if stages.idle or self._why_stop or self._loop.time() >= until:
                break
            if heavy:
                if sum(batch.num_rows for batch in work.answers) >= self._unread.room:
                    break
            elif stages.load > _LIGHT:
                break
        return work

    def _obey(self, work: Work) -> None:
        for command in work.commands:
            if self._trace is not None:
                self._trace.asked(command)
            if isinstance(command, Ask):
                self._visit.ask(command)
            else:
                self._visit.cancel(command)
        for urge in work.urges:
            self._visit.urge(urge)
        for record in work.records:
            if self._trace is not None and isinstance(record, Rows):
                self._trace.answered(record.batch.num_rows)
            self._unread.put(record)

    def _break_off(self, why: str) -> None:
        """Call back all that is under way. No effect on a query that has ended."""
        self._time_up.off()
        self._waking.off()
        if self._stages is not None and not self._stages.finished:
            self._held = self.paused
        self._visit.close()
        if self._stages is not None and not self._stages.finished:
            self._why_broken_off = self._why_broken_off or why
            self._between(partial(self._stages.abandon, why))

    def _ended(self, pump: asyncio.Task[None]) -> None:
        self._patience.lose()  # a snapshot may still run, which nobody wants any more
        if pump.cancelled() and self._error is None:
            self._error = MediatorError("The query was left before its end")
        self._last_words.off()
        self._held = self.paused
        self._over.set()
        self._unread.end(self._error)

    def _patiently(self, work: Callable[[], T]) -> T:
        with self._patience.at_hand():
            return work()

    async def _in_thread(self, work: Callable[[], T]) -> T:
        """Run to its end even if the caller is cancelled: what it works on is shared."""
        cancelled: asyncio.CancelledError | None = None
        with self._standing.lend():
            done = self._turns.in_thread(partial(self._patiently, work))
            while not done.done():
                try:
                    await asyncio.wait([done])
                except asyncio.CancelledError as error:
                    cancelled = error
        if cancelled is not None:
            done.exception()  # nobody is left to be told
            raise cancelled
        return done.result()


def _running_in(loop: asyncio.AbstractEventLoop) -> bool:
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False
