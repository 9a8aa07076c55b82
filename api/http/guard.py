"""The outermost layer of the server: who may come in, by which name, with how much; and what every answer carries.

It leaves in `scope["state"]` what the layers inside need: `request_id`, `key` (None on a path that needs none), and
`abort`, which breaks the connection off without an end, so that nobody takes what was sent for whole. Bodies go
through in both directions as they come.

A server without keys believes whoever reaches it, and a web page can reach loopback through the browser it is shown
in. Two things keep pages out: a page of another origin says so in `Origin`, and a page whose name was made to point
here (DNS rebinding) has that name in `Host`.
"""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from ipaddress import ip_address
from typing import Any

import orjson
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.cells import harmless
from api.exits import Mistake
from api.http import reference
from api.http.keys import Key, Keyring
from api.http.problems import MEDIA_TYPE, Problem

NEEDS_NO_KEY = frozenset({"/healthz", "/readyz"})
NOTHING = "default-src 'none'; frame-ancestors 'none'"

_MOST_BODY = 1 << 20
# uvicorn holds back unfinished headers of more than 16 KiB, but not those that arrive in one piece.
_MOST_URL = 8 << 10
_MOST_HEADERS = 16 << 10
_LINGER = 1.0  # seconds in which a client may see why it is sent away, while it is still sending

_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})  # methods that change nothing
_PLAIN_ID = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)
_HOST = re.compile(r"(?:\[(?P<v6>[0-9a-f:.]+)\]|(?P<name>[a-z0-9_.-]+?)\.?)(?::\d{0,5})?", re.ASCII)
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^\s/?#@*,]+", re.ASCII)

_ALWAYS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
_PREFLIGHT = (
    (b"access-control-allow-methods", b"GET, HEAD, POST, PUT, PATCH, DELETE"),
    (b"access-control-allow-headers", b"Accept, Authorization, Content-Type, Last-Event-ID, X-Request-Id"),
    (b"access-control-max-age", b"600"),
)

_log = logging.getLogger(__name__)

Header = tuple[bytes, bytes]


class Guard:
    """`hosts` are names of this server beside those of loopback; None where it may be called by any name.

    `origins` are those whose pages may ask; `pages` the policies of paths that show a page. `answered` is told of each
    response the pattern of its route, None where it came to none, and its status.
    """

    def __init__(
        self,
        app: ASGIApp,
        keyring: Keyring,
        *,
        hosts: Iterable[str] | None = (),
        origins: Iterable[str] = (),
        most_body: int = _MOST_BODY,
        needs_no_key: frozenset[str] = NEEDS_NO_KEY,
        pages: Mapping[str, str] | None = None,
        answered: Callable[[str | None, int], None] | None = None,
    ) -> None:
        self.app = app
        self.keyring = keyring
        self.hosts = None if hosts is None else frozenset(map(_configured_host, hosts))
        self.origins = frozenset(map(_configured_origin, origins))
        self.most_body = most_body
        self.needs_no_key = needs_no_key
        self.pages = {"/docs": reference.POLICY} if pages is None else pages
        self.answered = answered

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        match scope["type"]:
            case "lifespan":
                await self.app(scope, receive, send)
            case "http":
                await _Exchange(self, scope, receive, send).run()
            case _:
                await send({"type": "websocket.close", "code": 1008})

    def check(self, scope: Scope, headers: _Headers) -> None:
        """Raises a `Problem` for what is too long, or meant for another server."""
        _check_length(scope, headers)
        self._check_host(scope, headers)
        self._check_body(headers)

    def admit(self, scope: Scope, headers: _Headers) -> Key | None:
        """Whose request it is. Raises a `Problem` for one that may not be made."""
        self._check_origin(scope, headers)
        if self.keyring.everybody is not None:
            return self.keyring.everybody
        return None if scope["path"] in self.needs_no_key else self._key(headers)

    def allowed(self, origin: str | None) -> bool:
        """Whether pages of that origin may ask."""
        return origin is not None and origin.lower() in self.origins

    def too_large(self) -> Problem:
        return Problem(
            413,
            "too-large",
            f"The body has more than {self.most_body:,} bytes",
            hint=f"send at most {self.most_body:,} bytes: shorten the statement, or ask in several queries",
        )

    def _check_host(self, scope: Scope, headers: _Headers) -> None:
        if not _path_alone(scope):
            raise Problem(
                421, "misdirected", "This is no proxy", hint="send the path alone, and the name in Host"
            )
        if self.hosts is None:
            return
        name = _host(headers.only(b"host") or "")
        if name is None or not (_loopback(name) or name in self.hosts):
            raise Problem(
                421,
                "misdirected",
                "This server does not go by the name that Host says",
                hint="ask localhost, or have the name allowed where the server is started",
            )

    def _check_origin(self, scope: Scope, headers: _Headers) -> None:
        """Without keys, what a page of another origin sends must not change anything."""
        if self.keyring.everybody is None or scope["method"] in _SAFE or not headers.all(b"origin"):
            return
        origin = headers.only(b"origin")
        if self.allowed(origin) or _same(origin, headers.only(b"host")):
            return
        raise Problem(
            403,
            "forbidden",
            "A page of another origin may not change anything here",
            hint="have its origin allowed where the server is started",
        )

    def _check_body(self, headers: _Headers) -> None:
        said = headers.only(b"content-length") or ""
        if said.isdigit() and (len(said) > 15 or int(said) > self.most_body):
            raise self.too_large()

    def _key(self, headers: _Headers) -> Key:
        said = headers.only(b"authorization") or ""
        kind, _, token = said.partition(" ")
        if kind.lower() != "bearer" or not token.strip():
            raise _unauthorized("This server is asked with a key", "Bearer")
        key = self.keyring.find(token.strip())
        if key is None:
            raise _unauthorized("The key is not known, or has expired", 'Bearer error="invalid_token"')
        return key


async def left_to_the_guard(_request: object, error: Exception) -> Any:
    """For `app.add_exception_handler(Exception, ...)`: else Starlette answers before the guard can."""
    raise error


class _Exchange:
    """One request and its response."""

    def __init__(self, guard: Guard, scope: Scope, receive: Receive, send: Send) -> None:
        self._guard, self._scope, self._receive, self._send = guard, scope, receive, send
        self._headers = _Headers(scope["headers"])
        self._id = _request_id(self._headers.only(b"x-request-id"))
        self._cut = _cut(send)
        self._read = 0  # bytes of the body
        self._read_all = False
        self._overflow: Problem | None = None
        self._started = self._ended = False
        self._answered = False  # by the guard, whatever else is sent
        self._aborted = False

    async def run(self) -> None:
        state = self._scope.setdefault("state", {})
        state.update(request_id=self._id, key=None, abort=self.abort if self._cut is not None else None)
        try:
            self._guard.check(self._scope, self._headers)
            if self._is_preflight():
                await self._preflight()
            else:
                state["key"] = self._guard.admit(self._scope, self._headers)
                await self._guard.app(self._scope, self.receive, self.send)
        except ClientDisconnect:
            return
        except Exception as error:
            if not self._aborted:
                await self._failed(error)
        if self._aborted:
            await self._gone()

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self._read += len(message.get("body", b""))
            self._read_all = not message.get("more_body", False)
            if self._read > self._guard.most_body:
                self._overflow = self._guard.too_large()
                raise self._overflow
        return message

    async def send(self, message: Message) -> None:
        if self._answered:
            return
        if message["type"] == "http.response.start":
            if self._overflow is not None:
                # Whatever the layers inside made of it: they did not see all of the request.
                await self._answer(self._overflow)
                return
            await self._start(message["status"], list(message.get("headers", ())))
            return
        if message["type"] == "http.response.body":
            self._ended = not message.get("more_body", False)
        await self._send(message)

    async def _start(self, status: int, headers: list[Header]) -> None:
        self._started = True
        if self._guard.answered is not None:
            self._guard.answered(getattr(self._scope.get("route"), "path", None), status)
        headers = self._with_ours(headers)
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

    def abort(self) -> None:
        """Breaks the connection off."""
        if self._cut is not None:
            self._aborted = True
            self._cut()

    async def _failed(self, error: Exception) -> None:
        """Something was raised: a refusal, or a fault of ours."""
        if self._answered:
            return
        if self._started:
            self._log(error)
            if not self._ended:
                # The client must not take for whole what it has.
                self.abort()
                if not self._aborted:
                    raise error
        elif self._overflow is not None:
            await self._answer(self._overflow)
        elif isinstance(error, Problem):
            await self._answer(error)
        else:
            self._log(error)
            await self._answer(_internal(self._id))

    def _log(self, error: Exception) -> None:
        method, path = self._scope["method"], harmless(self._scope["path"])
        _log.error("request %s, %s %s, failed", self._id, method, path, exc_info=error)

    async def _gone(self) -> None:
        """To return before the server has noticed that the connection is no more would be an error to it."""
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def _answer(self, problem: Problem) -> None:
        self._answered = self._ended = True
        body = orjson.dumps(problem.document())
        headers = [
            (b"content-type", MEDIA_TYPE.encode()),
            (b"content-length", b"%d" % len(body)),
            *((name.lower().encode(), value.encode()) for name, value in problem.headers.items()),
        ]
        more = self._more_than_may_come()
        if more:
            headers.append((b"connection", b"close"))
        await self._start(problem.status, headers)
        await self._send({"type": "http.response.body", "body": body, "more_body": more})
        if more:
            await self._linger()
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    def _more_than_may_come(self) -> bool:
        """Whether the rest of the body is not worth reading for the sake of the next request."""
        if self._read_all:
            return False
        said = self._headers.only(b"content-length") or ""
        known = said.isdigit() and len(said) <= 15 and int(said) <= self._guard.most_body
        return not known and bool(said or self._headers.all(b"transfer-encoding"))

    async def _linger(self) -> None:
        """Reads on for a moment, into nothing: to close at once would reset the connection, and the client might
        never see the answer."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_LINGER):
                while (await self._receive()).get("more_body", False):
                    pass

    def _is_preflight(self) -> bool:
        asked = self._headers.all(b"access-control-request-method") and self._headers.all(b"origin")
        return self._scope["method"] == "OPTIONS" and bool(asked)

    async def _preflight(self) -> None:
        """A browser asks whether a page may ask."""
        if not self._guard.allowed(self._headers.only(b"origin")):
            raise Problem(
                403,
                "forbidden",
                "Pages of this origin may not ask here",
                hint="have the origin allowed where the server is started",
            )
        await self._start(204, list(_PREFLIGHT))
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    def _with_ours(self, headers: list[Header]) -> list[Header]:
        """The headers of a response, and those that all responses have."""
        headers = [(name, value) for name, value in headers if name.lower() != b"x-request-id"]
        present = {name.lower() for name, _ in headers}
        headers += [header for header in _ALWAYS if header[0] not in present]
        headers.append((b"x-request-id", self._id.encode()))
        if b"content-security-policy" not in present:
            policy = self._guard.pages.get(self._scope["path"], NOTHING)
            headers.append((b"content-security-policy", policy.encode()))
        if b"cache-control" not in present:
            headers.append((b"cache-control", b"no-store"))
        if self._guard.origins:
            headers += self._for_pages()
        return headers

    def _for_pages(self) -> Iterator[Header]:
        """Credentials are never allowed: a key is given by the page itself, or not at all."""
        yield b"vary", b"Origin"
        origin = self._headers.only(b"origin")
        if origin is not None and self._guard.allowed(origin):
            yield b"access-control-allow-origin", origin.encode("latin-1")
            yield b"access-control-expose-headers", b"Location, Retry-After, X-Request-Id"


class _Headers:
    """A request's."""

    def __init__(self, headers: Iterable[Header]) -> None:
        self._headers = [(name.lower(), value) for name, value in headers]

    def all(self, name: bytes) -> list[str]:
        return [value.decode("latin-1") for n, value in self._headers if n == name]

    def only(self, name: bytes) -> str | None:
        """The one of that name; of several, none can be believed."""
        found = self.all(name)
        return found[0].strip() if len(found) == 1 else None

    def size(self) -> int:
        return sum(len(name) + len(value) for name, value in self._headers)


def _check_length(scope: Scope, headers: _Headers) -> None:
    if len(scope.get("raw_path") or b"") + len(scope["query_string"]) > _MOST_URL:
        raise Problem(
            414,
            "too-large",
            f"The address has more than {_MOST_URL:,} bytes",
            hint="say it in the body of a POST",
        )
    if headers.size() > _MOST_HEADERS:
        raise Problem(
            431,
            "too-large",
            f"The headers have more than {_MOST_HEADERS:,} bytes",
            hint=f"send at most {_MOST_HEADERS:,} bytes of headers",
        )


def _path_alone(scope: Scope) -> bool:
    """Whether the request names a path. One that names a server there too, as for a proxy, has two names of it."""
    path = (scope.get("raw_path") or scope["path"].encode()).removeprefix(scope.get("root_path", "").encode())
    return path.startswith(b"/") or path in (b"*", b"")


def _host(text: str) -> str | None:
    """The name in a Host header, in one spelling, without the port; None where it is no such header."""
    found = _HOST.fullmatch(text.strip().lower())
    if found is None:
        return None
    with suppress(ValueError):
        return str(ip_address(found["v6"] or found["name"]))
    return None if found["v6"] else found["name"]


def _loopback(name: str) -> bool:
    with suppress(ValueError):
        return ip_address(name).is_loopback
    return name == "localhost"


def _same(origin: str | None, host: str | None) -> bool:
    """Whether a page came from this server, as its origin and the request's Host tell."""
    return origin is not None and host is not None and origin.lower().partition("://")[2] == host.lower()


def _configured_host(text: str) -> str:
    with suppress(ValueError):
        return str(ip_address(text.strip()))
    name = _host(text)
    if name is None:
        raise Mistake(
            f"{text}: is no name of a server: write it as mediator.example.org, without * or a scheme"
        )
    return name


def _configured_origin(text: str) -> str:
    origin = text.strip().lower().removesuffix("/")
    if not _ORIGIN.fullmatch(origin):
        raise Mistake(f"{text}: is no origin of pages: write it as https://example.org, without * or a path")
    return origin


def _request_id(said: str | None) -> str:
    """The client's, if it can do no harm in a log."""
    return said if said is not None and _PLAIN_ID.fullmatch(said) else secrets.token_hex(8)


def _cut(send: Send) -> Callable[[], None] | None:
    """What ends the connection at once. uvicorn's `send` belongs to what knows the transport; others' need not."""
    transport = getattr(getattr(send, "__self__", None), "transport", None)
    abort = getattr(transport, "abort", None)
    return abort if callable(abort) else None


def _unauthorized(detail: str, challenge: str) -> Problem:
    return Problem(
        401,
        "unauthorized",
        detail,
        hint="give one as `Authorization: Bearer KEY`; `mediator keys add` makes them",
        headers={"WWW-Authenticate": challenge},
    )


def _internal(request: str) -> Problem:
    return Problem(
        500,
        "internal",
        "The server failed, through no fault of the request",
        hint="whoever runs the server finds what happened in its log, under this request",
        request=request,
    )
