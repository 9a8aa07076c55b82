"""Where queries are taken in, found again, and ended: all that one server runs, and what it still keeps of them."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self, TypeVar

from api.http.door import Door, Place
from api.http.history import History
from api.http.journal import Gone, batch_of
from api.http.keys import Key, Meter
from api.http.limits import Limits
from api.http.metrics import Metrics
from api.http.problems import Problem, problem_of
from api.http.requests import Asked
from api.http.run import Run, log, words
from mediator.answering import Mediator
from mediator.engines import LOCAL, AnswerStream
from mediator.errors import MediatorError
from mediator.output.subtracting import Subtracting
from mediator.query import duck
from mediator.statements.patience import Interrupted, Patience

T = TypeVar("T")

_LONG = 4_000  # characters of a statement of which one at a time is planned
_PLANNERS = 16  # threads; what takes them long is done by DuckDB, elsewhere
_AT_ONCE = 16  # queries that begin
_SWEEP = 5.0  # seconds between two looks at what need not be kept any more


@dataclass
class Desk:
    mediator: Mediator
    limits: Limits
    history: History
    metrics: Metrics
    meter: Meter
    runs: dict[str, Run] = field(default_factory=dict)
    closing: bool = False

    def __post_init__(self) -> None:
        self._door = Door(_AT_ONCE)
        self._long = asyncio.Semaphore(1)
        self._planners = ThreadPoolExecutor(_PLANNERS, "plan")
        self._running = 0
        self._group = asyncio.TaskGroup()

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        self._sweeping = self._group.create_task(self._sweep())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Every query ends with what it has found, and its end is noted, before the desk is closed."""
        self.close()
        self._sweeping.cancel()
        await self._group.__aexit__(None, None, None)
        self._planners.shutdown(wait=False)
        for run in self.runs.values():
            run.journal.close()

    def close(self) -> None:
        """Take no more queries, and bring those that run to their ends."""
        self.closing = True
        for run in self.runs.values():
            run.cancel("the server is shutting down")

    async def plan(self, asked: Asked) -> AnswerStream:
        """Parse, bind, and check what is said. Raises a `Problem`. What that takes is of the query's time."""
        began = asyncio.get_running_loop().time()
        self.check_length(asked)
        texts = (asked.sql, *(asked.prefer or ()))
        here = asked.engine in (None, LOCAL)
        if here and len(asked.sql) <= _LONG and not any(map(duck.computes, texts)):
            try:
                with duck.lightly():
                    return self._answers(asked)
            except MediatorError as error:
                raise problem_of(error) from None
        answers = await self.planned(lambda: self._answers(asked), asked)
        answers.since(began)
        return answers

    async def planned(self, work: Callable[[], T], asked: Asked) -> T:
        """Done off the event loop, within the time that the query may take. Raises a `Problem`."""
        loop, patience, seconds = asyncio.get_running_loop(), Patience(), self._seconds(asked)
        giving_up = loop.call_later(seconds, patience.lose)
        until = loop.time() + seconds

        def done() -> T:
            with patience.at_hand():
                return work()

        try:
            async with AsyncExitStack() as stack:
                if len(asked.sql) > _LONG:
                    async with asyncio.timeout_at(until):
                        await stack.enter_async_context(self._long)
                return await loop.run_in_executor(self._planners, done)
        except (Interrupted, TimeoutError):
            raise Problem(
                422, "too-hard", f"The statement takes longer than {seconds:g} s to plan",
                hint="what is constant in it is computed then: make shorter texts and lists",
            ) from None  # fmt: skip
        except MediatorError as error:
            raise problem_of(error) from None
        finally:
            giving_up.cancel()
            patience.lose()  # also where nobody waits for it any more

    def check_length(self, asked: Asked) -> None:
        """Raises a `Problem` for a statement that is too long to be looked at."""
        if len(asked.sql) > self.limits.statement:
            raise Problem(
                413, "too-large", f"The statement has {len(asked.sql):,} characters",
                hint=f"at most {self.limits.statement:,} are taken (--max-statement); long lists go into parameters",
            )  # fmt: skip

    async def start(self, asked: Asked, key: Key, *, streams: bool) -> Run:
        """A query that runs from now on. Raises a `Problem` where it may not."""
        self._check_open()
        self._check_engine(asked)
        asked = self._within(asked, key)
        with await self._door.enter() as place:
            since = asyncio.get_running_loop().time()
            answers = await self.plan(asked)
            return self._started(asked, key, answers, streams, place, since)

    async def retry(self, id_: str, key: Key, *, streams: bool) -> Run:
        """A query for what an earlier one could not be answered, that gives what the earlier one did not."""
        self._check_open()
        before = await self.find(id_, key)
        if before.status == "running":
            raise Problem(409, "not-yet", "The query still runs: what it lacks is known when it has ended")
        given = Subtracting()
        earlier: Run | None = before
        while earlier is not None:  # a retry of a retry
            await self._take_into(given, earlier)
            earlier = await self.find(earlier.retry_of, key) if earlier.retry_of else None
        asked = self._within(Asked.model_validate(before.request), key)
        with await self._door.enter() as place:
            since = asyncio.get_running_loop().time()
            answers = await self.plan(asked)
            return self._started(asked, key, answers, streams, place, since, given, id_)

    async def _take_into(self, given: Subtracting, run: Run) -> None:
        """All that a query has given."""
        if run.journal.first > 1:
            raise _gone("What the query has given is not kept, so what is new could not be told")
        for number in range(1, run.journal.last + 1):
            try:
                entry = run.journal.entry(number)
            except Gone:  # swept, or forgotten, meanwhile
                raise _gone("The results of the query are not kept any more") from None
            if entry is not None and entry.kind == "rows":
                given.given(batch_of(entry, run.schema))
                await asyncio.sleep(0)

    async def find(self, id_: str, key: Key) -> Run:
        """A query of this key's whose results are kept. Raises a `Problem` where there is none."""
        run = self.runs.get(id_)
        if run is not None and run.owner == key.name:
            return run
        if run is None and await self.history.get(key.name, id_) is not None:
            raise _gone("The results of this query are not kept any more")
        raise Problem(404, "not-found", "There is no such query")

    async def forget(self, run: Run) -> None:
        """Drop an ended query, its results and its place in the history."""
        self.runs.pop(run.id, None)
        run.journal.close()
        await self.history.forget(run.owner, run.id)

    def _answers(self, asked: Asked) -> AnswerStream:
        return self.mediator.answering(asked.sql, asked.values, **settings_of(asked))

    def _seconds(self, asked: Asked) -> float:
        said = asked.budget.seconds if asked.budget else None
        return min(said or self.limits.seconds, self.limits.seconds)

    def _within(self, asked: Asked, key: Key) -> Asked:
        """The same with a budget that key and server allow."""
        said = asked.budget.model_dump() if asked.budget is not None else {}
        budget = key.quota.within(said)
        budget["seconds"] = min(budget["seconds"] or self.limits.seconds, self.limits.seconds)
        return Asked.model_validate({**asked.model_dump(exclude_none=True), "budget": budget})

    def _check_open(self) -> None:
        if self.closing:
            raise Problem(
                503, "shutting-down", "The server is shutting down", headers={"Retry-After": "5"},
                hint="ask again in a moment",
            )  # fmt: skip
        running = self._running
        if running >= self.limits.queries:
            raise Problem(
                429, "too-many-queries", f"{running:,} queries are running",
                hint=f"at most {self.limits.queries:,} run at once (--max-queries)", headers={"Retry-After": "1"},
            )  # fmt: skip

    def _check_engine(self, asked: Asked) -> None:
        if asked.engine in (None, LOCAL):
            return
        running = [r for r in self.runs.values() if r.request.get("engine", LOCAL) != LOCAL]
        if sum(not run.over.is_set() for run in running) >= self.limits.spark:
            raise Problem(
                429, "too-many-queries", "No more queries may run on Spark now",
                hint=f"at most {self.limits.spark:,} at once (--max-spark); leave out engine",
                headers={"Retry-After": "5"},
            )  # fmt: skip

    def _started(
        self,
        asked: Asked,
        key: Key,
        answers: AnswerStream,
        streams: bool,
        place: Place,
        since: float,
        given: Subtracting | None = None,
        retry_of: str | None = None,
    ) -> Run:
        self.meter.acquire(key)
        try:
            keep = asked.on_disconnect == "keep" if asked.on_disconnect else not streams
            request = asked.model_dump(exclude_none=True)
            run = Run(
                f"q_{secrets.token_urlsafe(15)}",
                key.name,
                asked.sql,
                request,
                answers,
                keep=keep,
                most_bytes=self.limits.result_bytes,
                most_rows=asked.budget.rows if asked.budget else None,
                most_seconds=self._seconds(asked),
                since=since,
                given=given,
                retry_of=retry_of,
            )
            self.history.started(run.id, run.owner, run.sql, request, run.created, retry_of)
            self._check_open()
            self._check_engine(asked)
        except BaseException:
            self.meter.release(key)
            raise
        self.runs[run.id] = run
        self._running += 1
        self._group.create_task(self._conducted(run, key, place))
        return run

    async def _conducted(self, run: Run, key: Key, place: Place) -> None:
        self.metrics.queries_started.add()
        try:
            await run.conduct(place.leave)
        finally:
            self._running -= 1
            self.meter.release(key)
            self.metrics.queries_ended.add(status=run.status)
            if run.first_row is not None:
                self.metrics.first_row.observe(run.first_row)
            log.info("%s", words(run))
            problem = run.problem.document() if run.problem is not None else None
            self.history.ended(
                run.id, run.status, run.ended_at or datetime.now(UTC), run.journal.rows, run.seconds,
                run.first_row, run.report.as_dict(), problem,
            )  # fmt: skip

    async def _sweep(self) -> None:
        """Results are kept for a while, and as long as there is room for them: the oldest go first."""
        while True:
            await asyncio.sleep(_SWEEP)
            ended = [r for r in self.runs.values() if r.over.is_set() and not r.readers]
            ended.sort(key=lambda run: run.ended_at or run.created)
            kept = sum(run.journal.size for run in ended)
            now = datetime.now(UTC)
            for run in ended:
                age = (now - (run.ended_at or now)).total_seconds()
                if age > self.limits.kept_seconds or kept > self.limits.kept_bytes:
                    kept -= run.journal.size
                    run.journal.close()
                    self.runs.pop(run.id, None)


def settings_of(asked: Asked) -> dict[str, Any]:
    """What is said of how the query is to be run, as the engine's `Settings`."""
    budget = asked.budget
    said: dict[str, Any] = {
        "goal": asked.goal,
        "policy": asked.policy,
        "prefer": asked.prefer,
        "pause": asked.pause,
        "boost": asked.boost,
        "max_age": asked.max_age,
        "partials": asked.partials,
        "stalled_after": asked.stalled_after,
        "engine": asked.engine,
        "max_calls": budget.calls if budget else None,
        "max_bytes": budget.bytes if budget else None,
        "max_seconds": budget.seconds if budget else None,
    }
    return {name: value for name, value in said.items() if value is not None}


def _gone(why: str) -> Problem:
    return Problem(410, "gone", why, hint="run the query again: what is held is not asked again")
