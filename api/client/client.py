"""A server, asked asynchronously: `async with connect_async(url) as client`."""

from __future__ import annotations

import asyncio
import ssl
import weakref
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack
from urllib.parse import parse_qsl, quote, urlsplit

from api.client.errors import ClientError
from api.client.options import Options, request
from api.client.parameters import Parameters
from api.client.query import AsyncQuery
from api.client.reading import Tries
from api.client.wire import Wire

T = TypeVar("T")

_PAGE = 500  # of the history, at most
_LEAVING = 5.0  # seconds, at most, in which what still runs is cancelled


def connect_async(
    url: str,
    key: str | None = None,
    *,
    timeout: float | None = 60.0,
    silence: float | None = None,
    tries: int = 5,
    tls: ssl.SSLContext | None = None,
) -> AsyncClient:
    """A client for the server at `url`, to be used with `async with`. Nothing is asked before that is needed.

    `timeout`: seconds that an answer may take, or, of a stream, its beginning. `silence`: seconds without a sign that a
    stream may be; None waits for as long as the connection holds. `tries`: how often a stream that breaks off is taken
    up again without anything new having come. `tls`: for https, if not as usual.
    """
    return AsyncClient(Wire(url, key, timeout=timeout, silence=silence, tls=tls), tries)


class AsyncClient:
    """Queries and what else there is at one server."""

    def __init__(self, wire: Wire, tries: int = 5) -> None:
        self.wire = wire
        self._tries = tries
        self._tasks = asyncio.TaskGroup()
        self._running: set[AsyncQuery] = set()  # that end with the client
        self._readers: weakref.WeakSet[AsyncGenerator[Any, None]] = weakref.WeakSet()

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        await self.wire.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """What this client started and nobody told to go on is cancelled."""
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(_LEAVING), asyncio.TaskGroup() as group:
                    for query in self._running:
                        group.create_task(_cancel(query))
            for reader in list(self._readers):
                # One that waits this very moment cannot be closed; it is told when the connection is.
                with suppress(RuntimeError):
                    await reader.aclose()
        finally:
            await self.wire.__aexit__(kind, error, trace)
            # Without the block's own error: a group would wrap it.
            await self._tasks.__aexit__(None, None, None)

    def __repr__(self) -> str:
        return f"<client of {self.wire.url}>"

    def query(
        self,
        sql: str,
        parameters: Parameters | None = None,
        *,
        whole: bool = False,
        **options: Unpack[Options],
    ) -> AsyncQuery:
        """A query, which starts when it is awaited or first asked for anything.

        `parameters`: a sequence for `?`, a mapping for `$name`. `whole`: an answer that is not complete is raised
        (`Incomplete`) and not handed over.
        """
        return AsyncQuery(self, ("/v1/queries", request(sql, parameters, options)), whole=whole)

    def attach(self, id: str, *, whole: bool = False) -> AsyncQuery:
        """A query that was started before, here or elsewhere, by its id."""
        return AsyncQuery(self, id, whole=whole)

    async def queries(
        self, status: str | None = None, limit: int | None = None
    ) -> AsyncGenerator[dict[str, Any], None]:
        """The status of your queries, the latest first; `limit` of them at most."""
        asked = {} if status is None else {"status": status}
        if limit is not None:
            asked["limit"] = str(min(limit, _PAGE))
        left = limit
        while True:
            page = await self.wire.ask("GET", "/v1/queries", query=asked)
            found = page["queries"] if left is None else page["queries"][:left]
            for document in found:
                yield document
            left = None if left is None else left - len(found)
            if not page.get("next") or not found or left == 0:
                return
            asked = dict(parse_qsl(urlsplit(page["next"]).query))

    async def explain(
        self, sql: str, parameters: Parameters | None = None, **options: Unpack[Options]
    ) -> dict[str, Any]:
        """How a query would be answered, and what it would cost. No source is asked."""
        return dict(await self.wire.ask("POST", "/v1/explain", body=request(sql, parameters, options)))

    async def relations(self) -> list[dict[str, Any]]:
        """The relations: fields, ways in, mirrors and their health."""
        return list((await self.wire.ask("GET", "/v1/relations"))["relations"])

    async def relation(self, name: str) -> dict[str, Any]:
        """One of them."""
        return dict(await self.wire.ask("GET", f"/v1/relations/{_quoted(name)}"))

    async def sources(self) -> list[dict[str, Any]]:
        """The sources: health, latency, limits, what is in flight."""
        return list((await self.wire.ask("GET", "/v1/sources"))["sources"])

    async def source(self, name: str) -> dict[str, Any]:
        """One of them."""
        return dict(await self.wire.ask("GET", f"/v1/sources/{_quoted(name)}"))

    async def cache(self) -> dict[str, Any]:
        """What is held of each relation, and for how long it may be relied on."""
        return dict(await self.wire.ask("GET", "/v1/cache"))

    async def saved(self) -> list[dict[str, Any]]:
        """The saved queries."""
        return list((await self.wire.ask("GET", "/v1/saved"))["saved"])

    async def saved_query(self, name: str) -> dict[str, Any]:
        """One of them."""
        return dict(await self.wire.ask("GET", f"/v1/saved/{_quoted(name)}"))

    async def save(
        self, name: str, sql: str, parameters: Parameters | None = None, **options: Unpack[Options]
    ) -> None:
        """Keep a query under a name."""
        await self.wire.ask("PUT", f"/v1/saved/{_quoted(name)}", body=request(sql, parameters, options))

    async def forget(self, name: str) -> None:
        """Forget a saved query."""
        await self.wire.ask("DELETE", f"/v1/saved/{_quoted(name)}")

    def run(
        self,
        name: str,
        parameters: Parameters | None = None,
        *,
        whole: bool = False,
        **options: Unpack[Options],
    ) -> AsyncQuery:
        """A saved query; what is said here takes the place of what was saved."""
        body = request(None, parameters, options)
        return AsyncQuery(self, (f"/v1/saved/{_quoted(name)}/queries", body), whole=whole)

    async def ready(self) -> None:
        """Returns if the server takes queries; raises why not."""
        await self.wire.ask("GET", "/readyz")

    def tries(self) -> Tries:
        """For one reading."""
        return Tries(self._tries)

    def starting(
        self, query: AsyncQuery, path: str, body: Mapping[str, Any]
    ) -> asyncio.Task[str | ClientError]:
        """Asks for the query, and gives its id or why there is none."""
        if body.get("on_disconnect") != "keep":
            self._running.add(query)
        # Said in any case: a stream that breaks off can be taken up again only then.
        return self._tasks.create_task(self._start(query, path, {"on_disconnect": "keep", **body}))

    def reading(self, reader: AsyncGenerator[T, None]) -> AsyncGenerator[T, None]:
        """The same, to be closed with the client if it is not read to its end."""
        self._readers.add(reader)
        return reader

    def over(self, query: AsyncQuery) -> None:
        """It has ended: nothing is left to be cancelled."""
        self._running.discard(query)

    async def _start(self, query: AsyncQuery, path: str, body: Mapping[str, Any]) -> str | ClientError:
        try:
            return str((await self.wire.ask("POST", path, body=body))["id"])
        except ClientError as error:
            self.over(query)
            return error


async def _cancel(query: AsyncQuery) -> None:
    with suppress(ClientError):
        await query.cancel()


def _quoted(name: str) -> str:
    return quote(name, safe="")
