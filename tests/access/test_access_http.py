"""Scans and lookups over real HTTP on loopback: what only sockets can show."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from access_kit import Listener, Plain, answered, catalog, lookups, scan, visited
from aiohttp import web

from mediator.access import Access, HttpTransport
from mediator.access.web.bounds import Bounds
from mediator.access.web.transport import address
from mediator.catalog.model import Catalog, Mirror, Source
from mediator.catalog.wrapper import Request
from mediator.errors import Refused
from mediator.flow.events import Cancel, Exhausted

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Site:
    """A site on a free port that counts who is inside. Its handler says what it does."""

    def __init__(self, handler: Handler) -> None:
        self.base = ""
        self.requests: list[str] = []
        self.inside = 0
        self.peak = 0
        self.disconnected = 0
        self._handler = handler
        self._changed = asyncio.Event()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(request.path_qs)
        self.inside += 1
        self.peak = max(self.peak, self.inside)
        self._changed.set()
        try:
            return await self._handler(request)
        except asyncio.CancelledError:
            self.disconnected += 1
            raise
        finally:
            self.inside -= 1
            self._changed.set()

    async def until(self, true: Callable[[], bool]) -> None:
        async with asyncio.timeout(20):
            while not true():
                self._changed.clear()
                await self._changed.wait()


@asynccontextmanager
async def serving(handler: Handler, host: str = "127.0.0.1") -> AsyncIterator[Site]:
    site = Site(handler)
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", site.answer)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    listener = web.TCPSite(runner, host, 0)
    await listener.start()
    site.base = f"http://{host}:{runner.addresses[0][1]}"
    try:
        yield site
    finally:
        await runner.cleanup()


def at(site: Site, batch_size: int = 1, wrapper: Plain | None = None, **source: object) -> Catalog:
    options = {"allow_private": True, **source}
    return catalog(Source("site", **options), base=site.base, batch_size=batch_size, wrapper=wrapper)  # type: ignore[arg-type]


def said(rows: list[list[object]], then: list[str] | None = None) -> web.Response:
    return web.json_response({"rows": rows, "then": then or []})


def found(request: web.Request) -> web.Response:
    return said([[int(k), f"v{k}"] for k in request.query["k"].split(",")])


async def lookup(request: web.Request) -> web.StreamResponse:
    return found(request)


async def heard(site: Site, *asks: object, **options: object) -> Listener:
    async with Access(at(site, **options)) as access:  # type: ignore[arg-type]
        return await answered(access, *asks)  # type: ignore[arg-type]


class TestScans:
    async def test_pages_in_a_chain(self) -> None:
        async def pages(request: web.Request) -> web.StreamResponse:
            number = int(request.path.removeprefix("/scan").strip("/") or 0)
            return said([[number, "x"]], [f"/scan/{number + 1}"] if number < 9 else None)

        async with serving(pages) as site:
            told = await heard(site, scan())
            assert told.rows == [(n, "x") for n in range(10)]
            assert isinstance(told.events[-1][1], Exhausted)
            assert (site.peak, len(site.requests)) == (1, 10)

    async def test_pages_side_by_side_within_the_concurrency(self) -> None:
        full = asyncio.Event()

        async def pages(request: web.Request) -> web.StreamResponse:
            if request.path == "/scan":
                return said([], [f"/scan/{n}" for n in range(12)])
            if site.inside == 4:
                full.set()
            await full.wait()
            return said([[int(request.path.rpartition("/")[2]), "x"]])

        async with serving(pages) as site:
            told = await heard(site, scan(), concurrency=4)
            assert told.keys == list(range(12))
            assert site.peak == 4


class TestLookups:
    async def test_are_in_flight_together(self) -> None:
        full = asyncio.Event()

        async def together(request: web.Request) -> web.StreamResponse:
            if site.inside == 6:
                full.set()
            await full.wait()
            return found(request)

        async with serving(together) as site:
            told = await heard(site, lookups(*range(30)), concurrency=6)
            assert told.keys == list(range(30))
            assert site.peak == 6

    async def test_are_packed(self) -> None:
        async with serving(lookup) as site:
            told = await heard(site, lookups(*range(45)), batch_size=20)
            assert told.keys == list(range(45))
            assert len(site.requests) == 3

    async def test_are_shared_by_two_visits(self) -> None:
        go = asyncio.Event()

        async def when_told(request: web.Request) -> web.StreamResponse:
            await go.wait()
            return found(request)

        async with serving(when_told) as site, Access(at(site)) as access:
            (one, heard_one), (two, heard_two) = visited(access), visited(access)
            one.ask(lookups(1))
            await site.until(lambda: site.inside == 1)
            two.ask(lookups(1))
            go.set()
            await heard_one.ends()
            await heard_two.ends()
            assert len(site.requests) == 1
            assert heard_one.landings[0] is heard_two.landings[0]

    async def test_nobody_wants_any_more_and_the_site_sees_it(self) -> None:
        async def never(request: web.Request) -> web.StreamResponse:
            await asyncio.sleep(60)
            return found(request)

        async with serving(never) as site, Access(at(site, concurrency=3)) as access:
            visit, told = visited(access)
            visit.ask(lookups(1, 2, 3, 4))
            await site.until(lambda: site.inside == 3)
            visit.cancel(Cancel(1, ((4,), (1,))))
            await site.until(lambda: site.disconnected == 1)
            visit.close()
            await site.until(lambda: site.disconnected == 3)
            assert len(site.requests) == 3
            assert not told.events


class TestFaults:
    @pytest.mark.parametrize(
        "fault", ["error", "reset", "truncated", "hang", "garbage", "bad gzip", "cut gzip"]
    )
    async def test_is_asked_again(self, fault: str) -> None:
        async def faulty(request: web.Request) -> web.StreamResponse:
            return found(request) if len(site.requests) > 1 else await misbehave(fault, request)

        async with serving(faulty) as site:
            told = await heard(site, lookups(1), deadline=1.0)
            assert told.rows == [(1, "v1")], told.failed
            assert len(site.requests) == 2

    @pytest.mark.parametrize("dated", [False, True])
    async def test_retry_after(self, dated: bool) -> None:
        times: list[float] = []

        async def busy(request: web.Request) -> web.StreamResponse:
            times.append(asyncio.get_running_loop().time())
            if len(times) > 1:
                return found(request)
            now = datetime.now(UTC).replace(microsecond=0)
            later = format_datetime(now + timedelta(seconds=1), usegmt=True)
            headers = {"Retry-After": later if dated else "1", "Date": format_datetime(now, usegmt=True)}
            return web.Response(status=429, headers=headers)

        async with serving(busy) as site:
            assert (await heard(site, lookups(1))).exhausted == [(1,)]
        assert times[1] - times[0] >= 1.0

    async def test_nobody_listens(self) -> None:
        async with serving(lookup) as site:
            base = site.base
        async with Access(catalog(Source("site", allow_private=True, attempts=2), base=base)) as access:
            told = await answered(access, lookups(1))
            assert told.cause.startswith("unreachable: r.by_k at site: Cannot connect to host 127.0.0.1")

    async def test_not_found_is_no_rows_where_the_wrapper_says_so(self) -> None:
        async def missing(request: web.Request) -> web.StreamResponse:
            return web.Response(status=404)

        async with serving(missing) as site:
            assert (await heard(site, lookups(1), wrapper=Plain(frozenset({404})))).exhausted == [(1,)]
            assert "404 Not Found" in (await heard(site, lookups(1))).cause

    async def test_a_body_without_end(self) -> None:
        async def flood(request: web.Request) -> web.StreamResponse:
            response = web.StreamResponse()
            await response.prepare(request)
            while True:
                await response.write(b" " * 65_536)

        async with serving(flood) as site:
            declared = at(site)
            async with (
                HttpTransport(declared.sources, Bounds(body=1 << 20)) as transport,
                Access(declared, transport=transport) as access,
            ):
                told = await answered(access, lookups(1))
            assert told.cause.startswith(
                "unreadable: r.by_k at site: the reply is larger than 1,048,576 bytes: ask for less"
            )

    async def test_what_is_declared_too_large_is_not_even_begun(self) -> None:
        async def huge(request: web.Request) -> web.StreamResponse:
            return web.Response(headers={"Content-Length": str(1 << 40)})

        async with serving(huge) as site:
            assert "larger than" in (await heard(site, lookups(1))).cause

    async def test_packed_replies(self) -> None:
        async def packed(request: web.Request) -> web.StreamResponse:
            assert request.headers["Accept-Encoding"] == "gzip, deflate"
            body = gzip.compress(json.dumps({"rows": [[1, "x" * 500]]}).encode())
            return web.Response(body=body, headers={"Content-Encoding": "gzip"})

        async with serving(packed) as site:
            assert (await heard(site, lookups(1))).rows == [(1, "x" * 500)]


class TestPrivateAddresses:
    async def test_are_refused_unless_the_source_allows_them(self) -> None:
        async with serving(lookup) as site:
            for host in ("127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "2130706433", "0x7f.1"):
                base = site.base.replace("127.0.0.1", host)
                async with Access(catalog(Source("site"), base=base)) as access:
                    told = await answered(access, lookups(1))
                assert told.cause.startswith(("refused", "unreachable")), told.cause
            assert not site.requests

    async def test_are_refused_on_a_redirect_too(self, monkeypatch: pytest.MonkeyPatch) -> None:
        async def astray(request: web.Request) -> web.StreamResponse:
            return web.Response(status=302, headers={"Location": f"{inner.base}/secret"})

        monkeypatch.setattr("mediator.access.web.addresses.is_public", lambda a: str(a) == "127.0.0.1")
        async with serving(astray) as site, serving(lookup, "127.0.0.2") as inner:
            told = await heard(site, lookups(1), allow_private=False)
            assert "127.0.0.2 is not a public address" in told.cause
            assert (len(site.requests), inner.requests) == (1, [])

    async def test_redirects_end(self) -> None:
        async def around(request: web.Request) -> web.StreamResponse:
            return web.Response(status=302, headers={"Location": f"/{len(site.requests)}"})

        async with serving(around) as site:
            told = await heard(site, lookups(1))
            assert told.cause.startswith("refused: r.by_k at site: more than 5 redirects: declare")
            assert len(site.requests) <= 6

    async def test_redirects_to_something_else_than_http_are_refused(self) -> None:
        async def elsewhere(request: web.Request) -> web.StreamResponse:
            return web.Response(status=302, headers={"Location": "file:///etc/passwd"})

        async with serving(elsewhere) as site:
            assert "not an address that can be asked" in (await heard(site, lookups(1))).cause

    def test_a_link_stays_at_its_host(self) -> None:
        mirror = Mirror("site", "https://a.test/api")
        assert str(address(mirror, Request("/x", (("q", "a b&c"),)))) == "https://a.test/api/x?q=a+b%26c"
        assert str(address(mirror, Request("/x%2Fy"))) == "https://a.test/api/x%2Fy"
        assert str(address(mirror, Request("/x", rooted=True))) == "https://a.test/x"
        assert str(address(mirror, Request("https://a.test/y?p=1"))) == "https://a.test/y?p=1"
        with pytest.raises(Refused, match="another host"):
            address(mirror, Request("https://b.test/y"))
        with pytest.raises(Refused, match="another host"):
            address(mirror, Request("//b.test/y", rooted=True))
        assert str(address(mirror, Request("/x\r\nHost: b.test"))) == "https://a.test/api/xHost:%20b.test"


async def test_the_loop_keeps_turning_while_a_large_page_is_read() -> None:
    class Slow(Plain):
        def read(self, *args: object) -> object:  # type: ignore[override]
            given_up = loop.time() + 60.0
            while len(ticks) < 10 and loop.time() < given_up:
                pass
            turned.append(len(ticks))
            return super().read(*args)  # type: ignore[arg-type]

    async def large(request: web.Request) -> web.StreamResponse:
        return said([[n, "x" * 100] for n in range(2_000)])

    async def tick() -> None:
        while True:
            await asyncio.sleep(0.005)
            ticks.append(loop.time())

    loop = asyncio.get_running_loop()
    ticks: list[float] = []
    turned: list[int] = []  # how often, when the page had been read
    async with serving(large) as site, asyncio.TaskGroup() as group:
        ticking = group.create_task(tick())
        told = await heard(site, scan(), wrapper=Slow())
        ticking.cancel()
    assert len(told.rows) == 2_000
    assert turned
    assert turned[0] >= 10


async def misbehave(fault: str, request: web.Request) -> web.StreamResponse:
    good = json.dumps({"rows": [[1, "bad"]]}).encode()
    match fault:
        case "error":
            return web.Response(status=503)
        case "hang":
            await asyncio.sleep(60)
        case "reset":
            assert request.transport is not None
            request.transport.abort()
        case "garbage":
            return web.Response(body=b"<html>")
        case "bad gzip":
            return web.Response(body=good, headers={"Content-Encoding": "gzip"})
        case "cut gzip":
            return web.Response(body=gzip.compress(good)[:-9], headers={"Content-Encoding": "gzip"})
        case "truncated":
            response = web.StreamResponse(headers={"Content-Length": str(len(good))})
            await response.prepare(request)
            await response.write(good[:5])
            assert request.transport is not None
            request.transport.close()
            return response
    return web.Response(body=good)
