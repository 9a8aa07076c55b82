"""Three relations in a circle, R(k, a, c), S(k, a, b) and T(k, b, c), over real HTTP in a process of their own."""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from fixtures import Behaviour, Fixed, Serving, Web
from fixtures.endpoint import Endpoint
from fixtures.forms import PagedScan
from mediator.access import HttpTransport
from mediator.catalog.model import Catalog, Mirror
from mediator.catalog.wrapper import Reply, Request
from sources import declared

COLUMNS = {"r": ("a", "c"), "s": ("a", "b"), "t": ("b", "c")}


@dataclass(frozen=True)
class Pace:
    """Times in seconds."""

    rows: int = 300
    page: int = 30
    values: int = 40  # different ones in each join column
    latency: float = 0.02  # of a page; one after another
    stall: float = 0.6  # before the stalled source answers anything

    @property
    def scan(self) -> float:
        return -(-self.rows // self.page) * self.latency


class Triangle:
    """The three sites, served until the block ends."""

    def __init__(self, pace: Pace) -> None:
        self.pace = pace

    def __enter__(self) -> Self:
        spawning = multiprocessing.get_context("spawn")
        self._line, theirs = spawning.Pipe()
        self._process = spawning.Process(target=_serve, args=(theirs, self.pace), daemon=True)
        self._process.start()
        self.catalog = catalog_at(self._line.recv())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._line.send("")
        self._process.join()

    def stall(self, name: str) -> None:
        """As if nothing had been asked yet, and this one will not answer at first."""
        self._line.send(name)
        self._line.recv()


class Noting:
    """A transport that notes when which page of which relation was there."""

    def __init__(self, transport: HttpTransport) -> None:
        self.came: dict[tuple[str, int], float] = {}
        self._transport = transport

    async def send(self, mirror: Mirror, request: Request) -> Reply:
        reply = await self._transport.send(mirror, request)
        page = int(dict(request.query).get("page", 1))
        self.came.setdefault((mirror.source, page), asyncio.get_running_loop().time())
        return reply


def catalog_at(url: str) -> Catalog:
    return declared(Path(__file__).with_suffix(".yaml"), {"triangle": url})


def tables(pace: Pace) -> Mapping[str, pa.RecordBatch]:
    random, found = Random(1), {}
    for name, columns in COLUMNS.items():
        drawn: dict[str, Any] = {
            c: [random.randrange(pace.values) for _ in range(pace.rows)] for c in columns
        }
        found[name] = pa.RecordBatch.from_pydict({"k": list(range(pace.rows)), **drawn})
    return found


def _serve(line: Connection, pace: Pace) -> None:
    held = tables(pace)
    endpoints = [Endpoint(name, f"/{name}/rows", _scan(rows, pace.page)) for name, rows in held.items()]
    web = Web(endpoints, {n: pa.Table.from_batches([b]) for n, b in held.items()}, catalog_at)
    with Serving(web):
        line.send(web.url)
        while stalled := line.recv():
            web.reset()
            for name in held:
                delay = pace.stall if name == stalled else 0.0
                web.behave(name, Behaviour(Fixed(pace.latency), initial_delay=delay, concurrency=1))
            line.send("done")


def _scan(rows: pa.RecordBatch, page: int) -> PagedScan:
    return PagedScan("rows", rows.num_rows, lambda a, b: rows.slice(a, b - a), page, (b'"k":', b'"new_k":'))
