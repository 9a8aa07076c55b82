"""The one place that opens connections."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from types import TracebackType
from typing import Protocol, Self

import aiohttp
from yarl import URL

from mediator.access.addresses import anywhere, public_only
from mediator.access.body import ACCEPTED, read_body
from mediator.catalog.model import Mirror, Source
from mediator.catalog.wrapper import Reply, Request
from mediator.errors import Refused, SourceError, TimedOut, Unreachable, Unreadable

LARGEST = 32 << 20
_REDIRECTS = 5
_CONNECT = 10.0
_HEADERS = {"Accept-Encoding": ACCEPTED, "User-Agent": "mediator/0.1 (federated query engine)"}


class Transport(Protocol):
    """Sends one request once. Any status is a reply; whatever prevents one raises a `SourceError`."""

    async def send(self, mirror: Mirror, request: Request) -> Reply: ...


class HttpTransport:
    """HTTP through aiohttp: one session for public sources, one for those that may be private."""

    def __init__(self, sources: Mapping[str, Source], largest: int = LARGEST) -> None:
        self._sources = sources
        self._largest = largest
        self._sessions: dict[bool, aiohttp.ClientSession] = {}

    async def __aenter__(self) -> Self:
        self._sessions = {private: _session(private) for private in (False, True)}
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for session in self._sessions.values():
            await session.close()

    async def send(self, mirror: Mirror, request: Request) -> Reply:
        session = self._sessions[self._sources[mirror.source].allow_private]
        try:
            url = address(mirror, request)
            return await self._exchange(session, url, request)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise understood(error) from error

    async def _exchange(self, session: aiohttp.ClientSession, url: URL, request: Request) -> Reply:
        async with session.request(
            request.method, url, headers=request.headers, data=request.body, max_redirects=_REDIRECTS
        ) as response:
            headers = {name.lower(): value for name, value in response.headers.items()}
            if (response.content_length or 0) > self._largest:
                raise Unreadable(f"the reply is larger than {self._largest:,} bytes")
            body = await read_body(response.content, headers.get("content-encoding", ""), self._largest)
            return Reply(response.status, headers, body)


def address(mirror: Mirror, request: Request) -> URL:
    """Where the request goes. A link may lead away from the mirror's base, but not to another host.

    Raises `Refused` where it does: what the request carries is meant for this site alone.
    """
    url = URL(request.url(mirror.base))
    if url.host != URL(mirror.base).host:
        raise Refused(f"{mirror.base} leads to another host: {url}")
    return url.extend_query(request.query) if request.query else url


def understood(error: Exception) -> SourceError:
    """What an exception of the HTTP library means to the engine."""
    match error:
        case aiohttp.ClientConnectorCertificateError():
            return Refused(f"its certificate is not valid: {error}")
        case OSError(errno=errno.EACCES):
            return Refused(error.strerror or str(error))
        case TimeoutError():
            return TimedOut("no connection in time", again=True)
        case aiohttp.InvalidURL() | aiohttp.NonHttpUrlClientError():
            return Refused(f"not an address that can be asked: {error}")
        case aiohttp.TooManyRedirects():
            return Refused(f"more than {_REDIRECTS} redirects")
        case aiohttp.ClientPayloadError():
            return Unreachable("the reply was cut off", again=True)
        case aiohttp.ClientResponseError():
            return Unreadable(f"not HTTP: {error.message}", again=True)
        case aiohttp.ClientConnectionError() | OSError():
            return Unreachable(str(error) or type(error).__name__, again=True)
        case _:
            return Refused(f"cannot be asked: {error}")


def _session(private: bool) -> aiohttp.ClientSession:
    """No limit of connections (gates keep it), no cookies (what one query did is no other's business)."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, socket_factory=anywhere if private else public_only),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        headers=_HEADERS,
    )
