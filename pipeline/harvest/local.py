"""A harvest in this process: needs no Spark. What limits it is what the site bears, not this machine, mostly."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from mediator.access import Statistics, Transport
from mediator.answering import Mediator, verdicts_of
from mediator.catalog.ceilings import Ceilings
from mediator.catalog.model import Catalog, Relation
from mediator.clock import wall
from mediator.engines import AnswerStream
from mediator.errors import StoreError
from mediator.flow.events import SEED, Binding
from mediator.gathering import Gathered, Gathering
from mediator.output.report import Report, merged
from mediator.query.understand import understand
from mediator.store.manifest import FILE as MANIFEST
from mediator.store.records import Declared, Held
from mediator.store.shelf import Shelf
from mediator.store.store import Store, fresh_rows, look, must_be_store
from pipeline.errors import HarvestError
from pipeline.harvest import parts
from pipeline.harvest.bindings import Given, is_query, of_file, of_table, reader
from pipeline.harvest.taking import take_in
from pipeline.harvest.wanted import Harvest, Harvested
from pipeline.harvest.way import Way, lookup_of, relation_of, scans_of

Watch = Callable[[Gathered, Statistics], object]
_LOOKS = 5  # at a store that another process writes


class Harvesting:
    """One harvest. `go` does it; `stop` ends it early, and what was found stays."""

    def __init__(
        self,
        catalog: Catalog,
        wanted: Harvest,
        watch: Watch = lambda _g, _s: None,
        transport: Transport | None = None,
    ) -> None:
        """Raises, before anything is asked, what is wrong with what is wanted."""
        self._transport = transport
        self.catalog = catalog
        self.wanted = wanted
        self.relation = relation_of(catalog, wanted.relation)
        self.given, self.sql = _bindings(catalog, wanted.bindings)
        columns = _columns(catalog, self.given, self.sql)
        self.ways = (
            scans_of(catalog, self.relation) if columns is None else [lookup_of(self.relation, columns)]
        )
        self.nulls = 0
        self._watch = watch
        self._gathering: Gathering | None = None
        self._answers: AnswerStream | None = None
        self._stopped = ""
        check(wanted, self.relation)

    async def go(self) -> Harvested:
        began = time.monotonic()
        wanted = self.wanted
        await asyncio.to_thread(take_in, wanted.store, wanted.tasks, self.catalog)
        shelf = Shelf(wanted.shelf, wanted.max_age)
        await asyncio.to_thread(shelf.sweep)
        async with Mediator(
            self.catalog, transport=self._transport, store=wanted.store, shelf=shelf
        ) as mediator:
            gathered, report = await self._ask(mediator)
            statistics = mediator.statistics()
        await asyncio.to_thread(self._tidy, shelf)
        written = await asyncio.to_thread(written_parts, wanted, self.relation, report)
        return Harvested(report, gathered, statistics, written, self.nulls, time.monotonic() - began, "local")

    def _tidy(self, shelf: Shelf) -> None:
        for name in shelf.relations():
            relation, held = self.catalog.relations.get(name), _held(self.wanted.store, name)
            if relation is not None and held is not None:
                shelf.tidy(relation, held.fresh(wall()))

    def _told(self, mediator: Mediator, gathered: Gathered) -> None:
        self._watch(gathered, mediator.statistics())

    def stop(self, why: str) -> None:
        self._stopped = self._stopped or why
        if self._answers is not None:
            self._answers.stop(why)
        if self._gathering is not None:
            self._gathering.stop(why)

    async def _ask(self, mediator: Mediator) -> tuple[Gathered, Report]:
        """By the first way that brings all."""
        reports: list[tuple[Gathered, Report]] = []
        for way in self.ways:
            told = partial(self._told, mediator)
            async with gathering_of(mediator, way, self.wanted, told=told) as gathering:
                self._gathering = gathering
                if self._stopped:
                    gathering.stop(self._stopped)
                report = await self._walk(mediator, gathering)
            reports.append((gathering.gathered, merged([gathering.report, report])))
            if reports[-1][1].complete or gathering.stopped:
                break
        return reports[-1]

    async def _walk(self, mediator: Mediator, gathering: Gathering) -> Report:
        report = await self._feed(mediator, gathering)
        await gathering.ended()
        return report

    async def _feed(self, mediator: Mediator, gathering: Gathering) -> Report:
        """Gives it all that it is wanted for; how complete that is."""
        if self.given is None and not self.sql:
            await gathering.want(SEED)
            return Report()
        async for bindings in self.read(mediator):
            await gathering.want(bindings)
            if gathering.stopped:
                break
        return self.given_by

    async def read(self, mediator: Mediator) -> AsyncIterator[list[Binding]]:
        """All bindings that were given, piece by piece."""
        bind_set = self.ways[0].bind_set
        given = self.given or Given("the query", bind_set, lambda: iter(()))
        read = reader(given, self.relation, bind_set)
        async for piece in self._pieces(mediator):
            found = await asyncio.to_thread(read, piece)
            self.nulls += found.nulls
            yield found.bindings

    @property
    def given_by(self) -> Report:
        """How complete the bindings are."""
        return self._answers.report if self._answers is not None else Report()

    async def _pieces(self, mediator: Mediator) -> AsyncIterator[pa.RecordBatch]:
        if self.given is not None:
            pieces = self.given.pieces()
            while (piece := await asyncio.to_thread(next, pieces, None)) is not None:
                yield piece
            return
        answers = mediator.answering(self.sql, max_age=self.wanted.max_age, **self.wanted.limits)
        self._answers = answers
        async with answers:
            async for piece in answers:
                yield piece


def gathering_of(
    mediator: Mediator,
    way: Way,
    wanted: Harvest,
    *,
    rows: bool = True,
    told: Callable[[Gathered], object] = lambda _: None,
) -> Gathering:
    limits = wanted.limits
    return mediator.gathering(
        way.relation.name,
        way.method.name,
        way.bind_set,
        max_age=wanted.max_age,
        ceilings=Ceilings(limits.get("max_calls"), limits.get("max_bytes"), limits.get("max_seconds")),
        per_source=limits.get("per_source"),
        rows=rows,
        told=told,
    )


def check(wanted: Harvest, relation: Relation) -> None:
    """Raises where the store, or the folder for Parquet, cannot take this relation."""
    declared = Declared.of(relation)
    if (wanted.store / MANIFEST).is_file():
        held = _held(wanted.store, relation.name)
        if held is not None and held.declared.fingerprint != declared.fingerprint:
            raise HarvestError(
                f"the store {wanted.store} holds {relation.name} as it was declared before "
                f"({held.declared.fingerprint}): `mediator cache expire {relation.name} --store {wanted.store}` "
                "forgets that, or name another store"
            )
    else:
        Store(wanted.store).close()
    parts.check(parts.folder_of(wanted.parts, relation.name), declared)


def written_parts(wanted: Harvest, relation: Relation, report: Report) -> parts.Parts | None:
    """The Parquet, as the store has it by now."""
    folder = parts.folder_of(wanted.parts, relation.name)
    declared = Declared.of(relation)
    for look_ in range(_LOOKS):
        held = _held(wanted.store, relation.name)
        if held is None:
            if not (folder / parts.MANIFEST).exists():
                return None
            return parts.write(folder, declared, relation.schema.empty_table(), [], _said(report))
        fresh = held.fresh(wall())
        try:
            rows = fresh_rows(wanted.store, held, fresh) if fresh else relation.schema.empty_table()
        except StoreError:
            if look_ == _LOOKS - 1:
                raise
            continue
        return parts.write(folder, declared, rows, fresh, _said(report))
    return None


def _said(report: Report) -> dict[str, Any]:
    """Of the run that wrote it: what it did not get, the bindings of it left to the report itself."""
    missing = [
        {"method": f.method, "cause": f.cause.kind, "message": f.cause.message, "lookups": len(f.bindings)}
        for relation in report.relations
        for f in relation.failures
    ]
    return {"complete": report.complete, "stopped": report.stopped or None, "missing": missing}


def _held(store: Path, name: str) -> Held | None:
    must_be_store(store)
    return next((held for held in look(store) if held.declared.name == name), None)


def _bindings(catalog: Catalog, said: Path | str | pa.Table | None) -> tuple[Given | None, str]:
    """What they are, and where that is a query, its text."""
    if said is None:
        return None, ""
    if isinstance(said, pa.Table):
        return of_table(said), ""
    if isinstance(said, str) and is_query(said):
        verdicts_of(understand(said, catalog), catalog)
        return None, said
    path = Path(said)
    if not path.exists():
        raise HarvestError(
            f"{path}: there is no such file, and it is no query: bindings are one or the other"
        )
    return of_file(path), ""


def _columns(catalog: Catalog, given: Given | None, sql: str) -> Sequence[str] | None:
    if given is not None:
        return given.columns
    return understand(sql, catalog).schema.names if sql else None


def harvest(
    catalog: Catalog,
    relation: str,
    store: Path | str,
    bindings: Path | str | pa.Table | None = None,
    *,
    output: Path | str | None = None,
    max_age: float = float("inf"),
    **limits: Any,
) -> Harvested:
    """Harvests a relation, for scripts and notebooks. `limits` are `max_calls`, `max_bytes`, `max_seconds`,
    `per_source`."""
    wanted = Harvest(relation, Path(store), bindings, Path(output) if output else None, max_age, limits)
    return asyncio.run(Harvesting(catalog, wanted).go())
