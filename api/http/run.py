"""One query that runs for clients: what it tells is written into its journal, whoever reads."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from traceback import clear_frames
from typing import Any, Literal

import pyarrow as pa

from api.cells import texts
from api.http.journal import Full, Journal
from api.http.problems import Problem, problem_of
from api.http.requests import Steer
from api.wording import many
from mediator.engines import AnswerStream
from mediator.errors import MediatorError
from mediator.live import Live
from mediator.output.records import Partial, Record, Rows, Withdrawn
from mediator.output.report import Report
from mediator.output.subtracting import Subtracting
from mediator.steering import Steering

Status = Literal["running", "complete", "partial", "cancelled", "failed"]

log = logging.getLogger("mediator.http")

_TICK = 0.5  # seconds between two looks at how it goes
_LOOK = 1.0  # between two looks at a provisional answer: at least this long, and so many times what one takes
_LOOK_SHARE = 20
_SHOWN = 3  # bindings of a failure that a note spells out
_NEARLY = 0.8  # of a budget: worth a word
_PATIENCE = 0.4  # seconds that a reader has beyond those of the query
CANCELLED = "cancelled"
LEFT = "the client left"


class Run:
    """A query under way, or one whose results are still kept."""

    def __init__(
        self,
        id_: str,
        owner: str,
        sql: str,
        request: Mapping[str, Any],
        answers: AnswerStream,
        *,
        keep: bool,
        most_bytes: int,
        most_rows: int | None,
        most_seconds: float,
        since: float,
        given: Subtracting | None = None,
        retry_of: str | None = None,
    ) -> None:
        """`keep` says that it goes on when its last reader has left. `given` is what an earlier run has given already
        of the same answer, and is left out. Its time began at `since`, by the event loop's clock."""
        self.id = id_
        self.owner = owner
        self.sql = sql
        self.request = request
        self.schema = _plain_schema(answers.schema)
        self.warnings = answers.warnings
        self._answers: AnswerStream | None = answers  # until it has ended
        self._report, self._live, self._steering = Report(), Live(), Steering()  # as they were at the end
        self.keep = keep
        self.retry_of = retry_of
        self.created = datetime.now(UTC)
        self.ended_at: datetime | None = None
        self.status: Status = "running"
        self.problem: Problem | None = None
        self.progress: Mapping[str, Any] | None = None
        self.snapshot: pa.Table | None = None
        self.snapshots = 0
        self.first_row: float | None = None
        self.seconds = 0.0
        self.readers = 0  # of all formats
        self.journal = Journal(self.schema, whole=keep, most=most_bytes)
        self.over = asyncio.Event()
        self._most_rows = most_rows
        self._most_seconds = most_seconds
        self._since = since
        self._most_bytes = most_bytes
        self._given = given
        self._why: str | None = None
        self._noted: set[tuple[str, str, str]] = set()
        self._near: set[str] = set()
        self._deaf = False  # nothing more is written down
        self._cut = ""  # why the rest was left out
        self._began = 0.0

    async def conduct(self, begun: Callable[[], None]) -> None:
        """From start to end. Never raises but when it is cancelled. Says when its sources have been asked, or never
        will be."""
        loop, answers = asyncio.get_running_loop(), self._answers
        assert answers is not None, "a run is conducted once"
        self._began = loop.time()
        # Nobody is waited for any longer than the query may take, and nothing told any longer.
        patience = loop.call_at(self._since + self._most_seconds + _PATIENCE, self.journal.shut)
        try:
            await self._told(answers, begun)
        except* asyncio.CancelledError:
            self._why = self._why or CANCELLED
            raise
        except* MediatorError as errors:
            self._failed(problem_of(_first(errors)))
            _let_go(errors)
        except* Exception as errors:
            log.error("query %s failed", self.id, exc_info=_first(errors))
            self._failed(Problem(500, "internal", "The query failed for a reason that is ours, not yours"))
        finally:
            begun()
            patience.cancel()
            self.seconds = loop.time() - self._began
            # All that the engine holds of it is let go; its results stay.
            self._report, self._live, self._steering = answers.report, answers.live(), answers.steering
            self._answers = None
            self._end()

    async def _told(self, answers: AnswerStream, begun: Callable[[], None]) -> None:
        async with answers, asyncio.TaskGroup() as group:
            begun()
            watching = group.create_task(self._watch(answers))
            try:
                async for record in answers.records():
                    if not self._deaf:
                        await self._take(record)
            finally:
                watching.cancel()
            await self._note_failures(answers)

    def cancel(self, why: str = CANCELLED) -> None:
        """End it soon, with what was found so far."""
        if not self.over.is_set():
            self._why = self._why or why
            self._deaf = self._deaf or why == LEFT
            self._stop_asking(why)
            self.journal.abandon()
            asyncio.get_running_loop().call_later(_PATIENCE, self.journal.shut)

    @property
    def elapsed(self) -> float:
        """Seconds that it has taken."""
        if self.over.is_set() or not self._began:
            return self.seconds
        return asyncio.get_running_loop().time() - self._began

    @property
    def report(self) -> Report:
        report = self._answers.report if self._answers is not None else self._report
        return replace(report, stopped=self._cut) if self._cut and not report.stopped else report

    @property
    def live(self) -> Live:
        """How its rows are routed, as it stands or stood at the end."""
        return self._answers.live() if self._answers is not None else self._live

    @property
    def steering(self) -> Steering:
        return self._answers.steering if self._answers is not None else self._steering

    def steer(self, change: Steer) -> None:
        """Change the order of things. Raises a `MediatorError` for what cannot be."""
        if self._answers is not None:
            self._answers.steer(
                prefer=change.prefer, pause=change.pause, resume=change.resume, boost=change.boost
            )

    @property
    def cancelled(self) -> bool:
        return self._why in (CANCELLED, LEFT)

    @contextmanager
    def read(self) -> Iterator[None]:
        """While somebody reads. When the last one leaves, a query that nobody is to keep is cancelled."""
        self.readers += 1
        try:
            yield
        finally:
            self.readers -= 1
            if not self.readers and not self.keep:
                self.cancel(LEFT)

    def end_record(self) -> dict[str, Any]:
        """What stands at the end of every stream."""
        problem = {} if self.problem is None else {"problem": self.problem.document()}
        return {"status": self.status, "rows": self.journal.rows, "report": self.report.as_dict(), **problem}

    async def _take(self, record: Record) -> None:
        """Write it down."""
        try:
            match record:
                case Rows(batch, completes):
                    await self._rows(batch, completes)
                case Partial():
                    await self._partial(record)
                case Withdrawn(ids, why):
                    await self.journal.tell("withdrawn", {"ids": list(ids), "why": why})
        except Full:
            self._stop(
                f"its results may take {self._most_bytes:,} bytes here, and take more: ask for fewer rows or columns, "
                "or read them as they come"
            )

    async def _rows(self, batch: pa.RecordBatch, completes: Mapping[int, tuple[int, ...]]) -> None:
        batch = _plain(batch, self.schema)
        if self._given is not None and not completes:
            batch = self._given.rest(batch)
        left = batch.num_rows
        if self._most_rows is not None:
            left = self._most_rows - self.journal.rows
        if batch.num_rows and self.first_row is None:
            self.first_row = asyncio.get_running_loop().time() - self._began

        def said(a: int, b: int) -> dict[str, Any]:
            mine = {str(n - a): list(ids) for n, ids in completes.items() if a <= n < b}
            return {"completes": mine} if mine else {}

        if not await self.journal.rows_came(batch.slice(0, min(left, batch.num_rows)), said):
            self._stop(
                f"{self._why or self._late}, and what was found by then was not all told: "
                "ask for fewer rows, or give it more time"
            )
        elif batch.num_rows > left:
            self._stop(f"the answer may have {self._most_rows:,} rows (budget.rows), and has more")

    async def _partial(self, record: Partial) -> None:
        names = {"unknown": record.unknown, "missing": record.missing, "relations": record.relations}
        said = {name: list(value) for name, value in names.items()}
        batch = _plain(record.batch, self.schema)
        await self.journal.partial(batch, lambda a, b: {"ids": list(record.ids[a:b]), **said})

    async def _watch(self, answers: AnswerStream) -> None:
        """Look now and then how it goes: for those who read, and for what everybody is to know."""
        loop = asyncio.get_running_loop()
        look_at = _LOOK
        while True:
            await asyncio.sleep(_TICK)
            now = loop.time() - self._began
            await self._note_failures(answers)
            await self._note_budgets(now)
            if not self.readers:
                continue
            self.progress = self._progress(now, answers)
            if now >= look_at and not self.journal.rows:
                began = loop.time()
                await self._look(answers)
                look_at = now + max(_LOOK, _LOOK_SHARE * (loop.time() - began))
            self.journal.stir()

    async def _look(self, answers: AnswerStream) -> None:
        """The answer as it stands, where later rows may still change it."""
        try:
            found = await answers.snapshot()
        except MediatorError:
            return  # the answer itself will say so, if it still holds then
        if found is not None and not self.journal.rows:
            self.snapshot = found
            self.snapshots += 1

    def _progress(self, now: float, answers: AnswerStream) -> dict[str, Any]:
        live = answers.live()
        return {
            "seconds": round(now, 3),
            "rows": self.journal.rows,
            "sources": [s.to_dict() for s in live.sources],
        }

    async def _note_failures(self, answers: AnswerStream) -> None:
        """Each way of asking that failed for a reason that was not told yet."""
        for relation in answers.report.relations:
            for failure in relation.failures:
                key = relation.relation, failure.method, failure.cause.kind
                if key in self._noted:
                    continue
                self._noted.add(key)
                bindings = [list(b) for b in failure.bindings[:_SHOWN]]
                told = {
                    "kind": "failed",
                    "relation": relation.relation,
                    "message": f"{relation.relation}: {failure.line()}",
                    "cause": {"kind": failure.cause.kind, "message": failure.cause.message},
                    "method": failure.method,
                    "bindings": bindings,
                    "failed": len(failure.bindings),
                }
                await self.journal.tell("note", told)

    async def _note_budgets(self, now: float) -> None:
        budget = self.request.get("budget") or {}
        spent = {"seconds": now, "rows": float(self.journal.rows)}
        for name, used in spent.items():
            most = budget.get(name)
            if most is not None and name not in self._near and used >= _NEARLY * most:
                self._near.add(name)
                message = f"{used:.3g} of {most:g} {name} are used (budget.{name})"
                await self.journal.tell("note", {"kind": "budget", "budget": name, "message": message})

    def _stop(self, why: str) -> None:
        """Nothing more can be taken: also where the query would have come to its end, the answer is not whole."""
        self._deaf = True
        self._cut = why
        self._stop_asking(why)

    def _stop_asking(self, why: str) -> None:
        if self._answers is not None:
            self._answers.stop(why)

    @property
    def _late(self) -> str:
        return f"the query may take {self._most_seconds:g} s"

    def _failed(self, problem: Problem) -> None:
        self.problem = problem
        self.status = "failed"

    def _end(self) -> None:
        report = self.report
        if self.status == "running":
            if self.cancelled:
                self.status = "cancelled"
            else:
                self.status = "complete" if report.complete else "partial"
        self.ended_at = datetime.now(UTC)
        self.journal.end(self.end_record())
        self.over.set()


def words(run: Run) -> str:
    """One line about a run, for the log."""
    return f"{run.id}: {run.status}, {many(run.journal.rows, 'row')} in {run.seconds:.2f} s"


def _plain_schema(schema: pa.Schema) -> pa.Schema:
    """The same columns, each batch of which can be read by itself: without dictionaries, and without metadata."""
    fields = [pa.field(f.name, _plain_type(f.type), f.nullable) for f in schema]
    return pa.schema(fields)


def _plain_type(kind: pa.DataType) -> pa.DataType:
    """Unions, which Arrow cannot send everywhere, become text."""
    if pa.types.is_union(kind):
        return pa.string()
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _plain_column(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if column.type == kind:
        return column
    return pa.array(texts(column), kind) if pa.types.is_union(column.type) else column.cast(kind)


def _plain(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    if batch.schema.equals(schema):
        return batch
    columns = [_plain_column(c, f.type) for c, f in zip(batch.columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _let_go(error: BaseException) -> None:
    """An error knows where it was raised, and so holds all that its query did until garbage is collected."""
    for inner in error.exceptions if isinstance(error, BaseExceptionGroup) else ():
        _let_go(inner)
    clear_frames(error.__traceback__)
    error.__traceback__ = None


def _first(group: BaseExceptionGroup[Any]) -> Any:
    """The first single error of a group, however deep."""
    error: Any = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
