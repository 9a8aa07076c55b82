"""A seeded search: random sites, faults, asks and cancels; whatever happens, the promises of access hold."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from random import Random

import pytest
from access_kit import Scripted, catalog, page, status

from fixtures.virtual import run
from mediator.access import Access, Visit
from mediator.catalog.model import Mirror, Source
from mediator.catalog.wrapper import Binding, Reply, Request
from mediator.errors import Unreachable
from mediator.flow.events import Arrived, Ask, Cancel, Event, Exhausted, Failed, Urge

SEEDS = 200
GRID = 0.01  # everything happens on a grid, so that much of it happens at once
BAD = 13  # a key that the site refuses, and all that come with it


class RandomSite:
    """Honest about its rows, and about nothing else."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self.trouble = random.choice((0.0, 0.0, 0.1, 0.3))
        self.side_by_side = random.random() < 0.5
        self.longest = random.choice((1, 5, 30))
        self.active: Counter[tuple[str, Request]] = Counter()
        self.faults = 0

    async def answer(self, mirror: Mirror, request: Request) -> Reply:
        key = mirror.source, request
        self.active[key] += 1
        assert self.active[key] == 1, "the same request is under way twice"
        try:
            await asyncio.sleep(GRID * self._random.randint(0, self.longest))
            return await self._trouble() or self._page(request)
        finally:
            self.active[key] -= 1

    async def _trouble(self) -> Reply | None:
        if self._random.random() >= self.trouble:
            return None
        self.faults += 1
        match self._random.choice(("reset", "503", "429", "garbage", "hang", "403")):
            case "reset":
                raise Unreachable("reset", again=True)
            case "hang":
                await asyncio.sleep(1e6)
            case "garbage":
                return Reply(200, {}, b"<")
            case "429":
                return status(429, Retry_After="1")
            case "503":
                return status(503)
        return status(403)

    def _page(self, request: Request) -> Reply:
        name, number = request.path, 1
        if request.path.startswith("/more/"):
            _, _, name, number_text = request.path.split("/")
            number = int(number_text)
        elif request.path == "/at":
            name = dict(request.query)["k"]
        keys = [100] if name in ("/scan", "all") else [int(k) for k in name.split(",")]
        if BAD in keys:
            return status(400)
        last = max(_pages(k) for k in keys)
        following = range(2, last + 1) if self.side_by_side and number == 1 else range(number + 1, number + 2)
        wanted = [n for n in following if n <= last and (number == 1 or not self.side_by_side)]
        name = "all" if name == "/scan" else name
        rows = [[k, f"{k}.{number}"] for k in keys if number <= _pages(k)]
        return page(rows, [f"/more/{name}/{n}" for n in wanted])


def _pages(key: int) -> int:
    return 6 if key == 100 else key % 4


def _truth(binding: Binding) -> set[tuple[int, str]]:
    key = int(str(binding[0])) if binding else 100
    return {(key, f"{key}.{n}") for n in range(1, _pages(key) + 1)}


@dataclass
class Hearing:
    """What one ask was promised, and what came."""

    open: set[Binding]
    rows: list[tuple[int, str]] = field(default_factory=list)
    landings: set[int] = field(default_factory=set)
    kept: list[object] = field(default_factory=list)
    ends: Counter[str] = field(default_factory=Counter)


class Query:
    """One visit that asks and cancels at random, and holds access to its promises."""

    def __init__(self, access: Access, random: Random, site: RandomSite, once: bool) -> None:
        self._random = random
        self._site = site
        self._once = once  # whether no row can come twice: a single mirror, and nothing packed
        self.asks: dict[int, Hearing] = {}
        self.closed = False
        self._quiet = asyncio.Event()
        self._visit: Visit = access.visit(self.hear)

    def hear(self, event: Event) -> None:
        assert not self.closed
        assert isinstance(event, Arrived | Exhausted | Failed)
        asked = self.asks[event.ask]
        assert asked.open, "nothing is delivered for an ask that has ended"
        if isinstance(event, Arrived):
            self._land(asked, event)
            return
        self._quiet.set()
        for binding in event.bindings:
            asked.open.remove(binding)
            asked.ends[type(event).__name__] += 1
            if isinstance(event, Exhausted):
                assert binding != (BAD,)
                assert _truth(binding) <= set(asked.rows)
            else:
                assert binding == (BAD,) or self._site.trouble, event

    def _land(self, asked: Hearing, event: Arrived) -> None:
        assert id(event.landing) not in asked.landings
        asked.landings.add(id(event.landing))
        asked.kept.append(event.landing)  # or its id could come again
        rows = [(row["k"], row["v"]) for row in event.landing.rows.to_pylist()]
        assert not (self._once and set(rows) & set(asked.rows)), "a row that came already"
        asked.rows += rows

    async def live(self) -> None:
        for number in range(self._random.randint(1, 8)):
            await asyncio.sleep(GRID * self._random.choice((0, 0, 1, 3, 20)))
            self._ask(number)
            if self._random.random() < 0.4:
                await asyncio.sleep(GRID * self._random.choice((0, 1, 2, 10)))
                self._cancel()
            if self._random.random() < 0.4:
                self._urge()
            if self._random.random() < 0.2:
                self._steer()
        self._visit.steer([], {})  # a pause that is never over would never end
        if self._random.random() < 0.2:
            self.closed = True
            self._visit.close()

    def _ask(self, number: int) -> None:
        keys = [self._random.randint(0, 14) for _ in range(self._random.randint(1, 9))]
        urgency = float(self._random.randint(0, 2))
        if self._random.random() < 0.2:
            ask = Ask(number, "r", "scan", (), ((),), urgency)
        else:
            ask = Ask(number, "r", "by_k", ("k",), tuple((k,) for k in keys), urgency)
        self.asks[number] = Hearing(set(ask.bindings))
        self._visit.ask(ask)

    def _urge(self) -> None:
        number = self._random.choice(list(self.asks))
        some = [b for b in sorted(self.asks[number].open) if self._random.random() < 0.5]
        self._visit.urge(Urge(number, {b: float(self._random.randint(0, 5)) for b in some}))

    def _steer(self) -> None:
        paused = [name for name in ("a", "b") if self._random.random() < 0.5]
        self._visit.steer(paused, {"b": self._random.choice((0.5, 1.0, 5.0))})

    def _cancel(self) -> None:
        number = self._random.choice(list(self.asks))
        some = tuple(b for b in sorted(self.asks[number].open) if self._random.random() < 0.5)
        self.asks[number].open -= set(some) or self.asks[number].open
        self._visit.cancel(Cancel(number, some))

    async def settled(self) -> None:
        """Waits until all that was asked has ended."""
        async with asyncio.timeout(3600):
            while not self.closed and any(asked.open for asked in self.asks.values()):
                self._quiet.clear()
                await self._quiet.wait()


async def searched(seed: int) -> Counter[str]:
    """One random run. Returns what it ran into."""
    random = Random(seed)
    site = RandomSite(random)
    names = ["a", "b"][: random.choice((1, 1, 2))]
    sources = [
        Source(n, random.choice((None, None, 30.0)), random.randint(1, 4), 20.0, random.choice((1, 5)))
        for n in names
    ]
    batch_size = random.choice((1, 4))
    network = Scripted(site.answer)
    async with Access(catalog(*sources, batch_size=batch_size), transport=network, random=random) as access:
        queries = [Query(access, random, site, once=len(names) == batch_size == 1) for _ in range(3)]
        async with asyncio.TaskGroup() as group:
            for query in queries:
                group.create_task(query.live())
        for query in queries:
            await query.settled()
        await asyncio.sleep(GRID)
        told = access.statistics()
        for source in sources:
            assert network.peak[source.name] <= source.concurrency
            assert told.source(source.name).in_flight == 0, "what nobody wants is not under way"
        for method in told.methods:
            assert (method.in_flight, method.queued) == (0, 0)
    assert not +network.inside
    met: Counter[str] = Counter(faults=site.faults, abandoned=network.abandoned)
    met.update(joined=sum(m.joined for m in told.methods), cancelled=sum(m.cancelled for m in told.methods))
    met.update(hedges=sum(r.hedges for m in told.methods for r in m.mirrors))
    met.update(retried=sum(m.retried for m in told.methods))
    for query in queries:
        for asked in query.asks.values():
            met.update(asked.ends)
    return met


@pytest.mark.parametrize("block", range(5))
def test_promises_hold(block: int) -> None:
    met: Counter[str] = Counter()
    for seed in range(block, SEEDS, 5):
        try:
            met += run(searched(seed))
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
    wanted = ("faults", "abandoned", "joined", "cancelled", "hedges", "retried", "Exhausted", "Failed")
    assert all(met[what] >= 3 for what in wanted), f"the search has gone blind: {met}"


def test_a_run_repeats_itself() -> None:
    runs = defaultdict(list)
    for seed in (3, 3, 44, 44):
        runs[seed].append(run(searched(seed)))
    assert all(first == second for first, second in runs.values())
