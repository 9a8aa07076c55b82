"""Requests and their answers: the one place of the client that does I/O."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from types import TracebackType
from typing import Any, Self

import aiohttp
import orjson
from yarl import URL

from api.client.errors import ClientError, Closed, CutOff, Problem, TimedOut, Unreachable, problem_of

# Below the time after which servers close a connection that nobody uses (uvicorn: 5 s), so that none is asked over
# one that is about to be closed.
_IDLE = 4.0
# A peer that has vanished is found out within about a minute, also where nothing is being said for long.
_KEEPALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}
_SHOWN = 500  # characters of an answer that is no problem document


class Wire:
    """Connections to one server. `timeout` is for how long a request's answer may be silent before it begins, and as a
    whole if it is no stream; `silence` for how long a stream may be."""

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        timeout: float | None = 60.0,
        silence: float | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._base = URL(url)
        if self._base.scheme not in {"http", "https"} or not self._base.host:
            raise ValueError(f"a server's address is such as http://127.0.0.1:8080, and not {url!r}")
        if self._base.user or self._base.password:
            raise ValueError("a key is given apart from the address, which is shown in messages")
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._timeout = timeout
        self._silence = silence
        self._tls = tls
        self._session: aiohttp.ClientSession | None = None
        self._closed = False

    @property
    def url(self) -> str:
        return str(self._base)

    async def __aenter__(self) -> Self:
        connector = aiohttp.TCPConnector(
            # Every stream that is being read has a connection of its own: with a limit the last would wait for ever.
            limit=0,
            keepalive_timeout=_IDLE,
            socket_factory=_socket,
            ssl=self._tls if self._tls is not None else True,
        )
        self._session = aiohttp.ClientSession(connector=connector, headers=self._headers)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closed = True
        if self._session is not None:
            await self._session.close()

    async def ask(
        self,
        method: str,
        path: str,
        *,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, str] | None = None,
    ) -> Any:
        """The JSON that the server answers; None for nothing. Raises `Problem` where it says no."""
        with self._telling():
            async with (
                asyncio.timeout(self._timeout),
                self._asked(method, path, body, query, "application/json") as reply,
            ):
                data = await reply.read()
        return orjson.loads(data) if data else None

    @asynccontextmanager
    async def stream(self, path: str, query: Mapping[str, str]) -> AsyncIterator[AsyncIterator[bytes]]:
        """What the server answers, as it comes. Raises `CutOff` where it breaks off."""
        with self._telling():
            async with self._asked("GET", path, None, query, None) as reply:
                yield self._pieces(reply)

    async def _pieces(self, reply: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
        with self._telling(cut=True):
            async for piece in reply.content.iter_any():
                yield piece

    @asynccontextmanager
    async def _asked(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None,
        query: Mapping[str, str] | None,
        accept: str | None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        headers = {"Accept": accept} if accept else {}
        data = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            data = json.dumps(body).encode()
        reply = await self._reply(method, path, headers, data, query)
        async with reply:
            if not 200 <= reply.status < 300:
                raise await _problem(reply)
            yield reply

    async def _reply(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        data: bytes | None,
        query: Mapping[str, str] | None,
    ) -> aiohttp.ClientResponse:
        """Its head."""
        if self._session is None or self._closed:
            raise Closed("the client is not open: `async with connect_async(url) as client` opens it")
        url = self._base.with_path(self._base.path.rstrip("/") + path, encoded=True).with_query(query)
        async with asyncio.timeout(self._timeout):
            return await self._session.request(
                method,
                url,
                headers=headers,
                data=data,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(
                    total=None, sock_connect=self._timeout, sock_read=self._silence
                ),
            )

    @contextmanager
    def _telling(self, *, cut: bool = False) -> Iterator[None]:
        """What goes wrong on the way, as errors of the client."""
        try:
            yield
        except ClientError:
            raise
        except TimeoutError as error:
            raise TimedOut(f"{self.url} did not answer in time") from error
        except (aiohttp.ClientError, OSError) as error:
            if self._closed:
                raise Closed("the client was closed") from error
            if cut or isinstance(error, aiohttp.ClientPayloadError | aiohttp.ServerDisconnectedError):
                raise CutOff(f"the connection to {self.url} broke off: {error}") from error
            raise Unreachable(f"{self.url} cannot be reached: {error}") from error


def _socket(address: tuple[Any, ...]) -> socket.socket:
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE.items():
        if hasattr(socket, name):  # not everywhere
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return made


async def _problem(reply: aiohttp.ClientResponse) -> Problem:
    data = await reply.read()
    try:
        document = orjson.loads(data)
    except orjson.JSONDecodeError:
        document = None
    if not isinstance(document, dict):
        said = data.decode(errors="replace").strip()[:_SHOWN]
        document = {"title": reply.reason or "", "detail": said}
    return problem_of(document, status=reply.status, retry_after=_seconds(reply.headers.get("Retry-After")))


def _seconds(said: str | None) -> float | None:
    try:
        return None if said is None else float(said)
    except ValueError:
        return None  # a date, which no server of ours sends
