"""A harvest in Spark: bindings, or the pages of a scan, divided over tasks, each with its portion of every limit.

A task keeps what it finds in a store of its own, or pages on the shelf, so that a task that is tried again, or a
harvest that is started again, asks only for what is missing. The driver takes it all into the harvest's store. It has
that store's lock meanwhile: nobody else spends what the tasks were given of the day's budgets.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mediator.access import Statistics
from mediator.answering import Mediator
from mediator.catalog.model import Catalog
from mediator.errors import StoreError
from mediator.flow.events import SEED, Binding
from mediator.gathering import Gathered
from mediator.output.report import RelationReport, Report, merged
from mediator.store.shelf import Shelf
from mediator.store.store import Store
from pipeline.dividing import TASKS, most_tasks, sources_of
from pipeline.errors import BadOption
from pipeline.harvest.local import Harvesting, gathering_of, written_parts
from pipeline.harvest.sharing import shared
from pipeline.harvest.taking import take, take_in
from pipeline.harvest.wanted import Harvest, Harvested
from pipeline.harvest.way import Way
from pipeline.limits import portion_of, settings_for
from sources.chosen import chosen_catalog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LEAVING = 20.0  # seconds for a task that was called back to let go of its store


@dataclass(frozen=True)
class Named:
    """A catalog as each task loads it: no secret is sent."""

    catalog: Sequence[str]
    variables: Mapping[str, str] = field(default_factory=dict)

    def load(self) -> Catalog:
        found = chosen_catalog(self.catalog, self.variables)
        if found is None:
            raise BadOption("there is no catalog: each task loads it, so it has to be named")
        return found


@dataclass(frozen=True)
class Part:
    """What one task is to ask. Without bindings: its share of a scan's pages."""

    named: Named
    wanted: Harvest  # of which no more is used than what the task asks by, and its limits
    method: str
    bind_set: tuple[str, ...]
    bindings: tuple[Binding, ...]
    left: Mapping[str, int]  # requests of each daily budget, for all tasks together
    task: int
    tasks: int

    @property
    def folder(self) -> Path:
        """The same for each try."""
        said = (self.wanted.relation, self.method, self.bind_set, self.bindings, self.task, self.tasks)
        return self.wanted.tasks / blake2b(repr(said).encode(), digest_size=12).hexdigest()

    def catalog(self) -> Catalog:
        whole = self.named.load()
        today = {n: replace(s, daily=self.left.get(n, s.daily)) for n, s in whole.sources.items()}
        mine = portion_of(replace(whole, sources=today), self.task, self.tasks)
        if self.bind_set:
            return mine
        return shared(mine, self.wanted.relation, self.method, self.task, self.tasks)[0]


@dataclass(frozen=True)
class Done:
    """What a task came to."""

    gathered: Gathered
    report: Report


def work(part: Part) -> Done:
    """In a task."""
    return asyncio.run(_work(part))


async def _work(part: Part) -> Done:
    catalog = part.catalog()
    limits = settings_for(
        {k: v for k, v in part.wanted.limits.items() if v is not None}, part.task, part.tasks
    )
    wanted = replace(part.wanted, limits=limits)
    relation = catalog.relations[wanted.relation]
    way = Way(relation, relation.method(part.method), part.bind_set)
    shelf = Shelf(wanted.shelf, wanted.max_age)
    async with Mediator(catalog, store=part.folder, shelf=shelf, threads=1) as mediator:
        async with gathering_of(mediator, way, wanted, rows=bool(part.bind_set)) as gathering:
            await gathering.want(part.bindings if part.bind_set else SEED)
            await gathering.ended()
        return Done(gathering.gathered, gathering.report)


class OnSpark:
    """One harvest, divided. Where there is nothing to divide it is done here."""

    def __init__(
        self,
        named: Named,
        wanted: Harvest,
        tasks: int | None = None,
        note: Callable[[str], object] = lambda _: None,
    ) -> None:
        self.named = named
        self.catalog = named.load()
        self.wanted = wanted
        self.here = Harvesting(self.catalog, wanted)
        self._said = tasks
        self._note = note
        self._query = Report()  # of the query that gave the bindings
        self._wanted = Gathered()
        self._taken = 0

    def go(self, session: Callable[[int], Any]) -> Harvested:
        """`session` gives a Spark session for so many tasks, as a context."""
        began = time.monotonic()
        take_in(self.wanted.store, self.wanted.tasks, self.catalog)
        parts = asyncio.run(self._divided())
        if len(parts) < 2:
            self._note("there is nothing to divide: it is done in this process, without Spark")
            return asyncio.run(self.here.go())
        done, interrupted = [], ""
        with session(len(parts)) as spark:
            self._note(f"{len(parts)} tasks in Spark")
            try:
                done = self._run(spark, parts)
            except KeyboardInterrupt:
                interrupted = "interrupted"
                spark.sparkContext.cancelAllJobs()
            except Exception as error:
                interrupted = f"Spark gave up: {_reason(error)}"
            finally:
                # What tasks have found stays, however it ends.
                self._taken = self._take(parts)
        return self._finished(parts, done, interrupted, began)

    def _run(self, spark: SparkSession, parts: Sequence[Part]) -> list[Done]:
        with Store(self.wanted.store):  # nobody else asks meanwhile
            return spark.sparkContext.parallelize(parts, len(parts)).map(work).collect()

    def _take(self, parts: Sequence[Part]) -> int:
        """How many lookups that were."""
        taken, due = 0, time.monotonic() + _LEAVING
        for part in parts:
            while part.folder.is_dir():
                try:
                    with Store(self.wanted.store) as store:
                        taken += take(store, part.folder, self.catalog)
                except StoreError:
                    if time.monotonic() > due:
                        raise
                    time.sleep(0.1)
        return taken

    def _finished(self, parts: Sequence[Part], done: Sequence[Done], why: str, began: float) -> Harvested:
        if not parts[0].bind_set and not why:
            # Every page that is there is read again from the shelf; what is missing is asked for.
            here = asyncio.run(self.here.go())
            return replace(here, engine="spark", tasks=len(parts), seconds=time.monotonic() - began)
        gathered, report = self._together(done, why)
        return Harvested(
            report,
            gathered,
            Statistics((), ()),
            written_parts(self.wanted, self.here.relation, report),
            self.here.nulls,
            time.monotonic() - began,
            "spark",
            len(parts),
            interrupted=why == "interrupted",
        )

    def _together(self, done: Sequence[Done], why: str) -> tuple[Gathered, Report]:
        before = self._wanted
        counts = {
            name: sum(getattr(d.gathered, name) for d in done)
            for name in ("asked", "answered", "failed", "rows", "kept")
        }
        if why:  # who was broken off cannot say what it came to
            counts["answered"] = counts["kept"] = self._taken
        gathered = replace(before, **counts)
        answered = self._taken if why else 0
        served = RelationReport(self.wanted.relation, answered=answered, served=before.covered)
        report = merged([Report((served,)), *(d.report for d in done), self._query])
        return gathered, replace(report, stopped=why) if why else report

    async def _divided(self) -> list[Part]:
        """What each task is to ask; nothing where there is nothing to divide."""
        here, wanted = self.here, self.wanted
        way = here.ways[0]
        if not way.bind_set:
            return await self._pages(way)
        missing: dict[Binding, None] = {}
        async with Mediator(
            self.catalog, store=wanted.store, shelf=Shelf(wanted.shelf, wanted.max_age)
        ) as mediator:
            async with gathering_of(mediator, way, wanted) as gathering:
                async for bindings in here.read(mediator):
                    missing.update(dict.fromkeys(await gathering.missing(bindings)))
                self._query = here.given_by
            self._wanted = gathering.gathered
            left = mediator.left_today()
        tasks = self._tasks(way, len(missing))
        values = list(missing)
        return [
            Part(
                self.named,
                _sent(wanted),
                way.method.name,
                way.bind_set,
                tuple(values[n::tasks]),
                left,
                n,
                tasks,
            )
            for n in range(tasks)
        ]

    async def _pages(self, way: Way) -> list[Part]:
        """The first page is asked for here: it says how many others there are."""
        wanted = self.wanted
        catalog, share = shared(self.catalog, wanted.relation, way.method.name)
        async with Mediator(
            catalog, store=wanted.store, shelf=Shelf(wanted.shelf, wanted.max_age)
        ) as mediator:
            async with gathering_of(mediator, way, wanted, rows=False) as gathering:
                if await gathering.missing(SEED):
                    await gathering.want(SEED)
                    await gathering.ended()
            left = mediator.left_today()
        tasks = self._tasks(way, share.named)
        return [
            Part(self.named, _sent(wanted), way.method.name, (), (), left, task, tasks)
            for task in range(tasks)
        ]

    def _tasks(self, way: Way, pieces: int) -> int:
        limits = {k: v for k, v in self.wanted.limits.items() if v is not None}
        most = min(pieces, most_tasks(sources_of(way.relation, self.catalog), limits))
        said = self._said if self._said is not None else min(TASKS, -(-pieces // way.method.batch_size))
        return max(0, min(most, said))


def _sent(wanted: Harvest) -> Harvest:
    """Without the bindings, of which each task gets its own."""
    return replace(wanted, bindings=None)


def _reason(error: Exception) -> str:
    return str(error).strip().split("\n")[0]
