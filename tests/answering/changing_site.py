"""A little site whose rows change at random moments, and a search for answers that it could never have given.

Every complete answer has to be what the site held at one moment: the rows of each lookup at one moment of its own, no
longer ago than the query allows. Several queries run at once, one mediator after another over one store.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import pyarrow as pa

from mediator.access import trip
from mediator.answering import Mediator
from mediator.catalog.model import AccessMethod, Catalog, Field, Mirror, Relation, Source
from mediator.catalog.wrapper import Binding, Page, Reply, Request
from mediator.flow.events import Binding as Values
from tests.answering.kit import ask, in_virtual_time, listed, of

FIELDS = (Field("k", pa.int64()), Field("v", pa.string()))
SCHEMA = pa.schema([(f.name, f.type) for f in FIELDS])
KEYS, WORDS = range(4), "abc"
SECONDS = 120.0
LONGEST = 8.0  # that a page takes
NOON = 1_800_000_000.0

Row = tuple[int, str]
State = frozenset[Row]
Meets = Callable[[Row], bool]


class Asking:
    """Asks for bindings as JSON; a page says which is the next."""

    empty_statuses: frozenset[int] = frozenset()

    def request(self, bind_set: tuple[str, ...], bindings: Sequence[Binding]) -> Request:
        return Request("/rows", (("fields", json.dumps(bind_set)), ("bindings", json.dumps(bindings))))

    def read(
        self, request: Request, bind_set: tuple[str, ...], bindings: Sequence[Binding], reply: Reply
    ) -> Page:
        said = json.loads(reply.body)
        rows = pa.RecordBatch.from_pylist([{"k": k, "v": v} for k, v in said["rows"]], schema=SCHEMA)
        return Page(rows, (Request("/rows", (*request.query, ("page", "1"))),) if said["more"] else ())


@dataclass
class Site:
    """What it held since when; it answers a request in the middle of the time that this takes."""

    random: Random
    keyed: bool
    pages: int  # of a scan: by its last digit a key is on one of them
    moody: float  # how likely a reply is a refusal
    history: list[tuple[float, State]] = field(default_factory=list)

    async def send(self, mirror: Mirror, request: Request) -> Reply:
        said = dict(request.query)
        bind_set, page = json.loads(said["fields"]), int(said.get("page", "0"))
        before, after = self.random.uniform(0, LONGEST / 2), self.random.uniform(0, LONGEST / 2)
        await asyncio.sleep(before)
        refused = self.random.random() < self.moody
        rows = [
            row for row in self.now if any(_meets(row, bind_set, b) for b in json.loads(said["bindings"]))
        ]
        if not bind_set:
            rows = [row for row in rows if row[0] % self.pages == page]
        more = not bind_set and page + 1 < self.pages
        await asyncio.sleep(after)
        return Reply(403 if refused else 200, {}, json.dumps({"rows": rows, "more": more}).encode())

    @property
    def now(self) -> State:
        return self.history[-1][1]

    def change(self) -> None:
        """A row comes, goes, or is another."""
        rows, (k, v) = set(self.history[-1][1]) if self.history else set(), self.random.choice(_EVERY)
        if self.keyed or self.random.random() < 0.5:
            rows = {row for row in rows if row[0] != k}
        if self.random.random() < 0.8:
            rows.add((k, v))
        self.history.append((asyncio.get_running_loop().time() if self.history else 0.0, frozenset(rows)))

    def between(self, since: float, until: float) -> Iterator[State]:
        """All that it held at any moment from then to then."""
        ends = [at for at, _ in self.history[1:]] + [float("inf")]
        return (
            held for (at, held), end in zip(self.history, ends, strict=True) if at <= until and end >= since
        )


_EVERY = [(k, v) for k in KEYS for v in WORDS]


def _meets(row: Row, bind_set: Sequence[str], binding: Values) -> bool:
    k, v = row
    tests: dict[str, Callable[[Any], bool]] = {
        "k": lambda value: k == value,
        "v": lambda value: v == value,
        "k<=": lambda value: k <= value,
    }
    return all(tests[name](value) for name, value in zip(bind_set, binding, strict=True))


@dataclass(frozen=True)
class Case:
    """All that is drawn before anything happens."""

    seed: int
    catalog: Catalog
    site: Site
    statements: tuple[tuple[str, tuple[Meets, ...]], ...]
    restarts: int


@dataclass
class Tale:
    """What a search has seen."""

    checked: int = 0
    served: int = 0  # of these, without asking the site
    raced: int = 0
    wrong: list[str] = field(default_factory=list)


def draw(seed: int) -> Case:
    random = Random(seed)
    keyed = random.random() < 0.4
    site = Site(random, keyed, random.choice((1, 1, 2)), random.choice((0.0, 0.1, 0.4)))
    mirrors = (Mirror("site", "http://site.test"),)

    def index(name: str, bound: str, packed: int = 1) -> AccessMethod:
        return AccessMethod(name, "index", mirrors, Asking(), required=(bound,), batch_size=packed)

    methods = [
        AccessMethod("scan", "scan", mirrors, Asking()),
        index("by_k", "k", random.choice((1, 3))),
        index("by_v", "v", random.choice((1, 2))),
        index("up_to", "k<="),
    ]
    chosen = random.sample(methods, random.randint(2, 4))
    relation = Relation("r", FIELDS, tuple(m for m in methods if m in chosen), ("k",) if keyed else ())
    catalog = Catalog({"r": relation}, {"site": Source("site")})
    ways = {m.name for m in chosen}
    statements = tuple(_statement(random, ways) for _ in range(20))
    return Case(seed, catalog, site, statements, random.choice((0, 1, 3)))


def _statement(random: Random, ways: set[str]) -> tuple[str, tuple[Meets, ...]]:
    """A query that can be answered, and what it asks for: one lookup each."""
    able = [w for w in ("scan", "by_k", "by_v", "up_to") if w in ways or "scan" in ways]
    match random.choice(able):
        case "by_k":
            keys = random.sample(KEYS, random.randint(1, 3))
            return f"WHERE k IN ({', '.join(map(str, keys))})", tuple(_when(("k",), k) for k in keys)
        case "by_v":
            words = random.sample(WORDS, random.randint(1, 2))
            quoted = ", ".join(f"'{w}'" for w in words)
            return f"WHERE v IN ({quoted})", tuple(_when(("v",), w) for w in words)
        case "up_to":
            most = random.choice(KEYS)
            return f"WHERE k <= {most}", (_when(("k<=",), most),)
        case _:
            return "", (_when(()),)


def _when(bind_set: tuple[str, ...], *binding: object) -> Meets:
    return lambda row: _meets(row, bind_set, binding)


def run(seed: int, folder: Path | None, tale: Tale) -> None:
    """One case, with a store where there is a folder."""
    case = draw(seed)
    in_virtual_time(_run(case, folder, tale))


async def _run(case: Case, folder: Path | None, tale: Tale) -> None:
    random, site, loop = case.site.random, case.site, asyncio.get_running_loop()
    for _ in range(6):
        site.change()
    site.history[:] = [(0.0, site.now)]
    lives = case.restarts + 1
    share = -(-len(case.statements) // lives)
    for life in range(lives):
        some = case.statements[life * share : (life + 1) * share]
        with patch.object(trip, "_NUMBERS", count(1)):  # as in another process
            async with (
                Mediator(
                    case.catalog, threads=1, transport=site, store=folder, wall=lambda: NOON + loop.time()
                ) as mediator,
                asyncio.TaskGroup() as group,
            ):
                group.create_task(_changes(site, random, loop.time() + SECONDS / lives))
                for where, units in some:
                    at = random.uniform(0, SECONDS / lives)
                    group.create_task(_query(case, mediator, where, units, at, tale))


async def _changes(site: Site, random: Random, until: float) -> None:
    pace = random.choice((3.0, 10.0, 30.0))
    while asyncio.get_running_loop().time() < until:
        await asyncio.sleep(random.expovariate(1 / pace))
        site.change()


async def _query(
    case: Case, mediator: Mediator, where: str, units: Sequence[Meets], wait: float, tale: Tale
) -> None:
    max_age = case.site.random.choice((float("inf"), float("inf"), 50.0, 10.0, 1.0))
    loop = asyncio.get_running_loop()
    await asyncio.sleep(wait)
    began = loop.time()
    table, report = await ask(mediator, f"SELECT k, v FROM r {where}", max_age=max_age)
    if not report.complete:
        return
    lookups = of(report, "r").asked + of(report, "r").served
    if lookups > len(units):
        # Two ways of asking raced each other: what each brings is of one moment, but not both of the same.
        tale.raced += 1
        return
    tale.checked += 1
    tale.served += not of(report, "r").asked
    found: list[Any] = listed(table)
    # It may have waited for a lookup that was under way already.
    held = list(case.site.between(began - max_age - LONGEST * case.site.pages, loop.time()))
    if len(found) != len(set(found)):
        tale.wrong.append(f"seed {case.seed}, {where!r} at {began:.1f}: rows come twice in {sorted(found)}")
    for unit in _apart(case.site, units):
        rows = {row for row in found if unit(row)}
        if not any(rows == {row for row in state if unit(row)} for state in held):
            seen = [sorted(row for row in state if unit(row)) for state in held]
            tale.wrong.append(
                f"seed {case.seed}, {where or 'all'!r} at {began:.1f}, not older than {max_age:g}: "
                f"{sorted(rows)} is none of {seen}"
            )


def _apart(site: Site, units: Sequence[Meets]) -> Iterator[Meets]:
    """What comes on several pages is of several moments: what it says of each page's keys is of one."""
    for unit in units:
        for page in range(site.pages):
            yield partial(_on_page, site.pages, page, unit)


def _on_page(pages: int, page: int, unit: Meets, row: Row) -> bool:
    return unit(row) and row[0] % pages == page
