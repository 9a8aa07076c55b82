"""SQL in, answers out: the whole flow on one page.

SQL text → `query` (what is asked) → `binding` (can it be answered, and who provides what) → `stages` and
`assembly` (eddies over SteMs) → `driver` ⇄ `access` (sites) → answers, and a report of what is missing.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

import pyarrow as pa

from mediator.access import Access, Ceilings, Statistics, Transport
from mediator.access.wishes import Hedging
from mediator.assembly import House, Settings, Stems
from mediator.binding.counting import Known
from mediator.binding.estimate import Estimate, estimate
from mediator.binding.explain import explain as explained
from mediator.binding.model import Verdict
from mediator.binding.verdict import verdict
from mediator.binding.warned import warned
from mediator.cached import Cached, cached
from mediator.catalog.ceilings import NO_CEILINGS
from mediator.catalog.functions import Function
from mediator.catalog.model import BindSet, Catalog
from mediator.catalog.profile import NO_PROFILE
from mediator.clock import Clock, wall
from mediator.driver import Answers
from mediator.eddy.decisions import Watch
from mediator.eddy.goals.goal import Goal
from mediator.engines import LOCAL, AnswerStream, Explained, Job, Stock, Understood, engine_called
from mediator.errors import MediatorError
from mediator.gathering import Gathered, Gathering
from mediator.keeping import Keeping
from mediator.noting import Noting
from mediator.output.report import Report
from mediator.partials.running import may_ask
from mediator.preflight import allowed_by, known_of, relations_of
from mediator.query import duck
from mediator.query.functions import check_names, shown
from mediator.query.model import BlockStage, Query
from mediator.query.parameters import Parameters
from mediator.query.preferences import preferred
from mediator.query.understand import understand
from mediator.stages import Stages
from mediator.state.hands import Hands
from mediator.state.memory import SPARE
from mediator.state.warming import devote, warm
from mediator.steering import Wheel
from mediator.store.profile import load as load_profile
from mediator.store.shelf import Shelf
from mediator.tracing.trace import Tell, Trace, watched
from mediator.turns import Turns

T = TypeVar("T")

# A late mirror's second costs a call, and saves time.
HEDGED: Mapping[Goal, Hedging] = {"first_rows": "more", "all_rows": "some", "fewest_calls": "none"}


class Planned(NamedTuple):
    """A query, and for each of its blocks who provides what."""

    query: Query
    verdicts: dict[str, Verdict]


class Mediator:
    """A catalog, its SteMs and its access modules, shared by all queries asked of it while it is open.

    `devoted` says that its process does nothing else: what is there by then is kept from the garbage collector.
    `store` is a folder where what the SteMs hold outlives the process; `wall` tells it the time of day. `functions` are
    what its queries may call beside SQL's own and the catalog's. A `shelf` keeps pages of scans that break off.
    """

    def __init__(
        self,
        catalog: Catalog,
        settings: Settings | None = None,
        *,
        threads: int | None = None,
        transport: Transport | None = None,
        devoted: bool = False,
        store: Path | None = None,
        wall: Clock = wall,
        functions: Iterable[Function] = (),
        shelf: Shelf | None = None,
    ) -> None:
        self.catalog = catalog = catalog.knowing(functions)
        check_names(catalog.functions)
        self.settings = settings or Settings()
        self._devoted = devoted
        self._store = store
        self._wall = wall
        self._shelf = shelf
        self._threads = threads or min(4, os.cpu_count() or 1)
        self._access = Access(
            catalog,
            transport=transport,
            today=lambda: datetime.fromtimestamp(self._wall(), UTC),
            shelf=shelf,
        )
        self._turns = Turns()
        self._house: House | None = None
        self._keeping: Keeping | None = None
        self._noting: Noting | None = None

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(devote if self._devoted else warm)
        if self._store is not None:
            self._keeping = await Keeping.opened(self._store, self.catalog, self._turns, self._wall)
        profile = NO_PROFILE
        try:
            if self._store is not None:
                self._noting = await Noting.opened(self._store, self._wall)
                self._access.recall(self._noting.measurements, self._noting.ledger)
                profile = await asyncio.to_thread(load_profile, self._store, self.catalog.relations)
                self._access.measurements.suppose(profile.measured)
            await self._access.__aenter__()
        except BaseException:
            await self._close_store()
            raise
        stems = Stems() if self._keeping is None else self._keeping.stems
        clock, measured = asyncio.get_running_loop().time, self._access.measurements
        SPARE.join()
        self._house = House(clock, duck.effort, stems, Hands(self._threads), measured, profile)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Queries that are still open give what they have found, and end."""
        assert self._house is not None
        try:
            await self._turns.close("the mediator was closed")
        finally:
            try:
                await self._access.__aexit__(kind, error, trace)
            finally:
                try:
                    await self._close_store()
                finally:
                    self._house.hands.close()
                    # What is here refers to one another: what was stored would stay until Python looks for such.
                    self._house = self._keeping = None
                    SPARE.leave()

    def answering(
        self,
        sql: str,
        parameters: Parameters = (),
        *,
        trace: Path | None = None,
        watch: Tell | None = None,
        **said: Any,
    ) -> AnswerStream:
        """The answers of a query, to be used with `async with`. A bad query raises a `QueryError` here.

        `trace` is a file that keeps what was decided and why; `watch` is told each decision that changes, in the middle
        of the turn that makes it. Further arguments are `Settings` for this query alone.
        """
        query, verdicts = self.planned(sql, parameters)
        settings = replace(self.settings, **said)
        if settings.engine != LOCAL:
            return self._elsewhere(query, verdicts, settings)
        return self._here(query, verdicts, settings, trace, watch)

    def _here(
        self,
        query: Query,
        verdicts: Mapping[str, Verdict],
        settings: Settings,
        trace: Path | None = None,
        watch: Tell | None = None,
    ) -> Answers:
        clean = self._access.redaction.clean
        profile = self._house.profile if self._house is not None else NO_PROFILE
        kept = Trace(trace, query, verdicts, settings, clean, profile) if trace is not None else None
        looking_on = partial(watched, trace=kept, tell=watch)
        stages = partial(self._stages, query, verdicts, settings, looking_on)
        ceilings = Ceilings(settings.max_calls, settings.max_bytes, settings.max_seconds)
        at = self.catalog.ceilings(settings.per_source)
        warnings = warned(query, verdicts, self.catalog)
        judge = partial(preferred, query)
        wheel = Wheel(judge, self.catalog.sources, settings.prefer, settings.pause, settings.boost)
        hedging = HEDGED[settings.goal]
        return Answers(
            query.schema,
            stages,
            self._access,
            self._turns,
            ceilings,
            at,
            warnings,
            kept,
            wheel,
            hedging,
            settings.buffered,
        )

    def _elsewhere(self, query: Query, verdicts: Mapping[str, Verdict], settings: Settings) -> AnswerStream:
        profile = self._house.profile if self._house is not None else NO_PROFILE
        known = Known(self._access.measurements.of, profile=profile)
        warnings = tuple(warned(query, verdicts, self.catalog))
        here = partial(self._here, query, verdicts, settings)
        job = Job(self.catalog, query, verdicts, settings, known, self._stock, here, warnings)
        return engine_called(settings.engine).answering(job)

    @asynccontextmanager
    async def _stock(self) -> AsyncIterator[Stock]:
        house = self._opened()
        async with self._turns.taken():
            yield Stock(house.stems.held(), house.clock())

    def gathering(
        self,
        relation: str,
        method: str,
        bind_set: BindSet = (),
        *,
        max_age: float = float("inf"),
        ceilings: Ceilings = NO_CEILINGS,
        per_source: Mapping[str, Ceilings] | None = None,
        rows: bool = True,
        told: Callable[[Gathered], object] = lambda _: None,
    ) -> Gathering:
        """Lookups of one access method, or its scan, that are made so that later queries need not."""
        house, found = self._opened(), self.catalog.relations[relation]
        return Gathering(
            self._access,
            self._turns,
            house.stems,
            found,
            found.method(method),
            bind_set,
            keeping=self._keeping,
            shelf=self._shelf,
            max_age=max_age,
            ceilings=ceilings,
            at=per_source,
            rows=rows,
            told=told,
        )

    async def estimate(self, sql: str, parameters: Parameters = (), **said: Any) -> Estimate:
        """What a query would cost by all that is known now, compared with its ceilings. Asks nothing."""
        return await self.estimate_of(await asyncio.to_thread(self.planned, sql, parameters), **said)

    async def estimate_of(self, planned: Planned, **said: Any) -> Estimate:
        """The same of a query that has been planned already."""
        query, verdicts = planned
        settings = replace(self.settings, **said)
        allowed = allowed_by(settings, self.catalog, self._access.left_today())
        known = await self._known(query, settings)
        return await asyncio.to_thread(estimate, query, verdicts, self.catalog.sources, known, allowed)

    async def explained_of(self, planned: Planned, **said: Any) -> Explained | None:
        """How the engine that is named would run it; none where that is this process. Asks nothing."""
        query, verdicts = planned
        settings = replace(self.settings, **said)
        if settings.engine == LOCAL:
            return None
        known = await self._known(query, settings)
        asked = Understood(self.catalog, query, verdicts, settings, known)
        return await asyncio.to_thread(engine_called(settings.engine).explained, asked)

    async def _known(self, query: Query, settings: Settings) -> Known:
        house = self._opened()
        async with self._turns.taken():
            return known_of(house, relations_of(query), settings.max_age)

    def planned(self, sql: str, parameters: Parameters = ()) -> Planned:
        """Raises a `QueryError` for a bad query. For a long one it takes a while."""
        query = understand(sql, self.catalog, parameters)
        return Planned(query, verdicts_of(query, self.catalog))

    async def kept(self) -> None:
        """Wait until all that has come so far is in the store, and would outlive a power cut."""
        if self._keeping is not None:
            await self._keeping.kept()

    async def _close_store(self) -> None:
        try:
            if self._noting is not None:
                await self._noting.close()
        finally:
            if self._keeping is not None:
                await self._keeping.close()

    def _stages(
        self,
        query: Query,
        verdicts: Mapping[str, Verdict],
        settings: Settings,
        watch: Callable[[str], Watch | None],
    ) -> Stages:
        ahead = may_ask(settings, self.catalog.sources, query)
        return Stages(query, verdicts, self._opened(), settings, watch=watch, ahead=ahead)

    def _opened(self) -> House:
        if self._house is None:
            raise MediatorError(
                "The mediator is not open: inside `async with Mediator(...) as mediator` it is"
            )
        return self._house

    async def cached(self) -> list[Cached]:
        """What is held of each relation, and would not be asked again."""
        house = self._opened()
        async with self._turns.taken():
            return cached(house.stems.held().values(), house.clock())

    def left_today(self) -> dict[str, int]:
        """Requests left of each daily budget."""
        return self._access.left_today()

    def statistics(self) -> Statistics:
        """What every source has been asked and has answered."""
        return self._access.statistics()


@asynccontextmanager
async def answering(
    sql: str,
    catalog: Catalog,
    parameters: Parameters = (),
    *,
    functions: Iterable[Function] = (),
    **said: Any,
) -> AsyncIterator[AnswerStream]:
    """One query with a mediator of its own: `async with answering(sql, catalog) as answers`."""
    mediator = Mediator(catalog, functions=functions)
    async with mediator, mediator.answering(sql, parameters, **said) as answers:
        yield answers


def answer(
    sql: str,
    catalog: Catalog,
    parameters: Parameters = (),
    *,
    functions: Iterable[Function] = (),
    **said: Any,
) -> tuple[pa.Table, Report]:
    """All answers at once, and the completeness report; for scripts and notebooks."""

    async def collect() -> tuple[pa.Table, Report]:
        async with answering(sql, catalog, parameters, functions=functions, **said) as answers:
            batches = [batch async for batch in answers]
            return pa.Table.from_batches(batches, answers.schema), answers.report

    return _run(collect())


def explain(
    sql: str, catalog: Catalog, parameters: Parameters = (), *, functions: Iterable[Function] = ()
) -> list[str]:
    """How a query would be answered, as text; asks nothing."""
    catalog = catalog.knowing(functions)
    query = understand(sql, catalog, parameters)
    verdicts = verdicts_of(query, catalog)
    lines: list[str] = []
    for stage in query.stages:
        lines.append(f"{stage.name}:")
        if isinstance(stage, BlockStage):
            lines += [f"  {line}" for line in explained(stage.block, verdicts[stage.name])]
        else:
            lines.append(f"  {shown(stage.sql) or 'as they come'}")
    return [*lines, *(f"warning: {line}" for line in warned(query, verdicts, catalog))]


def verdicts_of(query: Query, catalog: Catalog) -> dict[str, Verdict]:
    """Who provides what, for each block. Raises `Unanswerable`."""
    return {s.name: verdict(s.block, query.sql, catalog) for s in query.stages if isinstance(s, BlockStage)}


def _run(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end, also where an event loop is running already, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    results: list[T] = []
    errors: list[BaseException] = []

    def apart() -> None:
        try:
            results.append(asyncio.run(work))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=apart)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]
