"""An asker's portion of all lookups: what was asked, what came, and what of it is in the log.

It awaits nothing. What it is to ask it gives to `ask`; what comes it is told by `deliver`.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field, replace
from itertools import count

from mediator.catalog.wrapper import Request
from mediator.flow.events import Arrived, Ask, Event, Exhausted, Failed, Landing
from mediator.store import bindings
from pipeline.cells.envelopes import Broken, Came, Lookup, Over
from pipeline.cells.packing import packed, unpacked
from pipeline.spread.addressing import places
from pipeline.spread.asks import Asked, read_asks
from pipeline.spread.folder import Folder
from pipeline.spread.pieces import count as count_of
from pipeline.spread.pieces import numbered
from pipeline.spread.plan import Plan
from pipeline.spread.requests import mark
from pipeline.spread.shares import Done, Shared, Shares, together
from pipeline.spread.sharing import Sharing
from pipeline.spread.strands import SEEDS, Counts, Entry, Strand, entries, entries_of, strand_of

_LANDINGS = 1 << 40  # numbers that each strand has for its replies


@dataclass
class News:
    """What has come into the folder."""

    asked: list[Asked]
    shared: list[Shared]
    done: list[Done]


@dataclass
class Due:
    """What is to be written: how scans were dealt out before any row of them, rows before it is said that they came."""

    shared: list[Shared]
    entries: list[Entry]
    done: list[Done]
    counts: Counts = field(default_factory=dict)  # as of these entries: more may come while they are written


@dataclass
class _Open:
    """A lookup under way, or a part of another asker's."""

    lookup: Lookup
    helping: bool = False
    cells: set[int] = field(default_factory=set)  # that are to know its end
    landings: list[int] = field(default_factory=list)
    end: Over | Broken | None = None  # of its own part, while others are at theirs


class Portion:
    """Number `number` of the plan's. `offset` is added to times, which then are the wall clock's."""

    def __init__(
        self,
        plan: Plan,
        folder: Folder,
        number: int,
        ask: Callable[[Ask], None],
        offset: float = 0.0,
        sharing: Sharing | None = None,
    ) -> None:
        self._plan, self._folder, self._number = plan, folder, number
        self._ask, self._offset = ask, offset
        self._sharing = sharing or Sharing(plan, number)
        self._shares = Shares(folder.shares, plan.relations)
        self._strand = Strand(folder.strand(strand_of(number)))
        self._counts = deepcopy(self._strand.counts)
        self._landing = count(number * _LANDINGS)
        self._asks = count()
        self._files = 0  # of asks that were read
        self._open: dict[int, _Open] = {}  # by the number of the ask
        self._under_way: dict[Lookup, _Open] = {}
        self._ended: dict[Lookup, bytes] = {}  # packed, for cells that ask later
        self._seeded: dict[Lookup, int] = {}  # how many pieces of the seeds bring it
        self._parts: dict[Lookup, dict[int, Done]] = {}  # of shared scans, that are done
        # Of a bag whose scan was broken off with an asker before this one: the replies to its pages.
        self._pages: dict[Lookup, dict[str, int]] = {}
        self._due = Due([], [], [])
        self._arrived: dict[int, tuple[Arrived, list[Lookup], int]] = {}  # since the last piece, by landing
        self.helped: dict[str, Counter[str]] = {}  # by source: parts of others' scans, as they stand
        self._recall()

    def _recall(self) -> None:
        """What was known when the query began, and what ended before this asker was begun anew."""
        seeds = self._folder.strand(SEEDS)
        for number in range(count_of(seeds)):
            for entry in entries_of(numbered(seeds, number, "arrow")):
                told = unpacked(entry.envelope, self._plan.relations) if entry.envelope else None
                if isinstance(told, Over):
                    self._ended[told.lookup] = entry.envelope
                    self._seeded[told.lookup] = number + 1
        most = self._number * _LANDINGS - 1
        for entry in entries(self._strand.folder):
            envelope = unpacked(entry.envelope, self._plan.relations)
            if isinstance(envelope, Came):
                most = max(most, envelope.landing)
                if entry.page:
                    self._pages.setdefault(envelope.lookups[0], {})[entry.page] = envelope.landing
            else:
                self._ended[envelope.lookup] = entry.envelope
        self._landing = count(most + 1)
        self._pages = {lookup: pages for lookup, pages in self._pages.items() if lookup not in self._ended}
        for counts in self._counts.values():
            counts["asked"] = counts["answered"] + counts["failed"]

    def look(self) -> News:
        """What has come since this was last asked. Reads files."""
        asked = []
        while (path := numbered(self._folder.asks, self._files, "arrow")).exists():
            asked += [a for a in read_asks(path, self._plan.relations) if self._mine(a[1])]
            self._files += 1
        return News(asked, *self._shares.look())

    def _mine(self, lookup: Lookup) -> bool:
        return is_site(self._plan, lookup) and whose(self._plan, lookup) == self._number

    def take(self, news: News) -> None:
        """What was never asked is asked; who asks for what has ended is told."""
        for done in news.done:
            self._parts.setdefault(done.lookup, {})[done.asker] = done
        for shared in news.shared:
            self._take_part(shared)
        for cell, lookup in news.asked:
            ended = self._ended.get(lookup)
            if ended is not None:
                seeded = self._seeded.get(lookup)
                self._due.entries.append(Entry(ended, (cell,), after={SEEDS: seeded} if seeded else {}))
                continue
            under_way = self._under_way.get(lookup)
            if under_way is None:
                under_way = self._begin(_Open(lookup))
                self._count(lookup.relation, "asked", 1)
            under_way.cells.add(cell)
        for done in news.done:
            self._end_together(done.lookup)

    def _take_part(self, shared: Shared) -> None:
        if self._number not in shared.parts:
            return
        self._sharing.known.setdefault(shared.lookup, shared)
        if shared.owner != self._number and self._number not in self._parts.get(shared.lookup, ()):
            self._begin(_Open(shared.lookup, helping=True))
            self._help(shared.lookup, "asked")

    def _begin(self, begun: _Open) -> _Open:
        number, lookup = next(self._asks), begun.lookup
        self._open[number] = self._under_way[lookup] = begun
        self._ask(Ask(number, lookup.relation, lookup.method, lookup.bind_set, (lookup.binding,)))
        return begun

    def deliver(self, event: Event) -> None:
        open_ = self._open[event.ask]
        match event:
            case Arrived(_, landing) if (told := self._told(open_.lookup, landing)) is not None:
                open_.landings.append(told)  # equal rows are not one
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
                self._end(event.ask, Over(open_.lookup, at, until, tuple(open_.landings)))
            case Failed():
                self._end(event.ask, Broken(open_.lookup, event.cause))

    def _told(self, lookup: Lookup, landing: Landing) -> int | None:
        """By which number its rows are in the log already."""
        pages = self._pages.get(lookup)
        return pages.get(_page_of(landing)) if pages else None

    def _end(self, ask: int, end: Over | Broken) -> None:
        self._write_arrived()  # the rows go before their end
        open_ = self._open.pop(ask)
        open_.end = end
        if open_.helping:
            self._end_part(open_, end)
        else:
            self._end_together(open_.lookup)

    def _end_part(self, open_: _Open, end: Over | Broken) -> None:
        lookup = open_.lookup
        further = self._sharing.further(lookup)
        done = Done(lookup, self._number, tuple(open_.landings), tuple(sorted(open_.cells)), further)
        if isinstance(end, Over):
            done = replace(done, at=end.at, until=end.until)
        else:
            done = replace(done, cause=end.cause)
        self._due.done.append(done)
        del self._under_way[lookup]
        self._help(lookup, "failed" if done.cause else "answered")

    def _end_together(self, lookup: Lookup) -> None:
        """When its own part of it and all others' have ended."""
        open_, shared = self._under_way.get(lookup), self._sharing.known.get(lookup)
        done = self._parts.get(lookup, {})
        if open_ is None or open_.end is None or (shared is not None and not shared.others <= done.keys()):
            return
        end, after = open_.end, {}
        if shared is not None:
            others = [done[asker] for asker in shared.others]
            further, most = self._sharing.further(lookup), self._sharing.most(lookup)
            end = together(shared, end, further, others, most)
            open_.cells.update(cell for part in others for cell in part.cells)
            after = {strand_of(part.asker): part.pieces for part in others}
        del self._under_way[lookup]
        self._count(lookup.relation, "failed" if isinstance(end, Broken) else "answered", 1)
        content = self._ended[lookup] = packed(end, self._plan.relations)
        self._due.entries.append(Entry(content, sorted(open_.cells), after=after))

    def _write_arrived(self) -> None:
        for event, lookups, number in self._arrived.values():
            rows = event.landing.rows
            if rows.num_rows:
                envelope = packed(Came(tuple(lookups), number, rows), self._plan.relations)
                bag = not self._plan.relations[lookups[0].relation].repeats
                self._due.entries.append(Entry(envelope, page=_page_of(event.landing) if bag else None))
        self._arrived.clear()

    def due(self) -> Due:
        """What is to be written now."""
        self._write_arrived()
        due, self._due = self._due, Due([], [], [])
        due.counts = deepcopy(self._counts)
        while self._sharing.new:
            due.shared.append(self._sharing.new.popleft())
        return due

    def write(self, due: Due) -> None:
        for shared in due.shared:
            self._shares.put(shared)
        if due.entries:
            self._strand.counts = due.counts
            self._strand.write(due.entries)
        for done in due.done:
            self._shares.put_done(replace(done, pieces=self._strand.pieces))

    def close(self) -> None:
        self._strand.close()

    def _count(self, relation: str, what: str, by: int) -> None:
        counts = self._counts.setdefault(relation, {"asked": 0, "answered": 0, "failed": 0, "rows": 0})
        counts[what] += by

    def _help(self, lookup: Lookup, what: str) -> None:
        for mirror in self._plan.relations[lookup.relation].method(lookup.method).mirrors:
            self.helped.setdefault(mirror.source, Counter())[what] += 1


def whose(plan: Plan, lookup: Lookup) -> int:
    """The asker that a lookup belongs to."""
    schema = plan.relations[lookup.relation].schema
    (text,) = bindings.written(schema, lookup.bind_set, [lookup.binding])
    spelt = "\0".join((lookup.relation, lookup.method, *lookup.bind_set, text))
    askers = plan.dealing.askers_of(plan.relations[lookup.relation].method(lookup.method))
    return askers[zlib.crc32(spelt.encode()) % len(askers)]


def is_site(plan: Plan, lookup: Lookup) -> bool:
    """Whether it is a site's, and not what an earlier stage gives."""
    return lookup.relation not in plan.stages


def _page_of(landing: Landing) -> str:
    """What tells its page from others, also when it is asked for again."""
    if not isinstance(landing.page, Request):
        return ""
    return f"{mark(landing.page)} {landing.stretch}" if landing.stretch else mark(landing.page)
