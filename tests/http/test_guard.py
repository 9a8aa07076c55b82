"""The guard in front of a tiny application, in a real server on loopback, asked through bare sockets."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from fastapi import APIRouter, FastAPI, Request
from starlette.types import Receive, Scope, Send

from api.exits import Mistake
from api.http.guard import Guard, left_to_the_guard
from api.http.keys import Keyring, add
from api.http.problems import Problem

PATIENCE = 30.0
MOST = 1000


@dataclass
class Reply:
    status: int
    headers: dict[str, list[str]]
    body: bytes

    def one(self, name: str) -> str:
        (value,) = self.headers[name]
        return value

    @property
    def problem(self) -> dict[str, Any]:
        assert self.one("content-type") == "application/problem+json"
        found = json.loads(self.body)
        assert found["status"] == self.status
        assert isinstance(found, dict)
        return found


class Inner:
    """Does what the path says, and notes what it was given."""

    def __init__(self) -> None:
        self.states: list[dict[str, Any]] = []
        self.chunks: list[int] = []
        self.calls = 0
        self.go_on = asyncio.Event()
        self.has_read = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.calls += 1
        self.states.append(dict(scope["state"]))
        await getattr(self, scope["path"].strip("/").replace("/", "_") or "hello", self.hello)(
            scope, receive, send
        )

    async def hello(self, scope: Scope, receive: Receive, send: Send) -> None:
        await _say(send, b"hello")

    async def echo(self, scope: Scope, receive: Receive, send: Send) -> None:
        await _say(send, await self._body(receive))

    async def swallow(self, scope: Scope, receive: Receive, send: Send) -> None:
        """As FastAPI does with what goes wrong while a body is read."""
        try:
            await self._body(receive)
        except Exception:
            await _say(send, b"bad body", 400)

    async def stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"first", "more_body": True})
        await self.go_on.wait()
        await send({"type": "http.response.body", "body": b"last", "more_body": False})

    async def own(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(b"Cache-Control", b"max-age=60"), (b"X-Request-Id", b"mine"), (b"Vary", b"Accept")]
        await _say(send, b"", headers=headers)

    async def problem(self, scope: Scope, receive: Receive, send: Send) -> None:
        raise Problem(404, "not-found", "No such thing", headers={"Retry-After": "5"})

    async def problem_later(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._body(receive)
        raise Problem(404, "not-found", "No such thing")

    async def broken(self, scope: Scope, receive: Receive, send: Send) -> None:
        raise RuntimeError("the secret is 42")

    async def broken_late(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"some", "more_body": True})
        raise RuntimeError("the secret is 42")

    async def cut(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"some", "more_body": True})
        await self.go_on.wait()
        scope["state"]["abort"]()

    async def _body(self, receive: Receive) -> bytes:
        body = bytearray()
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ConnectionError("left")
            self.chunks.append(len(message["body"]))
            self.has_read.set()
            body += message["body"]
            if not message["more_body"]:
                return bytes(body)


async def _say(
    send: Send, body: bytes, status: int = 200, headers: list[tuple[bytes, bytes]] | None = None
) -> None:
    headers = [*(headers or ()), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class Server:
    def __init__(self, port: int) -> None:
        self.port = port
        self._writers: list[asyncio.StreamWriter] = []

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection, which is closed with the server at the latest."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        self._writers.append(writer)
        return reader, writer

    async def leave(self) -> None:
        """Close every connection."""
        for writer in self._writers:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def raw(self, request: bytes) -> Reply:
        """What comes back, up to the end of the connection."""
        reader, writer = await self.connect()
        writer.write(request)
        reply = await read_reply(reader)
        writer.close()
        return reply

    async def ask(self, path: str = "/", method: str = "GET", body: str = "", **headers: str) -> Reply:
        lines = {"host": f"localhost:{self.port}", **{k.replace("_", "-"): v for k, v in headers.items()}}
        if body:
            lines.setdefault("content-length", str(len(body)))
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        return await self.raw(f"{method} {path} HTTP/1.1\r\n{head}\r\n{body}".encode("latin-1"))


async def read_reply(reader: asyncio.StreamReader) -> Reply:
    async with asyncio.timeout(PATIENCE):
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.strip().split("\r\n")
        headers: dict[str, list[str]] = {}
        for line in lines:
            name, _, value = line.partition(":")
            headers.setdefault(name.lower(), []).append(value.strip())
        length = headers.get("content-length")
        body = await reader.readexactly(int(length[0])) if length else b""
        return Reply(int(first.split()[1]), headers, body)


class Uvicorn(uvicorn.Server):
    """Leaves signals alone, and says when it listens."""

    def __init__(self, guard: Any) -> None:
        super().__init__(uvicorn.Config(guard, http="h11", lifespan="off", log_config=None, ws="none"))
        self.listens = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listens.set()


@asynccontextmanager
async def serving(guard: Any) -> AsyncIterator[Server]:
    server = Uvicorn(guard)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(server._serve([listening]))
            async with asyncio.timeout(PATIENCE):
                await server.listens.wait()
            made = Server(listening.getsockname()[1])
            try:
                yield made
            finally:
                await made.leave()
                server.should_exit = server.force_exit = True


@asynccontextmanager
async def guarded(keyring: Keyring | None = None, **options: Any) -> AsyncIterator[tuple[Server, Inner]]:
    inner = Inner()
    guard = Guard(inner, keyring or Keyring.open_to_all(), most_body=MOST, **options)
    async with serving(guard) as server:
        yield server, inner


# What every answer carries


async def test_every_answer_has_the_headers_that_keep_pages_out() -> None:
    async with guarded() as (server, _):
        for path in ("/", "/problem", "/broken"):
            reply = await server.ask(path)
            assert reply.one("content-security-policy") == "default-src 'none'; frame-ancestors 'none'"
            assert reply.one("x-content-type-options") == "nosniff"
            assert reply.one("referrer-policy") == "no-referrer"
            assert reply.one("cross-origin-resource-policy") == "same-origin"
            assert reply.one("cache-control") == "no-store"
            assert "access-control-allow-origin" not in reply.headers
            assert "vary" not in reply.headers
        docs = await server.ask("/docs")
        assert "style-src 'sha256-" in docs.one("content-security-policy")
        assert "unsafe" not in docs.one("content-security-policy")
        assert "http" not in docs.one("content-security-policy")
        assert "frame-ancestors 'none'" in docs.one("content-security-policy")


async def test_what_the_application_says_itself_stands() -> None:
    async with guarded(origins=["https://app.example"]) as (server, _):
        reply = await server.ask("/own")
        assert reply.one("cache-control") == "max-age=60"
        assert reply.one("x-request-id") != "mine"
        assert reply.headers["vary"] == ["Accept", "Origin"]


async def test_requests_have_ids_and_a_clients_own_if_it_is_harmless() -> None:
    async with guarded() as (server, inner):
        ids = [(await server.ask()).one("x-request-id") for _ in range(3)]
        assert len(set(ids)) == 3
        assert [state["request_id"] for state in inner.states] == ids
        assert (await server.ask(x_request_id="Trace-1.a_b")).one("x-request-id") == "Trace-1.a_b"
        for bad in ("x" * 65, "a b", "a;b", "\xe9", ""):
            assert (await server.ask(x_request_id=bad)).one("x-request-id") not in (bad, *ids)


# By which name


@pytest.mark.parametrize(
    "host",
    [
        *(
            "localhost",
            "localhost:80",
            "LOCALHOST",
            "localhost.",
            "LocalHost.:8080",
            "127.0.0.1",
            "127.0.0.1:1",
        ),
        *(
            "127.9.9.9",
            "[::1]",
            "[::1]:8080",
            "[0:0:0:0:0:0:0:1]",
            "mediator.example",
            "Mediator.Example.:443",
        ),
    ],
)
async def test_names_of_this_server(host: str) -> None:
    async with guarded(hosts=["mediator.example."]) as (server, _):
        assert (await server.ask(host=host)).status == 200


@pytest.mark.parametrize(
    "host",
    [
        *(
            "evil.example",
            "localhost.evil.example",
            "evil.example:80",
            "localhost:80@evil.example",
            "10.0.0.1",
        ),
        *(
            "localhost..",
            "[::2]",
            "[::ffff:127.0.0.1]",
            "::1",
            "[localhost]",
            "127.1",
            "0x7f000001",
            "0.0.0.0",
        ),
        *("", " ", "localhost:port", "localhost:123456", "localhost,evil.example", "127.0.0.1.nip.io", "*"),
        *("sub.mediator.example", "mediator.example/", "lo calhost"),
    ],
)
async def test_other_names(host: str) -> None:
    async with guarded(hosts=["mediator.example"]) as (server, inner):
        reply = await server.ask(host=host)
        assert reply.status == 421
        assert reply.problem["type"].endswith("/misdirected")
        assert inner.calls == 0


async def test_a_request_without_a_host_or_with_two() -> None:
    async with guarded() as (server, inner):
        assert (await server.raw(b"GET / HTTP/1.0\r\n\r\n")).status == 421
        two = b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n"
        assert (await server.raw(two)).status == 400  # by uvicorn itself
        assert inner.calls == 0


async def test_two_hosts_where_the_server_lets_them_through() -> None:
    inner = Inner()
    guard = Guard(inner, Keyring.open_to_all())
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        raise AssertionError("nobody has to read")

    hosts = [(b"host", b"localhost"), (b"host", b"evil.example")]
    scope = {
        "type": "http",
        "method": "GET",
        "path": "/",
        "raw_path": b"/",
        "query_string": b"",
        "headers": hosts,
    }
    await guard(scope, receive, send)
    assert sent[0]["status"] == 421
    assert inner.calls == 0


async def test_a_request_in_the_form_for_proxies() -> None:
    async with guarded() as (server, inner):
        for target in ("http://evil.example/", "http://localhost/", "//evil.example/"):
            reply = await server.ask(target)
            assert reply.status == (200 if target.startswith("//") else 421)
        assert inner.calls == 1  # two slashes are a path


async def test_any_name_where_names_do_not_matter() -> None:
    async with guarded(hosts=None) as (server, _):
        assert (await server.ask(host="whatever.example")).status == 200
        assert (await server.ask("http://whatever.example/")).status == 421


@pytest.mark.parametrize("host", ["*", "*.example", "https://a.example", "a b", "", "a/b"])
def test_names_that_cannot_be_configured(host: str) -> None:
    with pytest.raises(Mistake, match="is no name of a server"):
        Guard(Inner(), Keyring.open_to_all(), hosts=[host])


# With how much


async def test_a_body_that_is_announced_as_too_large_is_not_read() -> None:
    async with guarded() as (server, inner):
        for length in (str(MOST + 1), "9" * 18):
            reply = await server.ask("/echo", "POST", content_length=length)
            assert reply.status == 413
            assert f"{MOST:,} bytes" in reply.problem["hint"]
            assert reply.one("connection") == "close"
        assert inner.calls == 0


async def test_a_client_that_sends_all_before_it_reads_sees_why_it_is_sent_away() -> None:
    body = b"x" * 10_000_000  # more than lies in the buffers between

    def ask(port: int) -> bytes:
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as client:
            head = f"POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
            client.sendall(head.encode() + body)
            return client.recv(100)

    async with guarded() as (server, inner):
        assert (await asyncio.to_thread(ask, server.port)).startswith(b"HTTP/1.1 413 ")
        assert inner.calls == 0


async def test_a_client_that_asks_first_need_not_send_its_body() -> None:
    async with guarded() as (server, inner):
        reader, writer = await server.connect()
        head = "POST /echo HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: {}\r\n\r\n"
        writer.write(head.format(5).encode())
        async with asyncio.timeout(PATIENCE):
            assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(b"hello")
        assert (await read_reply(reader)).body == b"hello"
        writer.write(head.format(MOST + 1).encode())
        assert (await read_reply(reader)).status == 413
        assert inner.calls == 1


@pytest.mark.parametrize("path", ["/echo", "/swallow"])
async def test_a_body_that_turns_out_to_be_too_large(path: str) -> None:
    """Chunks, without a length in advance; the application may take the error for one of its own."""
    chunk = b"%x\r\n%s\r\n" % (600, b"x" * 600)
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    async with guarded() as (server, inner):
        reader, writer = await server.connect()
        writer.write(head + chunk)
        async with asyncio.timeout(PATIENCE):
            await inner.has_read.wait()
        writer.write(chunk)  # and no end
        reply = await read_reply(reader)
        assert reply.status == 413
        assert reply.problem["type"].endswith("/too-large")
        assert reply.one("connection") == "close"
        assert inner.chunks == [600]


async def test_a_body_in_pieces_goes_through_as_it_comes() -> None:
    async with guarded() as (server, inner):
        reader, writer = await server.connect()
        writer.write(b"POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nhello")
        async with asyncio.timeout(PATIENCE):
            await inner.has_read.wait()
        assert inner.chunks == [5]
        writer.write(b"world")
        assert (await read_reply(reader)).body == b"helloworld"
        # The connection goes on, also after a refusal.
        writer.write(b"POST /echo HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 5\r\n\r\nhello")
        assert (await read_reply(reader)).status == 421
        writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert (await read_reply(reader)).status == 200


async def test_a_body_of_the_largest_size() -> None:
    async with guarded() as (server, _):
        assert (await server.ask("/echo", "POST", "x" * MOST)).body == b"x" * MOST


async def test_a_body_that_is_shorter_than_it_says_is_no_error_of_ours(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with guarded() as (server, inner):
        _, writer = await server.connect()
        writer.write(b"POST /swallow HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nhello")
        async with asyncio.timeout(PATIENCE):
            await inner.has_read.wait()
            writer.close()
            await writer.wait_closed()
        assert (await server.ask()).status == 200
    assert not [r for r in caplog.records if r.levelno >= logging.ERROR]


async def test_what_comes_after_the_length_is_another_request() -> None:
    async with guarded() as (server, _):
        reader, writer = await server.connect()
        first = b"POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello"
        writer.write(first + b"GET /problem HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert (await read_reply(reader)).body == b"hello"
        assert (await read_reply(reader)).status == 404


async def test_addresses_and_headers_have_limits() -> None:
    async with guarded() as (server, inner):
        reply = await server.ask("/?" + "x" * 9000)
        assert reply.status == 414
        assert reply.problem["type"].endswith("/too-large")
        reply = await server.ask(x_long="x" * 17_000)
        assert (reply.status, reply.problem["type"][-9:]) == (431, "too-large")
        assert inner.calls == 0


# Who


async def test_without_a_key_nothing_is_open_but_the_health(tmp_path: Path) -> None:
    add(tmp_path / "keys.yaml", "alice", frozenset({"read"}))
    async with guarded(Keyring.load(tmp_path / "keys.yaml"), hosts=None) as (server, inner):
        for path in ("/", "/docs", "/metrics", "/healthz/", "/healthz/x", "//healthz", "/HEALTHZ"):
            reply = await server.ask(path)
            assert reply.status == 401
            assert reply.one("www-authenticate") == "Bearer"
        assert inner.calls == 0
        for path in ("/healthz", "/readyz"):
            assert (await server.ask(path)).status == 200
        assert [state["key"] for state in inner.states] == [None, None]


async def test_a_key_opens_and_is_told_to_the_application(tmp_path: Path) -> None:
    token = add(tmp_path / "keys.yaml", "alice", frozenset({"read"}))
    async with guarded(Keyring.load(tmp_path / "keys.yaml"), hosts=None) as (server, inner):
        for said in (f"Bearer {token}", f"bearer  {token} "):
            assert (await server.ask(authorization=said)).status == 200
        # Elsewhere's pages cannot know a key, so their origin does not matter.
        assert (
            await server.ask(method="POST", authorization=f"Bearer {token}", origin="https://evil.example")
        ).status == 200
        assert {state["key"].name for state in inner.states} == {"alice"}


async def test_wrong_keys_are_all_answered_alike(tmp_path: Path) -> None:
    path = tmp_path / "keys.yaml"
    token = add(path, "alice", frozenset({"read"}))
    expired = add(path, "bob", frozenset({"read"}), expires=1.0)
    async with guarded(Keyring.load(path), hosts=None) as (server, inner):
        bodies = set()
        for wrong in (expired, token[:-1], "mk_x", "\xff\xfe", "alice", "mk_x, Bearer " + token):
            reply = await server.ask(authorization=f"Bearer {wrong}")
            assert reply.status == 401
            assert reply.one("www-authenticate") == 'Bearer error="invalid_token"'
            bodies.add(reply.body)
        assert len(bodies) == 1
        for wrong in (token, f"Basic {token}", "Bearer", "Bearer ", f"Token {token}"):
            assert (await server.ask(authorization=wrong)).status == 401
        twice = (
            f"GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token}\r\nAuthorization: Bearer x\r\n\r\n"
        )
        assert (await server.raw(twice.encode())).status == 401
        assert inner.calls == 0


# From which page


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://localhost:1", "http://localhost.evil"]
)
async def test_a_foreign_page_changes_nothing_where_no_key_is_needed(origin: str) -> None:
    async with guarded() as (server, inner):
        for method in ("POST", "PUT", "PATCH", "DELETE", "BREW"):
            reply = await server.ask(method=method, origin=origin)
            assert reply.status == 403
            assert reply.problem["type"].endswith("/forbidden")
        assert inner.calls == 0
        assert (await server.ask(origin=origin)).status == 200  # which the page cannot read


async def test_the_servers_own_page_and_clients_that_are_no_pages_may() -> None:
    async with guarded() as (server, _):
        own = f"http://localhost:{server.port}"
        assert (await server.ask(method="POST", origin=own)).status == 200
        assert (await server.ask(method="POST", origin=own.upper().replace("HTTP", "http"))).status == 200
        assert (await server.ask(method="POST")).status == 200
        twice = f"POST / HTTP/1.1\r\nHost: localhost:{server.port}\r\nOrigin: {own}\r\nOrigin: x\r\n\r\n"
        assert (await server.raw(twice.encode())).status == 403


async def test_pages_of_the_origins_that_are_allowed() -> None:
    async with guarded(origins=["https://App.example/"]) as (server, _):
        reply = await server.ask("/", "POST", origin="https://app.example")
        assert reply.status == 200
        assert reply.one("access-control-allow-origin") == "https://app.example"
        assert "X-Request-Id" in reply.one("access-control-expose-headers")
        assert "Location" in reply.one("access-control-expose-headers")
        assert "access-control-allow-credentials" not in reply.headers
        assert reply.one("vary") == "Origin"
        assert (await server.ask("/problem", origin="https://app.example")).headers[
            "access-control-allow-origin"
        ]
        for other in ("https://evil.example", "http://app.example", "https://app.example:444", "null"):
            reply = await server.ask(origin=other)
            assert reply.status == 200
            assert "access-control-allow-origin" not in reply.headers
            assert reply.one("vary") == "Origin"


async def test_a_browser_asks_whether_a_page_may_ask(tmp_path: Path) -> None:
    add(tmp_path / "keys.yaml", "alice", frozenset({"read"}))
    ring = Keyring.load(tmp_path / "keys.yaml")
    async with guarded(ring, hosts=None, origins=["https://app.example"]) as (server, inner):
        asked = {"access_control_request_method": "POST", "access_control_request_headers": "authorization"}
        reply = await server.ask("/v1/queries", "OPTIONS", origin="https://app.example", **asked)
        assert reply.status == 204
        assert reply.one("access-control-allow-origin") == "https://app.example"
        assert "POST" in reply.one("access-control-allow-methods")
        assert "Authorization" in reply.one("access-control-allow-headers")
        assert "*" not in str(reply.headers)
        assert reply.one("vary") == "Origin"
        reply = await server.ask("/v1/queries", "OPTIONS", origin="https://evil.example", **asked)
        assert reply.status == 403
        assert "access-control-allow-origin" not in reply.headers
        assert (await server.ask("/", "OPTIONS", origin="https://app.example")).status == 401  # no preflight
        assert inner.calls == 0


async def test_without_origins_that_are_allowed_no_page_may_ask() -> None:
    async with guarded() as (server, _):
        asked = {"origin": "https://app.example", "access_control_request_method": "POST"}
        assert (await server.ask("/", "OPTIONS", **asked)).status == 403
        assert (await server.ask("/", "OPTIONS", **{**asked, "host": "evil.example"})).status == 421


@pytest.mark.parametrize(
    "origin", ["*", "app.example", "https://*.example", "https://a.example/path", "null"]
)
def test_origins_that_cannot_be_configured(origin: str) -> None:
    with pytest.raises(Mistake, match="is no origin of pages"):
        Guard(Inner(), Keyring.open_to_all(), origins=[origin])


# What goes wrong inside


async def test_a_problem_from_inside_is_told_as_it_is() -> None:
    async with guarded() as (server, _):
        reply = await server.ask("/problem")
        assert (reply.status, reply.problem["detail"]) == (404, "No such thing")
        assert reply.one("retry-after") == "5"


async def test_a_connection_goes_on_after_a_problem_with_a_body_that_was_read() -> None:
    async with guarded() as (server, _):
        reader, writer = await server.connect()
        head = b"POST /problem_later HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
        for _ in range(2):
            writer.write(head + b"5\r\nhello\r\n0\r\n\r\n")
            reply = await read_reply(reader)
            assert reply.status == 404
            assert "connection" not in reply.headers


def errors(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [record for record in caplog.records if record.levelno >= logging.ERROR]


async def test_an_error_is_logged_once_and_its_words_stay_inside(caplog: pytest.LogCaptureFixture) -> None:
    async with guarded() as (server, _):
        reply = await server.ask("/broken")
        assert reply.status == 500
        assert reply.problem["request"] == reply.one("x-request-id")
        assert b"secret" not in reply.body
        assert b"RuntimeError" not in reply.body
    (record,) = errors(caplog)
    assert reply.one("x-request-id") in record.getMessage()
    assert record.exc_info


async def test_a_path_cannot_write_into_the_log(caplog: pytest.LogCaptureFixture) -> None:
    inner = Inner()
    inner.hello = inner.broken  # type: ignore[method-assign]
    async with serving(Guard(inner, Keyring.open_to_all())) as server:
        assert (await server.ask("/%0aforged?token=secret")).status == 500
    (record,) = errors(caplog)
    assert "\n" not in record.getMessage()
    assert "token" not in record.getMessage()


async def test_an_error_in_mid_answer_breaks_the_connection_off(caplog: pytest.LogCaptureFixture) -> None:
    async with guarded() as (server, _):
        reader, writer = await server.connect()
        writer.write(b"GET /broken_late HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b"0\r\n\r\n" not in await rest(reader)
    assert len(errors(caplog)) == 1


async def test_the_application_can_break_the_connection_off(caplog: pytest.LogCaptureFixture) -> None:
    async with guarded() as (server, inner):
        reader, writer = await server.connect()
        writer.write(b"GET /cut HTTP/1.1\r\nHost: localhost\r\n\r\n")
        async with asyncio.timeout(PATIENCE):
            assert await reader.readuntil(b"some")
        inner.go_on.set()
        assert await rest(reader) == b"\r\n"  # the end of the chunk, and none of the body
    assert not errors(caplog)


async def rest(reader: asyncio.StreamReader) -> bytes:
    """All that comes until the connection ends, in whatever way."""
    found = b""
    async with asyncio.timeout(PATIENCE):
        try:
            while some := await reader.read(1000):
                found += some
        except ConnectionResetError:
            pass
    return found


async def test_an_answer_goes_out_as_it_comes() -> None:
    async with guarded() as (server, inner):
        reader, writer = await server.connect()
        writer.write(b"GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
        async with asyncio.timeout(PATIENCE):
            assert await reader.readuntil(b"first")
            inner.go_on.set()
            assert await reader.readuntil(b"0\r\n\r\n")


async def test_behind_the_middleware_of_a_framework(caplog: pytest.LogCaptureFixture) -> None:
    """FastAPI answers an error itself and raises it nevertheless, unless it is told to leave it."""
    app = FastAPI()
    router = APIRouter(prefix="/v1/things")
    app.add_exception_handler(Exception, left_to_the_guard)

    @app.post("/read")
    async def read(request: Request) -> int:
        return len(await request.body())

    @router.get("/{number}")
    async def thing(number: int) -> int:
        return number

    app.include_router(router)

    @app.get("/fail")
    async def fail() -> None:
        raise RuntimeError("the secret is 42")

    told: list[tuple[str | None, int]] = []
    guard = Guard(
        app, Keyring.open_to_all(), most_body=MOST, answered=lambda *response: told.append(response)
    )
    async with serving(guard) as server:
        reply = await server.ask("/fail")
        assert reply.problem["type"].endswith("/internal")
        assert reply.problem["request"] == reply.one("x-request-id")
        chunked = b"%x\r\n%s\r\n0\r\n\r\n" % (MOST + 1, b"x" * (MOST + 1))
        head = b"POST /read HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
        assert (await server.raw(head + chunked)).problem["type"].endswith("/too-large")
        assert (await server.ask("/read", "POST", "x" * MOST)).body == b"%d" % MOST
        assert (await server.ask("/no/such/path")).status == 404
        assert (await server.ask("/v1/things/17")).status == 200
        assert (await server.ask(host="evil.example")).status == 421
    assert len(errors(caplog)) == 1
    assert told == [
        ("/fail", 500),
        ("/read", 413),
        ("/read", 200),
        (None, 404),
        ("/v1/things/{number}", 200),
        (None, 421),
    ]


async def test_where_nobody_knows_the_connection_the_server_ends_it() -> None:
    inner = Inner()
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.disconnect"}

    scope = {
        "type": "http",
        "method": "GET",
        "path": "/broken_late",
        "query_string": b"",
        "headers": [(b"host", b"localhost")],
    }
    with pytest.raises(RuntimeError, match="secret"):
        await Guard(inner, Keyring.open_to_all())(scope, receive, send)
    assert inner.states[0]["abort"] is None
    assert re.fullmatch("[0-9a-f]{16}", inner.states[0]["request_id"])


async def test_what_is_not_http_is_not_let_in() -> None:
    inner = Inner()
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        raise AssertionError("nobody has to read")

    await Guard(inner, Keyring.open_to_all())({"type": "websocket"}, receive, send)
    assert sent == [{"type": "websocket.close", "code": 1008}]
    assert inner.calls == 0
