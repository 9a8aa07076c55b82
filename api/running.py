"""One query, run to its end for somebody who watches: answers, progress, and Ctrl-C obeyed."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol, cast

import pyarrow as pa

from api.alongside import alongside
from api.exits import INTERRUPTED, Unwritten
from api.interrupting import interrupting
from api.output import Parts, Receiver
from api.partials import Records
from api.progress import Progress, Standing
from mediator.access import Statistics
from mediator.answering import Mediator
from mediator.engines import AnswerStream
from mediator.errors import MediatorError
from mediator.output.records import Record, Rows
from mediator.output.report import Report
from mediator.tracing.writing import check_writable

_TICK = 0.1
# Between two looks at a provisional answer: at least this long, and so many times what a look takes.
_LOOK = 1.0
_LOOK_SHARE = 20
UNWRITTEN = "the answer could not be written on"
STOPPING = "stopping: what was found so far is answered; once more to end at once"


@dataclass(frozen=True)
class Question:
    """What is asked, and how."""

    sql: str
    parameters: Mapping[str, str]
    policy: str = "foresight"
    max_age: float = float("inf")  # seconds
    limits: Mapping[str, Any] = field(default_factory=dict)  # settings that say what it may spend
    trace: Path | None = None  # a file that keeps what is decided
    partials: bool = False  # told to a receiver of records
    stalled_after: float | None = None  # seconds
    engine: str = "local"
    checkpoint: Path | None = None  # of an engine that keeps what it has found


@dataclass(frozen=True)
class Outcome:
    """How it went."""

    report: Report
    statistics: Statistics
    rows: int
    seconds: float
    first: float | None  # seconds to the first row
    last: float | None
    interrupted: bool
    forsaken: bool  # by the reader
    unwritten: str  # why the answer is not, where it could not be written
    untraced: str = ""  # why the trace is not whole, where it is not


class Lands(Protocol):
    """Answers that can be put into files where they are found."""

    async def into(self, folder: Path, told: Callable[[int], object]) -> int: ...


@dataclass
class _Run:
    """A query under way."""

    answers: AnswerStream
    receiver: Receiver
    progress: Progress
    began: float
    rows: int = 0
    first: float | None = None
    last: float | None = None
    interrupted: bool = False
    forsaken: bool = False
    unwritten: str = ""

    @property
    def seconds(self) -> float:
        return asyncio.get_running_loop().time() - self.began

    async def pass_on(self) -> None:
        """Every answer to the receiver, as it comes."""
        try:
            async for record in self.answers.records():
                await self._hand(record)
        except BrokenPipeError:
            self.forsaken = True
        except Unwritten as error:
            self.unwritten = str(error)
            self.answers.stop(UNWRITTEN)

    async def close(self) -> None:
        """The rest is written, where somebody takes it."""
        if self.forsaken:
            return
        try:
            await asyncio.to_thread(self.receiver.close)
        except BrokenPipeError:
            self.forsaken = True
        except Unwritten as error:
            self.unwritten = str(error)

    async def land(self, folder: Path) -> None:
        """Every answer into a file of the folder, as it is found."""

        def told(rows: int) -> None:
            if rows > self.rows:
                self.rows, self.last = rows, self.seconds
                self.first = self.last if self.first is None else self.first

        await cast(Lands, self.answers).into(folder, told)

    async def _hand(self, record: Record) -> None:
        with self.progress.aside():
            if isinstance(self.receiver, Records):
                await asyncio.to_thread(self.receiver.tell, record)
            elif isinstance(record, Rows):
                await asyncio.to_thread(self.receiver.take, record.batch)
        if not isinstance(record, Rows):
            return
        self.rows += record.batch.num_rows
        self.last = self.seconds
        if self.first is None:
            self.first = self.last

    def interrupt(self) -> None:
        """The first time: come to an end soon. The second time: end."""
        if self.interrupted:
            self.progress.close()
            os._exit(INTERRUPTED)
        self.interrupted = True
        self.answers.stop("interrupted")
        self.progress.note(STOPPING)

    def outcome(self) -> Outcome:
        return Outcome(
            self.answers.report,
            self.answers.statistics(),
            self.rows,
            self.seconds,
            self.first,
            self.last,
            self.interrupted,
            self.forsaken,
            self.unwritten,
            self.answers.untraced,
        )


async def run(mediator: Mediator, question: Question, receiver: Receiver, progress: Progress) -> Outcome:
    """Raises a `QueryError` before anything is opened or asked, if the question is at fault."""
    loop = asyncio.get_running_loop()
    answers = mediator.answering(
        question.sql,
        question.parameters,
        policy=question.policy,
        max_age=question.max_age,
        trace=question.trace,
        partials=question.partials,
        stalled_after=question.stalled_after,
        engine=question.engine,
        checkpoint=str(question.checkpoint) if question.checkpoint is not None else None,
        **question.limits,
    )
    run_ = _Run(answers, receiver, progress, loop.time())
    try:
        with interrupting(run_.interrupt):
            for line in answers.warnings:
                progress.note(f"warning: {line}")
            if question.trace is not None:
                check_writable(question.trace)  # before what the receiver's file has is lost
            receiver.open(answers.schema)
            async with answers, alongside(partial(_watch, run_)):
                if isinstance(receiver, Parts):
                    await run_.land(receiver.folder)
                else:
                    await run_.pass_on()
    finally:
        progress.close()
        await run_.close()
    return run_.outcome()


async def _watch(run_: _Run, over: asyncio.Event) -> None:
    """Progress is shown."""
    look, told = _Look(run_.answers), False
    while not over.is_set():
        if run_.receiver.forsaken:
            run_.forsaken = True
            run_.answers.stop("the reader left")
        if run_.progress.wants_snapshots:
            await look.again(run_.seconds)
        paused = run_.answers.steering.paused
        if (
            paused
            and not told
            and (waiting := {p.source: p.waiting for p in run_.answers.paused if p.waiting})
        ):
            told = True
            run_.progress.note(f"warning: {_waits(waiting)}")
        run_.progress.show(
            Standing(run_.seconds, run_.rows, run_.answers.statistics().sources, look.seen, paused)
        )
        try:
            async with asyncio.timeout(_TICK):
                await over.wait()
        except TimeoutError:
            continue


def _waits(waiting: Mapping[str, int]) -> str:
    names, many = ", ".join(waiting), len(waiting) > 1
    what = "are paused, and what only they have" if many else "is paused, and what only it has"
    return f"{names} {what} is waited for: until --max-seconds, or Ctrl-C"


class _Look:
    """The provisional answer of a query whose answer comes at the end; looked at as often as it is cheap."""

    def __init__(self, answers: AnswerStream) -> None:
        self._answers = answers
        self._next = _LOOK
        self.seen: pa.Table | None = None

    async def again(self, now: float) -> None:
        if now < self._next:
            return
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            self.seen = await self._answers.snapshot()
        except MediatorError:
            # The answer itself will say so, if it still holds then.
            self.seen = None
        took = loop.time() - began
        self._next = now + max(_LOOK, took * _LOOK_SHARE)
