"""An asker: carries out its portion of all lookups, within its portion of every limit, and writes what comes to the log
before anybody uses it.

Which lookups are its own follows from the lookup. So each is asked once, whatever cell wants it, and a site's limit is
kept in one place for as long as the query lasts. One that is begun anew goes by its own strand: what has ended there is
not asked again.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from mediator.access import Access, Ceilings, Transport
from mediator.answering import HEDGED
from mediator.clock import Clock, wall
from mediator.flow.events import Arrived, Ask, Event, Exhausted, Failed
from mediator.store import bindings
from pipeline.cells.envelopes import Broken, Came, Lookup, Over
from pipeline.cells.packing import packed, unpacked
from pipeline.dividing import portion_of, settings_for
from pipeline.files import new_of
from pipeline.spread.addressing import places
from pipeline.spread.asks import Asked, read_asks
from pipeline.spread.folder import Folder, numbered
from pipeline.spread.plan import Plan
from pipeline.spread.strands import Entry, Strand
from pipeline.spread.watching import standing

_LOOK = 0.02  # seconds between two looks for new asks
_FLUSH = 0.05  # that an envelope may wait for others before a piece is written
_TELL = 0.5  # between two words on how it stands
_LANDINGS = 1 << 40  # numbers that each strand has for its replies


@dataclass
class _Open:
    """A lookup under way."""

    lookup: Lookup
    cells: set[int] = field(default_factory=set)  # that are to know its end
    landings: list[int] = field(default_factory=list)


class Asker:
    """Number `number` of the plan's askers."""

    def __init__(
        self,
        plan: Plan,
        folder: Folder,
        number: int,
        *,
        transport: Transport | None = None,
        clock: Clock = wall,
    ) -> None:
        self._plan, self._folder, self._number = plan, folder, number
        self._transport = transport
        self._clock = clock
        self._strand = Strand(folder.strand(strand_of(number)))
        self._counts = self._strand.counts
        self._landing = count(number * _LANDINGS)
        self._asks = count()
        self._files = 0  # of asks that were read
        self._open: dict[int, _Open] = {}  # by the number of the ask
        self._under_way: dict[Lookup, _Open] = {}
        self._ended: dict[Lookup, bytes] = {}  # packed, for cells that ask later
        # Of a bag whose scan was broken off with an asker before this one: the replies to its pages.
        self._pages: dict[Lookup, dict[int, int]] = {}
        self._due: list[Entry] = []
        self._arrived: dict[int, tuple[Arrived, list[Lookup], int]] = {}  # since the last piece, by landing

    async def run(self) -> None:
        """Until the spread ends."""
        await asyncio.to_thread(self._recall)
        settings = settings_for(_spending(self._plan), self._number, self._plan.askers)
        ceilings = Ceilings(settings.get("max_calls"), settings.get("max_bytes"))
        catalog = portion_of(self._plan.catalog, self._number, self._plan.askers)
        async with Access(catalog, transport=self._transport) as access:
            self._offset = self._clock() - asyncio.get_running_loop().time()
            at = self._plan.catalog.ceilings(settings["per_source"])
            self._visit = access.visit(self._deliver, ceilings, at)
            self._visit.hedge(HEDGED[self._plan.settings.goal])
            self._visit.steer(self._plan.settings.pause, self._plan.settings.boost)
            try:
                await self._serve(access)
            finally:
                self._visit.close()

    async def _serve(self, access: Access) -> None:
        loop = asyncio.get_running_loop()
        told = flushed = 0.0
        while not await asyncio.to_thread(self._over):
            for asked in await asyncio.to_thread(self._new_asks):
                self._take(asked)
            if loop.time() - flushed >= _FLUSH:
                flushed = loop.time()
                await self._flush()
            if loop.time() - told >= _TELL:
                told = loop.time()
                await asyncio.to_thread(self._tell, access)
            await asyncio.sleep(_LOOK)
        await asyncio.to_thread(self._tell, access)

    def _over(self) -> bool:
        return self._folder.end is not None or not self._folder.path.exists()

    def _tell(self, access: Access) -> None:
        target = self._folder.asking / f"{strand_of(self._number)}.json"
        new = new_of(target)
        new.write_text(standing(access.statistics()), encoding="utf-8")
        new.replace(target)

    def _recall(self) -> None:
        """What ended before it was begun anew."""
        most = self._number * _LANDINGS - 1
        for entry in self._strand.entries():
            envelope = unpacked(entry.envelope, self._plan.relations)
            if isinstance(envelope, Came):
                most = max(most, envelope.landing)
                for lookup in envelope.lookups:
                    self._pages.setdefault(lookup, {})[entry.place or 0] = envelope.landing
            else:
                self._ended[envelope.lookup] = entry.envelope
        self._landing = count(most + 1)
        relations = self._plan.relations
        self._pages = {
            lookup: pages
            for lookup, pages in self._pages.items()
            if lookup not in self._ended and not relations[lookup.relation].repeats
        }
        for counts in self._counts.values():
            counts["asked"] = counts["answered"] + counts["failed"]

    def _new_asks(self) -> list[list[Asked]]:
        found = []
        while (path := numbered(self._folder.asks, self._files, "arrow")).exists():
            found.append([a for a in read_asks(path, self._plan.relations) if self._mine(a[1])])
            self._files += 1
        return found

    def _mine(self, lookup: Lookup) -> bool:
        return is_site(self._plan, lookup) and whose(self._plan, lookup) == self._number

    def _take(self, asked: Iterable[Asked]) -> None:
        """What was never asked is asked; who asks for what has ended is told."""
        for cell, lookup in asked:
            ended = self._ended.get(lookup)
            if ended is not None:
                self._due.append(Entry(ended, (cell,)))
                continue
            under_way = self._under_way.get(lookup)
            if under_way is None:
                under_way = self._begin(lookup)
            under_way.cells.add(cell)

    def _begin(self, lookup: Lookup) -> _Open:
        number = next(self._asks)
        begun = self._open[number] = self._under_way[lookup] = _Open(lookup)
        self._count(lookup.relation, "asked", 1)
        self._visit.ask(Ask(number, lookup.relation, lookup.method, lookup.bind_set, (lookup.binding,)))
        return begun

    def _deliver(self, event: Event) -> None:
        open_ = self._open[event.ask]
        match event:
            case Arrived(_, landing) if landing.place in (pages := self._pages.get(open_.lookup, {})):
                open_.landings.append(pages[landing.place])  # it has been told already, and equal rows are not one
            case Arrived(_, landing):
                if id(landing) not in self._arrived:
                    self._arrived[id(landing)] = event, [], next(self._landing)
                    self._count(open_.lookup.relation, "rows", landing.rows.num_rows)
                _, lookups, number = self._arrived[id(landing)]
                lookups.append(open_.lookup)
                open_.landings.append(number)
                open_.cells.update(places(self._plan, open_.lookup.relation, landing.rows))
            case Exhausted():
                at, until = event.at + self._offset, event.until + self._offset
                self._end(event.ask, Over(open_.lookup, at, until, tuple(open_.landings)), "answered")
            case Failed():
                self._end(event.ask, Broken(open_.lookup, event.cause), "failed")

    def _end(self, ask: int, envelope: Over | Broken, what: str) -> None:
        self._write_arrived()  # the rows go before their end
        open_ = self._open.pop(ask)
        del self._under_way[open_.lookup]
        self._count(open_.lookup.relation, what, 1)
        content = self._ended[open_.lookup] = packed(envelope, self._plan.relations)
        self._due.append(Entry(content, sorted(open_.cells)))

    def _write_arrived(self) -> None:
        for event, lookups, number in self._arrived.values():
            rows = event.landing.rows
            if rows.num_rows:
                envelope = packed(Came(tuple(lookups), number, rows), self._plan.relations)
                self._due.append(Entry(envelope, place=event.landing.place))
        self._arrived.clear()

    async def _flush(self) -> None:
        self._write_arrived()
        due, self._due = self._due, []
        if due:
            await asyncio.to_thread(self._strand.write, due)

    def _count(self, relation: str, what: str, by: int) -> None:
        counts = self._counts.setdefault(relation, {"asked": 0, "answered": 0, "failed": 0, "rows": 0})
        counts[what] += by


def strand_of(number: int) -> str:
    return f"asker-{number:04d}"


def whose(plan: Plan, lookup: Lookup) -> int:
    """The asker that a lookup belongs to."""
    schema = plan.relations[lookup.relation].schema
    (text,) = bindings.written(schema, lookup.bind_set, [lookup.binding])
    spelt = "\0".join((lookup.relation, lookup.method, *lookup.bind_set, text))
    return zlib.crc32(spelt.encode()) % plan.askers


def is_site(plan: Plan, lookup: Lookup) -> bool:
    """Whether it is a site's, and not what an earlier stage gives."""
    return lookup.relation not in plan.stages


def run_asker(folder: Path, number: int) -> None:
    """In a task: until the spread ends."""
    there = Folder(folder)
    asyncio.run(Asker(there.plan(), there, number).run())


def _spending(plan: Plan) -> dict[str, object]:
    s = plan.settings
    said = {"max_calls": s.max_calls, "max_bytes": s.max_bytes}
    return {**{n: v for n, v in said.items() if v is not None}, "per_source": dict(s.per_source)}
