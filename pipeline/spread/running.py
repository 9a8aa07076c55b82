"""The answers of a query on Spark, as those of any query: batch by batch, as they are given, and a report."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Self

import pyarrow as pa

from mediator.access import Statistics
from mediator.engines import Job, Stock
from mediator.live import Live
from mediator.output.records import Record, Records, Rows
from mediator.output.report import Paused, Report
from mediator.steering import CannotSteer, Steering
from pipeline.spread.above import batches_of, remarks
from pipeline.spread.driving import Driving, Gone
from pipeline.spread.errors import SpreadError, told
from pipeline.spread.folder import ENOUGH, Folder
from pipeline.spread.given import File, Given, Status, given
from pipeline.spread.parquet import link, prepared, put_batch
from pipeline.spread.plan import Plan
from pipeline.spread.reporting import report
from pipeline.spread.tail import Before, Tail
from pipeline.spread.watching import watched

_LOOK = 0.02  # seconds between two looks at what was given
_TRIES = 3  # times that it is started again without having got any further
_NO_BOOST: Mapping[str, float] = {}


class SpreadAnswers:
    """`async with` starts it; leaving the block ends it. What was found outlives it where its folder is kept."""

    untraced = ""

    def __init__(
        self,
        job: Job,
        folder: Folder,
        lay: Callable[[Stock], Plan],
        driving: Callable[[Plan], Driving],
        kept: bool,
        before: Before | None = None,
    ) -> None:
        """`lay` makes the plan, of what this process holds, and puts it into the folder; `driving` begins to carry it
        out, again where it ends too soon. Answers that were given `before` are not given again."""
        self.schema = job.query.schema
        self.warnings = job.warnings
        self.steering = Steering(job.settings.prefer, tuple(job.settings.pause), job.settings.boost)
        self.paused: tuple[Paused, ...] = ()
        self._job, self._folder, self._kept = job, folder, kept
        self._lay, self._begin, self._before = lay, driving, before
        self._plan: Plan | None = None
        self._driving: Driving | None = None
        self._seconds = job.settings.max_seconds
        self._since: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._tail: Tail | None = None
        self._remarks: tuple[str, ...] = ()
        self._found: deque[pa.RecordBatch] = deque()
        self._cells: dict[int, Status] = {}
        self._taken = 0  # of what was given
        self._layout = 0  # the last that gave anything
        self._folder_of_answers: Path | None = None
        self._linked = 0  # rows
        self._tries = 0  # since it got any further
        self._far = 0
        self._stopping = ""
        self._unheard: str | None = None  # why it is to end, where nobody can be told
        self._enough = False  # LIMIT is reached
        self._over = asyncio.Event()
        self._report: Report | None = None  # the last
        self._statistics = Statistics((), ())

    @property
    def report(self) -> Report:
        if self._plan is None:
            return Report()
        return self._report or self._reported(self._stopping)

    def _reported(self, stopped: str) -> Report:
        assert self._plan is not None
        found = report(self._plan, self._folder, self._cells.values(), stopped)
        return replace(found, enough=self._enough, remarks=self._remarks)

    async def __aenter__(self) -> Self:
        if self._driving is not None:
            raise RuntimeError("These answers have been asked for already: a query runs once")
        self._loop = asyncio.get_running_loop()
        try:
            async with self._job.stock() as stock:
                self._plan = await asyncio.to_thread(self._lay, stock)
            self._tail = Tail(self._plan, self._before)
            self._remarks = await asyncio.to_thread(remarks, self._plan)
            if self._stopping:  # before there was a folder to say it in
                self._say_stop(self._stopping)
            await self._start()
        except BaseException as error:
            self._clear()
            if isinstance(error, OSError | SpreadError):
                raise told(error, self._folder.path) from None
            raise
        self._watch_the_time()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        try:
            self._statistics = self.statistics()
            self._report = self.report if self._over.is_set() else replace(self.report, stopped="cancelled")
            if self._driving is not None:
                await self._driving.close()
        finally:
            await asyncio.to_thread(self._clear)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> pa.RecordBatch:
        while not self._found:
            if self._over.is_set():
                raise StopAsyncIteration
            await self._look()
        return self._found.popleft()

    def records(self) -> Records:
        return Records(self._record)

    async def _record(self) -> Record | None:
        with suppress(StopAsyncIteration):
            return Rows(await anext(self))
        return None

    async def into(self, folder: Path, told: Callable[[int], object] = lambda _: None) -> int:
        """All answers as Parquet files of a folder, each as soon as it is given, and how many rows: none of them comes
        this way where it need not. The same query that goes on puts the same files there. `told` hears how many there
        are so far."""
        assert self._plan is not None, "`async with` has begun it"
        await asyncio.to_thread(prepared, folder, self._plan.id, self.schema)
        self._folder_of_answers = folder
        rows = 0
        while self._found or not self._over.is_set():
            if self._found:
                batch = self._found.popleft()
                rows += batch.num_rows
                await asyncio.to_thread(put_batch, folder, batch)
            else:
                await self._look()
            told(rows + self._linked)
        return rows + self._linked

    def live(self) -> Live:
        return Live(finished=self._over.is_set()).with_sources(self.statistics().sources)

    def statistics(self) -> Statistics:
        """What every source has been asked for this query and has answered."""
        if self._folder.path.exists():
            self._statistics = Statistics(watched(self._folder), ())
        return self._statistics

    def steer(
        self,
        *,
        prefer: Mapping[str, float] | None = None,
        pause: Collection[str] = (),
        resume: Collection[str] = (),
        boost: Mapping[str, float] = _NO_BOOST,
    ) -> Steering:
        raise CannotSteer(
            "a query on Spark cannot be steered while it runs: say what to pause and what to boost when it is asked"
        )

    def stop(self, why: str) -> None:
        """End soon: what was found so far is answered, and the report is partial and says why."""
        self._stopping = self._stopping or why or "stopped"
        self._say_stop(self._stopping)

    def _say_stop(self, why: str) -> None:
        """To whoever drives. Where that cannot be written down, it ends with what there is."""
        try:
            self._folder.stop = why
        except OSError:
            self._unheard = why

    async def stopped(self, why: str) -> None:
        self.stop(why)
        await self._over.wait()

    async def snapshot(self) -> pa.Table | None:
        return None

    def since(self, moment: float) -> None:
        """Its time began then, by the event loop's clock."""
        self._since = moment

    def _clear(self) -> None:
        if not self._kept:
            self._folder.clear()

    def _watch_the_time(self) -> None:
        if self._seconds is not None:
            why = f"the query may take {self._seconds:g} s (max_seconds), and needs more"
            loop = asyncio.get_running_loop()
            began = loop.time() if self._since is None else self._since
            self._timer = loop.call_at(began + self._seconds, self.stop, why)

    async def _start(self) -> None:
        assert self._plan is not None
        self._driving = self._begin(self._plan)
        await self._driving.start()

    async def _look(self) -> None:
        """Take what was given; start it again where it has gone."""
        assert self._driving is not None
        end = await asyncio.to_thread(lambda: self._folder.end)
        for one in await asyncio.to_thread(lambda: list(given(self._folder.given, self._taken))):
            self._tries = 0
            await asyncio.to_thread(self._take, one)
        if end is not None and self._taken >= end["given"]:
            await asyncio.to_thread(self._close, str(end["stopped"]))
        elif self._unheard is not None:
            await asyncio.to_thread(self._close, self._unheard)
        elif not self._found:
            try:
                self._driving.check()
            except Gone as error:
                await self._again(error)
            await asyncio.sleep(_LOOK)

    async def _again(self, error: Gone) -> None:
        far = await asyncio.to_thread(lambda: self._folder.far)
        self._tries = 1 if far != self._far else self._tries + 1
        self._far = far
        if self._tries > _TRIES:
            where = f" What was found so far is in {self._folder.path}" if self._kept else ""
            raise SpreadError(
                f"Spark was lost {self._tries} times without getting any further. {str(error).rstrip('.')}.{where}"
            )
        assert self._driving is not None
        await self._driving.close()
        await self._start()

    def _take(self, one: Given) -> None:
        assert self._plan is not None
        assert self._tail is not None
        if one.layout != self._layout:
            self._begin_layout(one.layout)
        self._taken += 1
        self._cells |= one.cells
        for number, file in enumerate(one.files):
            if self._enough:
                break
            if self._folder_of_answers is not None and self._tail.passes and file.stage in self._plan.results:
                link(self._folder_of_answers, f"{self._taken:08d}-{number:06d}", Path(file.path))
                self._linked += file.rows
                continue
            self._found += self._fed(self._tail, file)
        if self._tail.done and not self._enough:
            self._enough = True
            self._say_stop(ENOUGH)

    def _begin_layout(self, layout: int) -> None:
        """All answers are found again; those that were given are left out from here on."""
        assert self._plan is not None
        self._layout, self._cells = layout, {}
        self._remarks += (self._folder.plan(layout=layout).why,)
        self._tail = Tail(self._plan, self._given_so_far())

    def _given_so_far(self) -> Before:
        """By all layouts so far."""
        assert self._plan is not None
        found, tail, layout = Before(), Tail(self._plan), 0
        for one in islice(given(self._folder.given), self._taken):
            if one.layout != layout:
                layout, tail = one.layout, Tail(self._plan, deepcopy(found))
            for file in one.files:
                for out in self._fed(tail, file):
                    found.given(out)
        return found

    def _fed(self, tail: Tail, file: File) -> Iterator[pa.RecordBatch]:
        """The answers that a file comes to."""
        assert self._plan is not None
        if file.stage in self._plan.results:
            for batch in batches_of(file.path, self._plan.stages[file.stage].schema):
                yield from tail.feed(file.stage, batch)

    def _close(self, stopped: str) -> None:
        self._report = self._reported("" if stopped == ENOUGH else stopped)
        self._loop.call_soon_threadsafe(self._over.set)
