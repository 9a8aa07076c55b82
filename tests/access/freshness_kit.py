"""A site over real HTTP whose rows and headers change, and a loop whose clock can be put forward."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from access_kit import catalog
from aiohttp import web

from mediator.catalog.model import Catalog, Source

T = TypeVar("T")


class ShiftedLoop(asyncio.SelectorEventLoop):
    """Real sockets, and a clock that jumps when it is told to."""

    def __init__(self) -> None:
        self.shift = 0.0
        super().__init__()

    def time(self) -> float:
        return super().time() + self.shift


def in_shifted_time(main: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=ShiftedLoop) as runner:
        return runner.run(main)


async def later(seconds: float) -> None:
    """So much time goes by at once. What was due meanwhile, such as the end of an idle connection, is done."""
    cast(ShiftedLoop, asyncio.get_running_loop()).shift += seconds
    await asyncio.sleep(0.001)


@dataclass(frozen=True)
class Said:
    """One request as the site saw it, and what it said."""

    path: str
    headers: Mapping[str, str]
    status: int
    size: int

    @property
    def conditional(self) -> bool:
        return "If-None-Match" in self.headers or "If-Modified-Since" in self.headers


@dataclass
class Changing:
    """`/scan` and `/at?k=1,2` over `rows`, which are sent with `headers`, and with a tag of their content if `tagged`.

    `overrides` answer instead of it, by path; the first that is there, once for each in the list.
    """

    rows: list[tuple[int, str]] = field(default_factory=lambda: [(1, "a"), (2, "b")])
    headers: dict[str, str] = field(default_factory=dict)
    tagged: bool = True
    honest: bool = True  # heeds conditions
    overrides: dict[str, list[web.Response]] = field(default_factory=dict)
    places: dict[str, Callable[[], tuple[object, str]]] = field(
        default_factory=dict
    )  # other documents, and their tags
    said: list[Said] = field(default_factory=list)
    base: str = ""
    delay: float = 0.0

    async def answer(self, request: web.Request) -> web.Response:
        await asyncio.sleep(self.delay)
        response = self._override(request) or self._page(request)
        size = len(response.body) if isinstance(response.body, bytes) else 0
        self.said.append(Said(request.path_qs, request.headers, response.status, size))
        return response

    @property
    def statuses(self) -> list[int]:
        return [said.status for said in self.said]

    @property
    def paths(self) -> list[str]:
        return [said.path for said in self.said]

    def catalog(self, **method: Any) -> Catalog:
        return catalog(Source("site", allow_private=True, attempts=2), base=self.base, **method)

    def _unchanged(self, request: web.Request) -> bool:
        asked = request.headers
        return asked.get("If-None-Match", "no") == self.headers.get("ETag") or "If-Modified-Since" in asked

    def _override(self, request: web.Request) -> web.Response | None:
        left = self.overrides.get(request.path)
        return left.pop(0) if left else None

    def _page(self, request: web.Request) -> web.Response:
        if request.path in self.places:
            document, tag = self.places[request.path]()
            if request.headers.get("If-None-Match") == tag:
                return web.Response(status=304, headers={"ETag": tag})
            return web.json_response(document, headers={"ETag": tag})
        wanted = [int(k) for k in request.query["k"].split(",")] if "k" in request.query else None
        rows = [row for row in self.rows if wanted is None or row[0] in wanted]
        body = json.dumps({"rows": rows}).encode()
        headers = dict(self.headers)
        if self.tagged:
            headers["ETag"] = f'W/"{hashlib.sha256(body).hexdigest()[:8]}"'
            if self.honest and request.headers.get("If-None-Match") == headers["ETag"]:
                return web.Response(status=304, headers=headers)
        elif self.honest and self._unchanged(request):
            return web.Response(status=304, headers=headers)
        return web.Response(body=body, headers=headers, content_type="application/json")


Handler = Callable[[web.Request], Coroutine[Any, Any, web.StreamResponse]]


@asynccontextmanager
async def listening(answer: Handler) -> AsyncIterator[str]:
    """Whatever answers, on a free port; its address."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    listener = web.TCPSite(runner, "127.0.0.1", 0)
    await listener.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def changing(**said: Any) -> AsyncIterator[Changing]:
    site = Changing(**said)
    async with listening(site.answer) as base:
        site.base = base
        yield site
