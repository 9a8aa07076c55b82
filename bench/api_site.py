"""The scripted source behind the server that the API's bench measures, and the catalog that declares it.

It speaks no more of HTTP than it must, so that it takes little of the machine: a lookup is answered after the time that
stands in its address, or never; pages of the large relation lie ready. It notes when each lookup came, and when one
was abandoned before its answer.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from time import monotonic
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pyarrow as pa

from bench.lookups import Lookup
from mediator.catalog.model import AccessMethod, Catalog, Field, Mirror, Relation, Source
from mediator.catalog.wrapper import Binding, Page, Reply, Request

PAGE = 65_536  # rows of the large relation in one reply
AT_ONCE = 1_000  # requests that every source bears: more than there ever are
_NEVER = "never"

SCHEMA = pa.schema([("k", pa.int64()), ("price", pa.float64()), ("title", pa.string())])


def large(rows: int) -> pa.Table:
    """What the large relation has; no two titles are equal."""
    keys = np.arange(rows)
    titles = np.char.add("The title of book ", keys.astype(str))
    return pa.table([keys, keys % 100_000 / 100, pa.array(titles.tolist(), pa.string())], schema=SCHEMA)


@dataclass(frozen=True)
class ArrowPages:
    """The wrapper of the large relation: replies are Arrow, so that reading them is no great part of anything."""

    count: int
    empty_statuses: frozenset[int] = frozenset()

    def request(self, bind_set: tuple[str, ...], bindings: Sequence[Binding]) -> Request:
        return Request("/0")

    def read(
        self, request: Request, bind_set: tuple[str, ...], bindings: Sequence[Binding], reply: Reply
    ) -> Page:
        following = int(request.path[1:]) + 1
        then = (Request(f"/{following}"),) if following < self.count else ()
        return Page(pa.ipc.open_stream(reply.body).read_next_batch(), then)


def catalog(url: str, latencies: dict[str, float], rows: int) -> Catalog:
    """A relation r(k, v) by each name that is looked up with such a latency; `held`, whose lookups are never answered;
    and `large`."""
    places = {name: f"after/{seconds}" for name, seconds in latencies.items()} | {"held": _NEVER}
    relations, sources = {}, {}
    for name, place in places.items():
        index = AccessMethod("by_k", "index", (Mirror(name, f"{url}/{place}"),), Lookup(), required=("k",))
        relations[name] = Relation(name, (Field("k", pa.int64()), Field("v", pa.string())), (index,))
    pages = ArrowPages(-(-rows // PAGE))
    scan = AccessMethod("scan", "scan", (Mirror("large", f"{url}/pages"),), pages)
    relations["large"] = Relation("large", tuple(Field(f.name, f.type) for f in SCHEMA), (scan,))
    for name in relations:
        sources[name] = Source(name, concurrency=AT_ONCE, deadline=300.0, allow_private=True)
    return Catalog(relations, sources)


@dataclass
class Book:
    """What was noted since the last look; seconds of the clock that all processes of a machine share."""

    requests: int = 0
    came: dict[int, float] = field(default_factory=dict)
    left: dict[int, float] = field(default_factory=dict)


def serve(line: Connection, rows: int) -> None:
    """Says its address, then its book whenever it is asked for it."""
    asyncio.run(_serving(line, _pages(rows)))


async def _serving(line: Connection, pages: list[bytes]) -> None:
    loop = asyncio.get_running_loop()
    book = Book()
    server = await loop.create_server(lambda: _Conversation(book, pages), "127.0.0.1", 0, backlog=1024)
    line.send(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    while True:
        (what,) = await loop.run_in_executor(None, line.recv)
        line.send(book)
        if what == "anew":
            book.__init__()  # type: ignore[misc]


def _pages(rows: int) -> list[bytes]:
    made = []
    for batch in large(rows).combine_chunks().to_batches(max_chunksize=PAGE):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, SCHEMA) as writer:
            writer.write_batch(batch)
        made.append(sink.getvalue().to_pybytes())
    return made


class _Conversation(asyncio.Protocol):
    """One connection, on which requests come one after another."""

    def __init__(self, book: Book, pages: list[bytes]) -> None:
        self._book, self._pages = book, pages
        self._buffer = b""
        self._timer: asyncio.TimerHandle | None = None
        self._asked: int | None = None  # and not answered yet

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while b"\r\n\r\n" in self._buffer:
            head, _, self._buffer = self._buffer.partition(b"\r\n\r\n")
            self._answer(head.split(b" ", 2)[1].decode())

    def connection_lost(self, error: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._asked is not None:
            self._book.left[self._asked] = monotonic()

    def _answer(self, address: str) -> None:
        self._book.requests += 1
        parts = urlsplit(address)
        place = parts.path.split("/")
        if place[1] == "pages":
            self._reply(self._pages[int(place[2])])
            return
        key = self._asked = int(parse_qs(parts.query)["k"][0])
        self._book.came[key] = monotonic()
        if place[1] != _NEVER:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(float(place[2]), self._reply, _row(key))

    def _reply(self, body: bytes) -> None:
        self._asked = None
        self._transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))


def _row(key: int) -> bytes:
    return json.dumps({"rows": [[key, f"v{key}"]]}).encode()
