"""The same lookups by `mediator.access` and by bare loops, and what they cost."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import aiohttp
import pyarrow as pa

from mediator.access import Access
from mediator.catalog.model import AccessMethod, Catalog, Field, Mirror, Relation, Source
from mediator.catalog.wrapper import Binding, Page, Reply, Request
from mediator.flow.events import Arrived, Ask, Event, Exhausted, Failed

_FIELDS = (Field("k", pa.int64()), Field("v", pa.string()))
_SCHEMA = pa.schema([(f.name, f.type) for f in _FIELDS])


class Lookup:
    """The wrapper of all corners."""

    empty_statuses: frozenset[int] = frozenset()

    def request(self, bind_set: tuple[str, ...], bindings: Sequence[Binding]) -> Request:
        return Request("/at", (("k", ",".join(str(b[0]) for b in bindings)),))

    def read(
        self, request: Request, bind_set: tuple[str, ...], bindings: Sequence[Binding], reply: Reply
    ) -> Page:
        keys, values = zip(*json.loads(reply.body)["rows"], strict=True)
        columns = [pa.array(c, f.type) for c, f in zip((keys, values), _FIELDS, strict=True)]
        return Page(pa.RecordBatch.from_arrays(columns, schema=_SCHEMA))


@dataclass
class Run:
    """Takes its own time, and the time that the processor spent in this process."""

    answered: int = 0
    failed: int = 0
    rows: int = 0
    seconds: float = 0.0
    cpu: float = 0.0
    waits: list[float] = field(default_factory=list)  # of each lookup, where they were timed

    def __enter__(self) -> Self:
        self._began = time.perf_counter(), time.process_time()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        began, cpu = self._began
        self.seconds, self.cpu = time.perf_counter() - began, time.process_time() - cpu

    def complete(self, lookups: int) -> Self:
        """Itself. Raises where a lookup failed, or a row came twice or not at all: then no figure counts."""
        if (self.answered, self.rows) != (lookups, lookups):
            raise RuntimeError(f"of {lookups} lookups {self.answered} were answered, with {self.rows} rows")
        return self


def catalog(url: str, *sources: Source, batch_size: int = 1) -> Catalog:
    """The relation r(k, v), looked up at the first corner in each source's name: mirrors, if there are several."""
    mirrors = tuple(Mirror(s.name, f"{url}/{s.name.partition('-')[0]}") for s in sources)
    index = AccessMethod("by_k", "index", mirrors, Lookup(), required=("k",), batch_size=batch_size)
    return Catalog({"r": Relation("r", _FIELDS, (index,))}, {s.name: s for s in sources})


async def all_at_once(declared: Catalog, keys: Sequence[int]) -> Run:
    """One ask for all keys."""
    async with Access(declared) as access:
        with Run() as run:
            await _asked(access, 1, keys, run)
    return run


async def one_by_one(declared: Catalog, keys: Sequence[int], walkers: int) -> Run:
    """So many askers, each of which waits for one answer before it asks for the next."""
    left, run = iter(keys), Run()

    async def walk(number: int) -> None:
        for key in left:
            began = time.perf_counter()
            await _asked(access, number, [key], run)
            run.waits.append(time.perf_counter() - began)

    async with Access(declared) as access:
        with run:
            await asyncio.gather(*(walk(n) for n in range(walkers)))
    return run


async def _asked(access: Access, number: int, keys: Sequence[int], run: Run) -> None:
    open_, over = len(keys), asyncio.Event()

    def hear(event: Event) -> None:
        nonlocal open_
        match event:
            case Arrived():
                run.rows += event.landing.rows.num_rows
                return
            case Exhausted():
                run.answered += len(event.bindings)
                open_ -= len(event.bindings)
            case Failed():
                run.failed += len(event.bindings)
                open_ -= len(event.bindings)
        if open_ == 0:
            over.set()

    visit = access.visit(hear)
    visit.ask(Ask(number, "r", "by_k", ("k",), tuple((k,) for k in keys)))
    await over.wait()
    visit.close()


async def bare(url: str, keys: Sequence[int], width: int, then: int | None = None, after: float = 0.0) -> Run:
    """A bare aiohttp loop, so many requests wide; `after` so many seconds only `then` wide, where that is given."""
    left, run = iter(keys), Run()

    async def work(until: float) -> None:
        while loop.time() < until and (key := next(left, None)) is not None:
            async with session.get(url, params={"k": str(key)}) as response:
                run.rows += len(json.loads(await response.read())["rows"])
            run.answered += 1

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        loop = asyncio.get_running_loop()
        stays = width if then is None else then
        ends = [float("inf")] * stays + [loop.time() + after] * (width - stays)
        with run:
            await asyncio.gather(*(work(end) for end in ends))
    return run
