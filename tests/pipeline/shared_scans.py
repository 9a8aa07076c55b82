"""Scans of scripted sites, walked by several askers; what comes when, and who is killed when, is drawn.

Access, the walks and the askers' portions are the real ones. The network is scripted, and time is that of the loop.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from pyspark.sql.streaming.datasource import ReadAllAvailable

from mediator.access import Access
from mediator.answering import verdicts_of
from mediator.assembly import Settings
from mediator.catalog.model import AccessMethod, Catalog, Mirror, Relation, Source
from mediator.catalog.wrapper import Reply, Request
from mediator.flow.events import Event
from mediator.query.understand import understand
from pipeline.cells.envelopes import Broken, Came, Envelope, Lookup, Over
from pipeline.cells.packing import unpacked
from pipeline.spread.asks import put_asks, table
from pipeline.spread.folder import Folder
from pipeline.spread.pieces import count, numbered
from pipeline.spread.plan import Plan, planned
from pipeline.spread.portion import Due, Portion
from pipeline.spread.sharing import Sharing
from pipeline.spread.strands import Entry, entries_of, total
from pipeline.spread.stream import Pace, PieceReader
from tests.access.access_kit import FIELDS, Plain, Scripted, page, status

Row = tuple[object, ...]
STEPS = 20_000  # of an asker; no case needs a tenth of them


@dataclass
class Site:
    """A scan: pages of rows, each with those that it names. Some are not to be had."""

    name: str
    bag: bool
    rows: dict[str, list[Row]] = field(default_factory=dict)
    then: dict[str, list[str]] = field(default_factory=dict)
    lost: set[str] = field(default_factory=set)

    @property
    def lookup(self) -> Lookup:
        return Lookup(self.name, "scan", (), ())

    @property
    def all(self) -> Counter[Row]:
        return Counter(row for rows in self.rows.values() for row in rows)


@dataclass
class Walking:
    """`Plain`, of which each site has its own first page."""

    first: str
    plain: Plain = field(default_factory=Plain)
    empty_statuses: frozenset[int] = frozenset()
    read = property(lambda self: self.plain.read)

    def request(self, bind_set: tuple[str, ...], bindings: object) -> Request:
        return Request(self.first)


def drawn_site(random: Random, name: str) -> Site:
    """A chain of pages, the last of which names several; some of those lead on, one after another."""
    site = Site(name, random.random() < 0.5)
    numbers = iter(range(1_000))

    def add() -> str:
        path = f"/{name}/{next(numbers)}"
        domain = 3 if site.bag else 1_000_000
        site.rows[path] = [(random.randrange(domain), "v") for _ in range(random.choice((0, 1, 2)))]
        site.then[path] = []
        return path

    last = add()
    for _ in range(random.choice((0, 0, 1, 2))):
        site.then[last] = [add()]
        last = site.then[last][0]
    site.then[last] = [add() for _ in range(random.choice((0, 2, 2, 3, 5, 9)))]
    for path in [path for path in site.then[last] if random.random() < 0.4]:
        for _ in range(random.choice((1, 2))):
            site.then[path] = [add()]
            path = site.then[path][0]
    if random.random() < 0.25:
        site.lost.add(random.choice(list(site.rows)))
    return site


@dataclass
class Sites:
    """All of them behind one network, which counts."""

    sites: list[Site]
    random: Random
    requests: Counter[str] = field(default_factory=Counter)

    async def answer(self, mirror: Mirror, request: Request) -> Reply:
        self.requests[request.path] += 1
        for _ in range(self.random.choice((0, 1, 5, 30))):
            await asyncio.sleep(0)
        site = next(s for s in self.sites if s.name == request.path.split("/")[1])
        if request.path in site.lost:
            return status(403)
        return page(site.rows[request.path], site.then[request.path])

    def catalog(self, **declared: object) -> Catalog:
        relations = {}
        for site in self.sites:
            walking = Walking(f"/{site.name}/0")
            mirrors = (Mirror("site", "http://site.test"),)
            scan = AccessMethod("scan", "scan", mirrors, walking, **declared)  # type: ignore[arg-type]
            index = AccessMethod("by_k", "index", mirrors, Plain(), required=("k",))
            methods = (scan,) if site.bag else (scan, index)
            relations[site.name] = Relation(site.name, FIELDS, methods)
        return Catalog(relations, {"site": Source("site", concurrency=8)})


def plan_of(sites: Sites, askers: int, **declared: object) -> Plan:
    catalog = sites.catalog(**declared)
    sql = " UNION ALL ".join(f"SELECT k, v FROM {site.name}" for site in sites.sites)
    query = understand(sql, catalog)
    return planned(
        catalog,
        query,
        verdicts_of(query, catalog),
        Settings(),
        lambda *_: 9.0,
        slots=1,
        askers=askers,
        cells=2,
    )


class Killed(Exception):
    pass


@dataclass
class Run:
    """A spread without cells: who asks for the scans is on record from the beginning."""

    plan: Plan
    folder: Folder
    sites: Sites
    random: Random
    kills: int = 0

    def __post_init__(self) -> None:
        self._pieces, self._ended = -1, set[Lookup]()
        self.folder.begin(self.plan)
        asked = [(cell, site.lookup) for site in self.sites.sites for cell in self._cells(site)]
        put_asks(numbered(self.folder.asks, 0, "arrow"), [table(asked, self.plan.relations)])

    def _cells(self, site: Site) -> Iterable[int]:
        return [cell for name in self.plan.readers(site.name) for cell in self.plan.cells_of(name)]

    def go(self) -> None:
        """Until every scan has ended."""
        asyncio.run(self._go())

    async def _go(self) -> None:
        async with asyncio.TaskGroup() as group:
            for number in range(self.plan.askers):
                group.create_task(self._live(number))

    async def _live(self, number: int) -> None:
        """An asker, and those that are begun in its place."""
        while True:
            try:
                await self._asker(number)
                return
            except Killed:
                self.kills -= 1

    async def _asker(self, number: int) -> None:
        sharing, portions = Sharing(self.plan, number), list[Portion]()

        def deliver(event: Event) -> None:
            portions[0].deliver(event)

        catalog = sharing.catalog(self.plan.dealing.catalog(self.plan.catalog, number))
        async with Access(catalog, transport=Scripted(self.sites.answer), random=Random(0)) as access:
            visit = access.visit(deliver)
            try:
                portions.append(Portion(self.plan, self.folder, number, visit.ask, 0.0, sharing))
                for _ in range(STEPS):
                    await self._step(portions[0])
                    if self.over:
                        return
                raise AssertionError(f"asker {number} waits for ever")
            finally:
                visit.close()
                for portion in portions:
                    portion.close()

    async def _step(self, portion: Portion) -> None:
        for _ in range(self.random.choice((1, 1, 3, 20))):
            await asyncio.sleep(0)
        if self.random.random() < 0.7:
            portion.take(portion.look())
        if self.random.random() < 0.4:
            due = portion.due()
            for _ in range(self.random.choice((0, 0, 1, 20))):
                await asyncio.sleep(0)  # it is written in a thread: more comes meanwhile
            if self._strikes(0.4 if due.entries or due.shared or due.done else 0.0):
                self._write_some(portion, due)
                raise Killed
            portion.write(due)
        elif self._strikes(0.03):
            raise Killed

    def _strikes(self, chance: float) -> bool:
        return self.kills > 0 and self.random.random() < chance

    def _write_some(self, portion: Portion, due: Due) -> None:
        """As far as it comes."""
        far = self.random.randrange(4)
        shared, entries = due.shared if far else [], due.entries if far > 1 else []
        portion.write(Due(shared, entries, due.done if far > 2 else [], due.counts))

    @property
    def over(self) -> bool:
        pieces = sum(map(count, self._strands()))
        if pieces != self._pieces:
            self._pieces = pieces
            self._ended = {e.lookup for _, e in self.log() if isinstance(e, Over | Broken)}
        return self._ended >= {site.lookup for site in self.sites.sites}

    # What there is in the end.

    def log(self) -> list[tuple[Entry, Envelope]]:
        return [
            one for strand in self._strands() for n in range(count(strand)) for one in self._piece(strand, n)
        ]

    def came(self, site: Site, landings: Iterable[int] | None = None) -> Counter[Row]:
        """All rows of a site that are in the log, or those of some replies."""
        found: Counter[Row] = Counter()
        for _, envelope in self.log():
            mine = isinstance(envelope, Came) and envelope.lookups == (site.lookup,)
            if mine and (landings is None or envelope.landing in set(landings)):
                found.update(zip(*(c.to_pylist() for c in envelope.rows.columns), strict=True))
        return found

    def end(self, site: Site) -> Over | Broken:
        ends = {e for _, e in self.log() if isinstance(e, Over | Broken) and e.lookup == site.lookup}
        (end,) = ends
        return end

    def counts(self, site: Site) -> dict[str, int]:
        return total(self._strands())[site.name]

    def check_order(self) -> None:
        """However small micro-batches are: who reads that a scan is over has read its rows."""
        log, offset, landed = self.folder.path / "log", {"#epoch": 0}, set[int]()
        reader = PieceReader(log, 1, Pace(self.random.choice((1, 3_000)), 1, 3_000))
        while (new := reader.latestOffset(offset, ReadAllAvailable())) != offset:
            some = [
                one
                for strand in self._strands()
                for n in range(offset.get(strand.name, 0), new[strand.name])
                for one in self._piece(strand, n)
            ]
            offset = new
            landed |= {e.landing for _, e in some if isinstance(e, Came)}
            for _, end in some:
                if isinstance(end, Over):
                    rows = {
                        e.landing for _, e in self.log() if isinstance(e, Came) and end.lookup in e.lookups
                    }
                    assert rows.intersection(end.landings) <= landed, f"{end.lookup} is over before its rows"
        assert all(offset.get(strand.name, 0) == count(strand) for strand in self._strands())

    def _strands(self) -> list[Path]:
        return sorted((self.folder.path / "log").iterdir())

    def _piece(self, strand: Path, number: int) -> list[tuple[Entry, Envelope]]:
        found = entries_of(numbered(strand, number, "arrow"))
        return [(entry, unpacked(entry.envelope, self.plan.relations)) for entry in found]
