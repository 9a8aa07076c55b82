"""What the tests of logging in share: a site that lets in who shows the right thing, an endpoint that gives tokens."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any
from urllib.parse import parse_qsl, quote, quote_plus, unquote_plus

from access_kit import catalog
from aiohttp import web

from mediator.catalog.login import Login
from mediator.catalog.model import Catalog, Source

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Shown = Callable[[web.Request], str]


def in_header(name: str) -> Shown:
    return lambda request: request.headers.get(name, "")


def in_query(name: str) -> Shown:
    return lambda request: request.query.get(name, "")


def packed(user: str, password: str) -> str:
    return "Basic " + b64encode(f"{user}:{password}".encode()).decode()


def spellings(secret: str) -> Iterator[str]:
    """Every way in which the tests look for a secret in what somebody may see."""
    yield secret
    yield from (quote(secret), quote(secret, safe=""), quote_plus(secret), secret.encode().hex())
    for before in ("", "a", "aa"):
        whole = b64encode((before + secret).encode()).decode()
        yield whole[4 if before else 0 : -4]


@asynccontextmanager
async def serving(handler: Handler) -> AsyncIterator[str]:
    """The address of a server on a free port."""

    async def answer(request: web.Request) -> web.StreamResponse:
        return await handler(request)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@dataclass
class Guarded:
    """Answers `Plain`'s lookups to who shows one of `lets_in`; to all others it says no, and what they have shown."""

    shown: Shown
    lets_in: set[str]
    says_no: int = 401
    seen: list[str] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        said = self.shown(request)
        self.seen.append(said)
        self.paths.append(request.path)
        if said not in self.lets_in:
            text = f"no entry with {said!r} at {request.path_qs}"
            return web.Response(status=self.says_no, text=text, headers={"X-Said": quote(said)})
        if request.path == "/scan":
            return web.json_response({"rows": [[1, "v1"]]})
        keys = request.query["k"].split(",")
        return web.json_response({"rows": [[int(k), f"v{k}"] for k in keys]})


@dataclass
class Endpoint:
    """Gives a new token to each that asks with the right id and secret."""

    client: tuple[str, str] = ("me", "s3cret/of+me")
    expires_in: Any = 3600
    asked: list[dict[str, str]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    given: list[str] = field(default_factory=list)
    first: list[web.Response] = field(default_factory=list)  # said before any token is given
    wait: asyncio.Event | None = None
    was_asked: asyncio.Event = field(default_factory=asyncio.Event)
    _numbers: Iterator[int] = field(default_factory=count)

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        parameters = dict(parse_qsl(await request.text()))
        self.asked.append(parameters)
        self.headers.append(dict(request.headers))
        self.was_asked.set()
        if self.wait is not None:
            await self.wait.wait()
        if self.first:
            return self.first.pop(0)
        login = request.headers.get("Authorization", "")
        came = (parameters.get("client_id", ""), parameters.get("client_secret", ""))
        expected = packed(quote_plus(self.client[0]), quote_plus(self.client[1]))
        if came != self.client and login != expected:
            echoed = {"error": "invalid_client", "error_description": f"{login} {unquote_plus(str(came))}"}
            return web.json_response(echoed, status=401)
        self.given.append(f"token-{next(self._numbers)}-of-many")
        said = {"access_token": self.given[-1], "token_type": "Bearer", "expires_in": self.expires_in}
        return web.json_response({k: v for k, v in said.items() if v is not None})


def with_login(base: str, login: Login, **source: Any) -> Catalog:
    """`access_kit`'s relation at one source that has to log in."""
    options = {"allow_private": True, **source}
    return catalog(Source("site", login=login, **options), base=base)
