"""A site of long replies, and stretches that are short."""

from __future__ import annotations

import asyncio
import csv
import io
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
from aiohttp import web

from mediator.access.web.stretches import Landed
from mediator.answering import answering
from mediator.catalog.model import Catalog, Field
from mediator.flow.events import Ask
from mediator.output.report import Report
from sources import load

STRETCH = 1_000  # bytes, in these tests
FIELDS = (Field("k", pa.int64()), Field("v", pa.string()))
DECLARED = """\
sources:
  site: {{base: "{base}", allow_private: true{source}}}
relations:
  r:
    fields: {{k: int64, v: string}}
    methods:
      all: {{mirrors: [site], request: {{path: /all}}, reply: {{kind: {kind}}}{method}}}
{more}"""
INDEXED = """\
      by_k:
        mirrors: [site]
        required: [k]
        request: {path: /at, query: {k: "{k}"}}
        reply: {kind: csv}
"""
ALL = Ask(1, "r", "all", (), ((),))
Headers = dict[str, str]
Send = Callable[[web.StreamResponse], Awaitable[None]]
_SITE = web.AppKey("_SITE", "Site")


def line(k: int) -> str:
    return f'{k},"value, and\nits ""number"" {k}"\n'


def text(rows: int) -> str:
    return "k,v\n" + "".join(map(line, range(rows)))


def document(rows: int, place: str) -> Any:
    """The same in JSON, with other things beside the list and in it."""
    records: Any = [{"k": k, "v": f'[{{"{k}', "more": [{"k": -1}, {}]} for k in range(rows)]
    for name in reversed(place.split("/")[1:]):
        records = {"before": {name: [{"k": -1}]}, name: records, "after": [{"k": -1}]}
    return records


def expected(rows: int) -> list[tuple[int, str]]:
    return [(int(k), v) for k, v in list(csv.reader(io.StringIO(text(rows))))[1:]]


@dataclass
class Site:
    """Answers `/all` as it is told, one way after another, the last for ever."""

    answers: list[Send]
    headers: list[Headers]
    base: str = ""
    requests: list[str] = field(default_factory=list)
    asked: list[dict[str, str]] = field(default_factory=list)  # the headers of each request
    left: asyncio.Event = field(default_factory=asyncio.Event)  # somebody has not heard us out
    landed: asyncio.Event = field(default_factory=asyncio.Event)  # somebody has read a stretch of ours

    async def all(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(request.path)
        self.asked.append(dict(request.headers))
        headers = self.headers[min(len(self.requests), len(self.headers)) - 1]
        if headers.get("ETag", "") == request.headers.get("If-None-Match"):
            return web.Response(status=304, headers=headers)
        response = web.StreamResponse(headers=headers)
        await response.prepare(request)
        try:
            await self.answers[min(len(self.requests), len(self.answers)) - 1](response)
        except (ConnectionError, asyncio.CancelledError):
            self.left.set()
            raise
        await response.write_eof()
        return response

    async def at(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(request.path)
        return web.Response(text=f"k,v\n{request.query['k']},looked up\n")


@asynccontextmanager
async def serving(*answers: Send, headers: Headers | list[Headers] | None = None) -> AsyncIterator[Site]:
    site = Site(list(answers), headers if isinstance(headers, list) else [headers or {}])
    app = web.Application()
    app[_SITE] = site
    app.router.add_get("/all", site.all)
    app.router.add_get("/at", site.at)
    runner = web.AppRunner(app, handler_cancellation=True)
    await runner.setup()
    tcp = web.TCPSite(runner, "127.0.0.1", 0)
    await tcp.start()
    assert tcp._server is not None
    site.base = f"http://127.0.0.1:{tcp._server.sockets[0].getsockname()[1]}"  # type: ignore[attr-defined]
    try:
        with _landing(site.landed):
            yield site
    finally:
        await runner.cleanup()


@contextmanager
def _landing(told: asyncio.Event) -> Iterator[None]:
    become = Landed.become

    def becoming(landed: Landed, later: Landed, rows: int) -> None:
        become(landed, later, rows)
        told.set()

    with mock.patch.object(Landed, "become", becoming):
        yield


def says(body: str | bytes, cut_after: int | None = None) -> Send:
    """All of this, in writes of an odd size; or the beginning, and then the connection is gone.

    Not before a stretch was read: what has come and was not read yet is lost with its connection.
    """
    data = body.encode() if isinstance(body, str) else body

    async def send(response: web.StreamResponse) -> None:
        for start in range(0, cut_after or len(data), 701):
            await response.write(data[start : min(start + 701, cut_after or len(data))])
        if cut_after is not None:
            assert response._req is not None
            assert response._req.transport is not None
            await response._req.app[_SITE].landed.wait()
            response._req.transport.close()

    return send


async def endless(response: web.StreamResponse) -> None:
    await response.write(b"k,v\n")
    for start in count(0, 1_000):
        await response.write("".join(map(line, range(start, start + 1_000))).encode())


def declared(site: Site, folder: Path, **said: str) -> Catalog:
    said = {"kind": "csv", "source": "", "method": "", "more": ""} | said
    path = folder / "site.yaml"
    path.write_text(DECLARED.format(base=site.base, **said))
    return load(path)


async def answer(sql: str, catalog: Catalog) -> tuple[list[tuple[Any, ...]], Report]:
    async with answering(sql, catalog) as answers:
        rows = [tuple(row.values()) async for batch in answers for row in batch.to_pylist()]
    return rows, answers.report
