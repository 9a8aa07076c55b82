"""The engine `auto`: here, as long as a query fits; on Spark where it is known not to, or as soon as it does not.

One that moves takes along what it has found: rows, what they cover, and when they were asked. Spark finds all answers
of it anew, and those that were given here are not given again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from types import TracebackType
from typing import Self

import pyarrow as pa
import pyarrow.types as pt

from mediator.access import Statistics
from mediator.binding.counting import Counting
from mediator.catalog.ceilings import Ceilings
from mediator.driver import Answers
from mediator.engines import AnswerStream, Explained, Job, Understood
from mediator.live import Live
from mediator.output.records import Record, Records, Rows
from mediator.output.report import Paused, RelationReport, Report
from mediator.query.model import Alias, BlockStage
from mediator.steering import Steering
from pipeline.errors import NoSpark
from pipeline.java import find_java
from pipeline.packages import check_spark
from pipeline.spread.engine import SparkEngine, only_here
from pipeline.spread.explaining import may_move, stays
from pipeline.spread.memory import memory_of_machine
from pipeline.spread.relaying import found_again
from pipeline.spread.tail import Before

_SHARE = 4  # of the machine's memory, for one query
_LOOK = 0.1  # seconds between two looks at how large it is
_FIXED, _TEXT, _INDEX = 8, 32, 16  # bytes of a row's value, about
_NO_BOOST: Mapping[str, float] = {}


class AutoEngine:
    def answering(self, job: Job) -> AnswerStream:
        why = only_here(job.query) or _no_spark()
        room = room_of(job)
        if not why and expected(job) > room:
            return SparkEngine().answering(replace(job, settings=replace(job.settings, memory=None)))
        return AutoAnswers(job, room, why)

    def explained(self, query: Understood) -> Explained:
        # One that runs is judged by what was measured, not by what is held.
        size = expected(replace(query, known=replace(query.known, held={})))
        if why := only_here(query.query) or _no_spark():
            return stays(size, room_of(query), why)
        there = SparkEngine().explained(replace(query, settings=replace(query.settings, memory=None)))
        return may_move(size, room_of(query), found_again(query.query), there)


def engine() -> AutoEngine:
    return AutoEngine()


class AutoAnswers:
    """Answers that are found here first, and may go on on Spark."""

    def __init__(self, job: Job, room: int, why_not: str) -> None:
        self._job, self._room = job, room
        self._why_not = why_not  # no query can move; nothing where it can
        self._found_again = found_again(job.query)
        self._here: Answers = job.here()
        self._there: AnswerStream | None = None
        self._before = Before()
        self._left: deque[pa.RecordBatch] = deque()
        self._report_here = Report()
        self._moved_at = ""
        self._stopping = ""  # why
        self._since: float | None = None
        self.schema = self._here.schema
        self.warnings = self._here.warnings

    @property
    def moved(self) -> bool:
        return self._there is not None

    @property
    def report(self) -> Report:
        if self._there is None:
            return self._here.report
        return _together(self._report_here, self._there.report, self._moved_at)

    @property
    def untraced(self) -> str:
        return self._here.untraced

    @property
    def steering(self) -> Steering:
        return self._now.steering

    @property
    def paused(self) -> tuple[Paused, ...]:
        return self._now.paused

    @property
    def _now(self) -> AnswerStream:
        return self._here if self._there is None else self._there

    async def __aenter__(self) -> Self:
        if self._since is None:
            self._since = asyncio.get_running_loop().time()
        await self._here.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._now.__aexit__(kind, error, trace)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> pa.RecordBatch:
        while True:
            if self._left:
                return self._left.popleft()
            if self._there is not None:
                return await anext(self._there)
            batch = await self._next_here()
            if batch is not None:
                self._before.given(batch)
                return batch

    def records(self) -> Records:
        return Records(self._record)

    async def _record(self) -> Record | None:
        with suppress(StopAsyncIteration):
            return Rows(await anext(self))
        return None

    def live(self) -> Live:
        return self._now.live()

    def statistics(self) -> Statistics:
        return self._now.statistics()

    def steer(
        self,
        *,
        prefer: Mapping[str, float] | None = None,
        pause: Collection[str] = (),
        resume: Collection[str] = (),
        boost: Mapping[str, float] = _NO_BOOST,
    ) -> Steering:
        return self._now.steer(prefer=prefer, pause=pause, resume=resume, boost=boost)

    def stop(self, why: str) -> None:
        self._stopping = self._stopping or why or "stopped"
        self._now.stop(why)

    async def stopped(self, why: str) -> None:
        self.stop(why)
        await self._now.stopped(why)

    async def snapshot(self) -> pa.Table | None:
        return await self._now.snapshot()

    def since(self, moment: float) -> None:
        self._since = moment
        self._here.since(moment)

    async def _next_here(self) -> pa.RecordBatch | None:
        """The next that is found here; none where it has moved meanwhile. Raises `StopAsyncIteration` at the end."""
        while not self._outgrown:
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK):
                    return await anext(self._here)
        await self._move()
        return None

    @property
    def _outgrown(self) -> bool:
        if self._why_not or self._here.ended or self._stopping:
            return False
        # Rows that Spark does not find again would be given twice.
        return self._here.size > self._room and (self._found_again or not self._before.count)

    async def _move(self) -> None:
        held = self._here.size
        left = await self._here.leave()
        if self._found_again:  # else Spark is to give all rows
            self._left += left
            for batch in left:
                self._before.given(batch)
        self._report_here = self._here.report
        self._moved_at = f"moved to Spark when what was found took {held / 1e6:,.1f} MB of memory"
        said = self._job.settings
        whole = Ceilings(said.max_calls, said.max_bytes).less(*self._here.spent)
        settings = replace(
            said,
            max_calls=whole.calls,
            max_bytes=whole.bytes,
            per_source=self._here.left,
            memory=None,
        )
        there = self._there = SparkEngine().answering(replace(self._job, settings=settings), self._before)
        assert self._since is not None, "`async with` has begun it"
        there.since(self._since)
        if self._stopping:  # while it was on its way
            there.stop(self._stopping)
        await there.__aenter__()


def room_of(query: Understood) -> int:
    """Bytes that it may take here."""
    return query.settings.memory or memory_of_machine() // _SHARE


def expected(job: Understood) -> float:
    """Bytes that a query's relations may take in memory, by what is known; a guess counts for nothing."""
    size = 0.0
    for stage in job.query.stages:
        if isinstance(stage, BlockStage):
            for count in Counting(stage.block, job.verdicts[stage.name], job.known).count():
                size += count.rows.low * _width(stage.block.aliases[count.provider.alias])
    return size


def _width(alias: Alias) -> int:
    texts = len([f for f in alias.relation.schema if pt.is_string(f.type) or pt.is_large_string(f.type)])
    return _TEXT * texts + _FIXED * (len(alias.relation.schema) - texts) + _INDEX


def _no_spark() -> str:
    try:
        check_spark()
        find_java()
    except NoSpark as error:
        return str(error)
    return ""


def _together(here: Report, there: Report, remark: str) -> Report:
    """One report for what was asked here and there. What is missing there is missing."""
    first = {r.relation: r for r in here.relations}
    relations = tuple(_sum(first.pop(r.relation, None), r) for r in there.relations)
    relations += tuple(first.values())  # all, where nothing is known there yet
    remarks = (*here.remarks, *there.remarks, remark)
    return replace(there, relations=relations, remarks=remarks)


def _sum(here: RelationReport | None, there: RelationReport) -> RelationReport:
    if here is None:
        return there
    return replace(
        there,
        asked=here.asked + there.asked,
        answered=here.answered + there.answered,
        failed=here.failed + there.failed,
        cancelled=here.cancelled + there.cancelled,
        served=here.served,
    )
