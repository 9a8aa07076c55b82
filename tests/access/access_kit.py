"""What the tests of access share: a wrapper of a few lines, a catalog of one relation, a scripted network."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from mediator.access import Access, Visit
from mediator.catalog.model import AccessMethod, Catalog, Field, Mirror, Relation, Source
from mediator.catalog.wrapper import Binding, Page, Reply, Request
from mediator.errors import Unreadable
from mediator.flow.events import Arrived, Ask, Event, Exhausted, Failed, Landing

FIELDS = (Field("k", pa.int64()), Field("v", pa.string()))
SCHEMA = pa.schema([(f.name, f.type) for f in FIELDS])


@dataclass
class Plain:
    """Asks `/scan` or `/at?k=1,2`; reads `{"rows": [[k, v], ...], "then": [path, ...]}`."""

    empty_statuses: frozenset[int] = frozenset()

    def request(self, bind_set: tuple[str, ...], bindings: Sequence[Binding]) -> Request:
        if not bind_set:
            return Request("/scan")
        return Request("/at", (("k", ",".join(str(b[0]) for b in bindings)),))

    def read(
        self, request: Request, bind_set: tuple[str, ...], bindings: Sequence[Binding], reply: Reply
    ) -> Page:
        if reply.status in self.empty_statuses:
            return Page(table([]))
        try:
            said = json.loads(reply.body)
        except ValueError as error:
            raise Unreadable(f"not JSON: {error}") from error
        return Page(table(said["rows"]), tuple(Request(path) for path in said.get("then", ())))


def table(rows: Sequence[Sequence[object]]) -> pa.RecordBatch:
    columns = list(zip(*rows, strict=True)) or [(), ()]
    return pa.RecordBatch.from_arrays(
        [pa.array(c, f.type) for c, f in zip(columns, FIELDS, strict=True)], schema=SCHEMA
    )


def page(
    rows: Sequence[Sequence[object]], then: Sequence[str] = (), status: int = 200, **headers: str
) -> Reply:
    body = json.dumps({"rows": rows, "then": list(then)}).encode()
    return Reply(status, {k.replace("_", "-"): v for k, v in headers.items()}, body)


def status(code: int, **headers: str) -> Reply:
    return Reply(code, {k.replace("_", "-"): v for k, v in headers.items()}, b"no")


def asked_for(request: Request) -> list[int]:
    """The bindings that a lookup of `Plain` carries."""
    return [int(k) for k in dict(request.query)["k"].split(",")]


def rows_for(request: Request) -> Reply:
    """What an honest site answers to a lookup."""
    return page([[k, f"v{k}"] for k in asked_for(request)])


def catalog(
    *sources: Source, base: str = "http://site.test", wrapper: Any = None, batch_size: int = 1, **method: Any
) -> Catalog:
    """The relation `r(k, v)` with a scan and an index on k, at all of these sources."""
    sources = sources or (Source("site"),)
    mirrors = tuple(Mirror(s.name, base) for s in sources)
    wrapper = wrapper or Plain()
    scan = AccessMethod("scan", "scan", mirrors, wrapper, **method)
    index = AccessMethod("by_k", "index", mirrors, wrapper, required=("k",), batch_size=batch_size, **method)
    return Catalog({"r": Relation("r", FIELDS, (scan, index))}, {s.name: s for s in sources})


def scan(number: int = 1, urgency: float = 0.0) -> Ask:
    return Ask(number, "r", "scan", (), ((),), urgency)


def lookups(*keys: int, number: int = 1, urgency: float = 0.0) -> Ask:
    return Ask(number, "r", "by_k", ("k",), tuple((k,) for k in keys), urgency)


Answer = Callable[[Mirror, Request], Awaitable[Reply]]


@dataclass
class Scripted:
    """A network without sockets. `answer` is a coroutine function that may sleep and raise."""

    answer: Answer
    sent: list[tuple[float, str, Request]] = field(default_factory=list)
    inside: Counter[str] = field(default_factory=Counter)
    peak: Counter[str] = field(default_factory=Counter)
    abandoned: int = 0

    async def send(self, mirror: Mirror, request: Request) -> Reply:
        source = mirror.source
        self.sent.append((asyncio.get_running_loop().time(), source, request))
        self.inside[source] += 1
        self.peak[source] = max(self.peak[source], self.inside[source])
        try:
            return await self.answer(mirror, request)
        except asyncio.CancelledError:
            self.abandoned += 1
            raise
        finally:
            self.inside[source] -= 1

    @property
    def times(self) -> list[float]:
        return [at for at, _, _ in self.sent]

    @property
    def sources(self) -> list[str]:
        return [source for _, source, _ in self.sent]


def steady(seconds: float = 0.0, answer: Callable[[Request], Reply] = rows_for) -> Scripted:
    """Every request takes as long, and is answered honestly."""

    async def reply(mirror: Mirror, request: Request) -> Reply:
        await asyncio.sleep(seconds)
        return answer(request)

    return Scripted(reply)


def in_turn(*replies: Reply | Exception, seconds: float = 0.0) -> Scripted:
    """One reply after another, whatever is asked; the last one for ever."""
    left = list(replies)

    async def reply(mirror: Mirror, request: Request) -> Reply:
        came = left.pop(0) if len(left) > 1 else left[0]
        await asyncio.sleep(seconds)
        if isinstance(came, Exception):
            raise came
        return came

    return Scripted(reply)


class Listener:
    """What one query hears. Can be waited on."""

    def __init__(self) -> None:
        self.events: list[tuple[float, Event]] = []
        self._heard = asyncio.Event()

    def __call__(self, event: Event) -> None:
        self.events.append((asyncio.get_running_loop().time(), event))
        self._heard.set()

    async def until(self, true: Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            while not true():
                self._heard.clear()
                await self._heard.wait()

    async def ends(self, count: int = 1) -> None:
        """Waits until so many bindings have ended."""
        await self.until(lambda: len(self.exhausted) + len(self.failed) >= count)

    @property
    def landings(self) -> list[Landing]:
        return [e.landing for _, e in self.events if isinstance(e, Arrived)]

    @property
    def rows(self) -> list[tuple[int, str]]:
        return [(row["k"], row["v"]) for landing in self.landings for row in landing.rows.to_pylist()]

    @property
    def keys(self) -> list[int]:
        return sorted(k for k, _ in self.rows)

    @property
    def exhausted(self) -> list[Binding]:
        return [b for _, e in self.events if isinstance(e, Exhausted) for b in e.bindings]

    @property
    def failed(self) -> dict[Binding, str]:
        """The cause of each binding that failed, as `kind: message`."""
        failures = [e for _, e in self.events if isinstance(e, Failed)]
        return {b: f"{e.cause.kind}: {e.cause.message}" for e in failures for b in e.bindings}

    @property
    def cause(self) -> str:
        (cause,) = set(self.failed.values())
        return cause


async def answered(access: Access, *asks: Ask) -> Listener:
    """What one visit hears until all of its asks have ended."""
    listener = Listener()
    visit = access.visit(listener)
    for ask in asks:
        visit.ask(ask)
    await listener.ends(sum(len(ask.bindings) for ask in asks))
    visit.close()
    return listener


def visited(access: Access) -> tuple[Visit, Listener]:
    listener = Listener()
    return access.visit(listener), listener
