"""Three relations over real HTTP on loopback, each of which stalls, goes on and fails when a test says so."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pyarrow as pa
from aiohttp import web as http

from mediator.answering import Mediator
from mediator.catalog.functions import Function
from mediator.catalog.model import AccessMethod, Catalog, Field, Mirror, Relation, Source
from mediator.catalog.wrapper import Binding, Page, Reply, Request
from mediator.driver import Answers
from mediator.output.records import Partial, Record, Rows, Withdrawn

NEVER = 403
COLUMNS = {"r": ("a", "c"), "s": ("a", "b"), "t": ("b", "c")}
DATA: Mapping[str, list[tuple[int, int]]] = {
    "r": [(1, 10), (2, 20), (3, 30), (4, 10)],
    "s": [(1, 100), (2, 200), (2, 201), (3, 300)],
    "t": [(100, 10), (200, 20), (201, 20), (300, 99)],
}
CYCLE = "SELECT r.a, s.b, t.c FROM r, s, t WHERE r.a = s.a AND s.b = t.b AND t.c = r.c"
ANSWERS = {(1, 100, 10), (2, 200, 20), (2, 201, 20)}


@dataclass
class Site:
    """What each relation has, whether it may answer now, and what it was asked."""

    data: dict[str, list[tuple[int, int]]]
    asked: Counter[str] = field(default_factory=Counter)
    under_way: Counter[str] = field(default_factory=Counter)
    failing: set[str] = field(default_factory=set)
    open: dict[str, asyncio.Event] = field(default_factory=dict)
    url: str = ""

    def stall(self, *names: str) -> None:
        for name in names:
            self.open[name].clear()

    def go_on(self, *names: str) -> None:
        for name in names:
            self.open[name].set()

    def fail(self, name: str) -> None:
        """What waits there, and what comes, is refused for good."""
        self.failing.add(name)
        self.open[name].set()

    async def answer(self, request: http.Request) -> http.Response:
        name = request.path.strip("/")
        self.asked[name] += 1
        self.under_way[name] += 1
        try:
            await self.open[name].wait()
        finally:
            self.under_way[name] -= 1
        if name in self.failing:
            return http.Response(status=NEVER)
        wanted = {k: {int(v) for v in given.split(",")} for k, given in request.query.items()}
        at = {k: COLUMNS[name].index(k) for k in wanted}
        rows = [row for row in self.data[name] if all(row[at[k]] in vs for k, vs in wanted.items())]
        return http.json_response(rows)


@dataclass(frozen=True)
class Plain:
    """Asks `/r` or `/t?c=10`; reads a list of pairs."""

    name: str
    empty_statuses: frozenset[int] = frozenset()

    def request(self, bind_set: tuple[str, ...], bindings: Sequence[Binding]) -> Request:
        (values,) = bindings or ((),)
        return Request(f"/{self.name}", tuple((k, str(v)) for k, v in zip(bind_set, values, strict=False)))

    def read(
        self, request: Request, bind_set: tuple[str, ...], bindings: Sequence[Binding], reply: Reply
    ) -> Page:
        columns = list(zip(*json.loads(reply.body), strict=True)) or [(), ()]
        arrays = [pa.array(c, pa.int64()) for c in columns]
        return Page(pa.RecordBatch.from_arrays(arrays, names=list(COLUMNS[self.name])))


@asynccontextmanager
async def site(
    indexed: Mapping[str, str] | None = None,
    data: Mapping[str, list[tuple[int, int]]] = DATA,
    functions: Sequence[Function] = (),
) -> AsyncIterator[tuple[Site, Mediator]]:
    """The site and a mediator over it. What is `indexed` is behind a form that wants that column, the rest a scan."""
    here = Site({name: list(rows) for name, rows in data.items()})
    here.open = {name: asyncio.Event() for name in DATA}
    here.go_on(*DATA)
    app = http.Application()
    for name in DATA:
        app.router.add_get(f"/{name}", here.answer)
    runner = http.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.5)
    await runner.setup()
    await http.TCPSite(runner, "127.0.0.1", 0).start()
    here.url = "http://{}:{}".format(*runner.addresses[0][:2])
    try:
        catalog = _catalog(here.url, indexed or {})
        async with Mediator(catalog, threads=1, functions=functions) as mediator:
            yield here, mediator
    finally:
        here.go_on(*DATA)
        await runner.cleanup()


def _catalog(url: str, indexed: Mapping[str, str]) -> Catalog:
    relations = {}
    for name, columns in COLUMNS.items():
        mirrors = (Mirror(name, url),)
        method = AccessMethod("scan", "scan", mirrors, Plain(name))
        if name in indexed:
            method = AccessMethod("index", "index", mirrors, Plain(name), required=(indexed[name],))
        relations[name] = Relation(name, tuple(Field(c, pa.int64()) for c in columns), (method,))
    return Catalog(relations, {name: Source(name, allow_private=True) for name in COLUMNS})


@dataclass
class Heard:
    """What a query has told so far."""

    records: list[Record] = field(default_factory=list)

    @property
    def partial(self) -> dict[int, dict[str, object]]:
        """By id: the row, the aliases without one, and the columns that are not known."""
        found: dict[int, dict[str, object]] = {}
        for record in self.records:
            if isinstance(record, Partial):
                for id_, row in zip(record.ids, record.batch.to_pylist(), strict=True):
                    assert id_ not in found, "an id was given twice"
                    found[id_] = {**row, "missing": record.missing, "unknown": record.unknown}
        return found

    @property
    def rows(self) -> list[tuple[object, ...]]:
        return [
            tuple(row.values()) for r in self.records if isinstance(r, Rows) for row in r.batch.to_pylist()
        ]

    @property
    def completed(self) -> dict[int, list[dict[str, object]]]:
        """By id: the answers that complete it."""
        found: dict[int, list[dict[str, object]]] = {}
        for record in self.records:
            if isinstance(record, Rows):
                rows = record.batch.to_pylist()
                for at, ids in record.completes.items():
                    for id_ in ids:
                        found.setdefault(id_, []).append(rows[at])
        return found

    @property
    def withdrawn(self) -> dict[int, str]:
        return {i: r.why for r in self.records if isinstance(r, Withdrawn) for i in r.ids}


async def heard(answers: Answers, partials: int = -1, into: Heard | None = None) -> Heard:
    """What is told until so many partial answers have been given; to the end, where no number is given."""
    so_far = into or Heard()
    if 0 <= partials <= len(so_far.partial):
        return so_far
    async with asyncio.timeout(60):
        async for record in answers.records():
            so_far.records.append(record)
            if 0 <= partials <= len(so_far.partial):
                return so_far
    return so_far
