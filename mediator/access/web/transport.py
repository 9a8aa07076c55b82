"""The one place that opens connections to web sites.

Every connection is made here, straight to the site: proxies and logins that the environment names (`http_proxy`,
`.netrc`) are not used, because through a proxy nobody could tell which address is reached in the end.
"""

from __future__ import annotations

import asyncio
import errno
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Protocol, Self, runtime_checkable

import aiohttp
from aiohttp.abc import AbstractResolver
from aiohttp.http_exceptions import BadHttpMessage, LineTooLong
from yarl import URL

from mediator.access.web.addresses import anywhere, public_only
from mediator.access.web.body import ACCEPTED, read_body, too_large, unpacked
from mediator.access.web.bounds import Bounds
from mediator.access.web.connection import connection
from mediator.access.web.credential import NOTHING, Credential
from mediator.access.web.login import Logins
from mediator.access.web.quoting import plain, shown
from mediator.access.web.redaction import Redaction
from mediator.access.web.redirects import ADVICE, Hop, Trail, origin, with_login_of
from mediator.access.web.robots_text import ROBOTS_TXT
from mediator.access.web.stretches import Stretches
from mediator.catalog.model import Mirror, Source
from mediator.catalog.wrapper import Reply, Request
from mediator.clock import Clock
from mediator.errors import Refused, SourceError, TimedOut, Unreachable, Unreadable

_CONNECT = 10.0
_HEADERS = {"Accept-Encoding": ACCEPTED, "User-Agent": "mediator/0.1 (federated query engine)"}
_SCHEMES = ("http", "https")
_QUERY = re.compile(r"[\w.~!$&'()*+,/:;=?@\[\]%-]*+", re.ASCII)
_OK = 200
_MEND = "the site sends too much before its answer, and has to be mended"
_TOO_MANY = "Too many headers received"  # as aiohttp says it

# Called before a request goes on to another address. Raises the `SourceError` for which it may not.
Follow = Callable[[Mirror, Request, URL], Awaitable[None]]

# Whether a reply of this status, with these places to go to, leads on.
LeadsOn = Callable[[int, Sequence[str]], bool]


class Transport(Protocol):
    """Sends one request once. Any status is a reply; whatever prevents one raises a `SourceError`."""

    async def send(self, mirror: Mirror, request: Request) -> Reply: ...


@runtime_checkable
class Streams(Protocol):
    """A transport that can give on a long reply as it comes."""

    async def stream(self, mirror: Mirror, request: Request, stretches: Stretches) -> Reply:
        """Gives the whole stretches of the reply; the rest of it, which may be all of it, is returned."""
        ...


class HttpTransport:
    """HTTP through aiohttp: one session for public sources, one for those that may be private."""

    def __init__(
        self,
        sources: Mapping[str, Source],
        bounds: Bounds | None = None,
        *,
        resolver: AbstractResolver | None = None,
        follow: Follow | None = None,
        redaction: Redaction | None = None,
        token_asked: Callable[[str], None] = lambda source: None,
        clock: Clock | None = None,
    ) -> None:
        self._clock = clock  # by which tokens end; the loop's where none is given
        self.redaction = redaction or Redaction()  # of all that is read to log in
        self._token_asked = token_asked
        self._sources = sources
        self._bounds = bounds or Bounds()
        self._resolver = resolver
        self._may_follow = follow
        self._sessions: dict[bool, aiohttp.ClientSession] = {}

    async def __aenter__(self) -> Self:
        self._sessions = {private: self._session(private) for private in (False, True)}
        clock = self._clock or asyncio.get_running_loop().time
        self._logins = Logins(self.redaction, clock, self._ask_for_token)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for session in self._sessions.values():
            await session.close()

    async def send(self, mirror: Mirror, request: Request) -> Reply:
        """Raises `Outdated` for a 401 where the source's login has changed meanwhile."""
        return await self._answered(mirror, request, None)

    async def stream(self, mirror: Mirror, request: Request, stretches: Stretches) -> Reply:
        return await self._answered(mirror, request, stretches)

    async def _answered(self, mirror: Mirror, request: Request, stretches: Stretches | None) -> Reply:
        try:
            return await self._sent(mirror, request, stretches)
        except SourceError as error:
            failure = error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            failure = understood(error, self._bounds)
        # From outside of the handlers: what the library raised quotes the whole request, and would go along.
        raise self.redaction.cleaned(failure)

    async def _sent(self, mirror: Mirror, request: Request, stretches: Stretches | None) -> Reply:
        source = self._sources[mirror.source]
        first = Hop(address(mirror, request), request.method, request.headers, request.body)
        trail = Trail(first, self._bounds.redirects)
        self.redaction.add(first.url.password or "")
        # Anybody may read a robots.txt, and it may be that of another place, to which a page led.
        credential = NOTHING if request == ROBOTS_TXT else await self._logins.credential(source, first.url)
        while True:
            # Once the trail has left its origin, not even a hop that comes back is trusted with it.
            shows = credential if trail.at_home else NOTHING
            session = self._sessions[source.allow_private]
            body = partial(self._body, source, stretches)
            reply = await self._exchange(session, trail.hop, shows, trail.follow, body)
            if reply is not None:
                self._logins.check(source, shows, reply.status)
                led = trail.hop is not first and trail.at_home
                return replace(reply, address=trail.hop.url.raw_path_qs) if led else reply
            if not trail.at_home and self.redaction.holds(str(trail.hop.url)):
                raise Refused(
                    f"it would take a secret along to another place, {shown(trail.hop.url)}: {ADVICE}"
                )
            if self._may_follow is not None:
                await self._may_follow(mirror, request, trail.hop.url)

    async def _ask_for_token(self, source: Source, hop: Hop) -> Reply:
        """A request of the source's login: guarded, bound and counted as any other. It is not led elsewhere."""
        self._token_asked(source.name)
        session = self._sessions[source.allow_private]
        try:
            body = partial(self._body, source, None)
            reply = await self._exchange(session, hop, NOTHING, lambda status, locations: False, body)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            failure = understood(error, self._bounds)
        else:
            assert reply is not None
            return reply
        raise failure

    async def _exchange(
        self,
        session: aiohttp.ClientSession,
        hop: Hop,
        credential: Credential,
        leads_on: LeadsOn,
        body: Callable[[aiohttp.ClientResponse, Mapping[str, str]], Awaitable[bytes]],
    ) -> Reply | None:
        """The reply to a hop, or none where it leads on to another one."""
        async with session.request(
            hop.method,
            credential.url_of(hop),
            headers=credential.headers_of(hop),
            data=hop.body,
            allow_redirects=False,
        ) as response:
            self._check_headers(response)
            if leads_on(response.status, response.headers.getall("Location", ())):
                response.close()  # its body is of no use, and might not end
                return None
            headers = _merged(response)
            return Reply(response.status, headers, await body(response, headers))

    async def _body(
        self,
        source: Source,
        stretches: Stretches | None,
        response: aiohttp.ClientResponse,
        headers: Mapping[str, str],
    ) -> bytes:
        """All of it, or what is left when its stretches have been given."""
        cutter = stretches.cutter(headers) if stretches is not None and response.status == _OK else None
        most = source.largest_reply or self._bounds.body
        encoding = headers.get("content-encoding", "")
        if stretches is None or cutter is None:
            if (response.content_length or 0) > most:
                raise too_large(most)
            return await read_body(response.content, encoding, most, self._bounds.ratio)
        long = source.largest_reply or self._bounds.long_body
        chunks = unpacked(response.content, encoding, long, self._bounds.ratio)
        return await stretches.rest(response.status, headers, chunks, cutter, most)

    def _check_headers(self, response: aiohttp.ClientResponse) -> None:
        """Each header by itself, and how many there are, is checked while they are being read."""
        size = sum(len(name) + len(value) for name, value in response.raw_headers)
        if size > self._bounds.header_bytes:
            raise Unreadable(f"its headers are larger than {self._bounds.header_bytes:,} bytes: {_MEND}")

    def _session(self, private: bool) -> aiohttp.ClientSession:
        """No limit of connections (gates keep it), no cookies (what one query did is no other's business)."""
        connector = aiohttp.TCPConnector(
            limit=0, socket_factory=anywhere if private else public_only, resolver=self._resolver
        )
        connector._factory = partial(connection, loop=asyncio.get_running_loop())
        session = aiohttp.ClientSession(
            connector=connector,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            headers=_HEADERS,
            trust_env=False,
            max_line_size=self._bounds.header_line,
            max_field_size=self._bounds.header_line,
            max_headers=self._bounds.headers,
        )
        # aiohttp would ask once more by itself when a connection is lost, beyond all counts and budgets.
        session._retry_connection = False
        return session


def address(mirror: Mirror, request: Request) -> URL:
    """Where the request goes. A link may lead away from the mirror's base, but not to another host.

    Raises `Refused` where it does: what the request carries is meant for this site alone.
    """
    base = URL(mirror.base)
    url = _parsed(request.url(mirror.base))
    if base.scheme not in _SCHEMES:
        raise Refused(f"{shown(base)} is not an address that can be asked: give a base with http or https")
    if origin(url) != origin(base):
        other = "host" if url.host != base.host else "port or scheme"
        raise Refused(
            f"{shown(base)} leads to another {other}: {shown(url)}; if it is to be asked, declare it as a base"
        )
    url = with_login_of(url, base)
    return url.extend_query(request.query) if request.query else url


def _parsed(address: str) -> URL:
    """A query that can be sent stays as it is written: only the site knows what it means by it."""
    place, written, query = address.partition("?")
    if written and _QUERY.fullmatch(query):
        return URL(f"{URL(place)}?{query}", encoded=True)
    return URL(address)


def understood(error: Exception, bounds: Bounds) -> SourceError:
    """What an exception of the HTTP library means to the engine."""
    match error:
        case aiohttp.ClientConnectorCertificateError():
            return Refused(f"its certificate is not valid: {plain(str(error))}")
        case OSError(errno=errno.EACCES):
            return Refused(error.strerror or plain(str(error)))
        case TimeoutError():
            return TimedOut("no connection in time", again=True)
        case aiohttp.InvalidURL() | aiohttp.NonHttpUrlClientError():
            return Refused(
                "not an address that can be asked: look at the base and the path in the declaration"
            )
        case aiohttp.ClientPayloadError() | aiohttp.ClientResponseError():
            return _garbled(error, bounds)
        case aiohttp.ClientConnectionError() | OSError():
            return Unreachable(plain(str(error)) or type(error).__name__, again=True)
        case _:
            return Refused(f"cannot be asked: {plain(str(error))}")


def _garbled(error: aiohttp.ClientPayloadError | aiohttp.ClientResponseError, bounds: Bounds) -> SourceError:
    """A reply that was cut off, breaks a bound, or is not HTTP."""
    causes = list(_causes(error))
    if any(isinstance(cause, LineTooLong) for cause in causes):
        return Unreadable(f"one of its header lines is longer than {bounds.header_line:,} bytes: {_MEND}")
    if any(isinstance(cause, BadHttpMessage) and cause.message == _TOO_MANY for cause in causes):
        return Unreadable(f"it has more than {bounds.headers:,} headers: {_MEND}")
    if isinstance(error, aiohttp.ClientResponseError):
        return Unreadable(f"not HTTP: {plain(_what(error.message))}", again=True)
    return Unreachable("the reply was cut off", again=True)


def _what(message: str) -> str:
    """What the library says over several lines, without the bytes that it shows, which are the site's, and the mark
    below them."""
    lines = [line.strip() for line in message.splitlines()]
    return " ".join(line for line in lines if line.strip("^") and line[:2] not in ("b'", 'b"')).rstrip(": ")


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause = error.__cause__
    while cause is not None:
        yield cause
        cause = cause.__cause__


def _merged(response: aiohttp.ClientResponse) -> dict[str, str]:
    """Headers by their names in small letters; one that is sent several times is a list, as RFC 9110 has it."""
    merged: dict[str, dict[str, None]] = {}
    for name, value in response.headers.items():
        merged.setdefault(name.lower(), {})[value] = None
    return {name: ", ".join(values) for name, values in merged.items()}
