"""Tokens over real HTTP: a site that takes them, and an endpoint that gives them, each on a port of its own."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from access_kit import Listener, answered, lookups, visited
from aiohttp import web
from login_kit import Endpoint, Guarded, in_header, packed, serving, spellings, with_login
from token_kit import CLIENT, a_login

from mediator.access import Access, Ceilings, HttpTransport
from mediator.access.limits.gate import Gate
from mediator.catalog.login import ClientLogin
from mediator.catalog.model import Source

Env = pytest.MonkeyPatch


@pytest.fixture(autouse=True)
def the_secret(monkeypatch: Env) -> None:
    monkeypatch.setenv("CLIENT_SECRET", CLIENT[1])


@asynccontextmanager
async def shop(endpoint: Endpoint, **said: Any) -> AsyncIterator[tuple[Guarded, str, ClientLogin]]:
    """A site that takes the tokens which the endpoint has given, each on a port of its own."""
    guarded = Guarded(in_header("Authorization"), set())

    async def current(request: web.Request) -> web.StreamResponse:
        guarded.lets_in = {f"Bearer {endpoint.given[-1]}"} if endpoint.given else set()
        return await guarded(request)

    async with serving(endpoint) as login, serving(current) as base:
        yield guarded, base, a_login(base, f"{login}/oauth/token", **said)


class TestOverHttp:
    async def test_concurrent_lookups_fetch_one_token(self) -> None:
        endpoint = Endpoint(wait=asyncio.Event())
        async with shop(endpoint) as (site, base, login), Access(with_login(base, login)) as access:
            first, heard = visited(access)
            second, heard_too = visited(access)
            first.ask(lookups(*range(20)))
            second.ask(lookups(*range(100, 110)))
            await endpoint.was_asked.wait()
            assert endpoint.wait is not None
            endpoint.wait.set()
            await heard.ends(20)
            await heard_too.ends(10)
            counts = access.statistics().source("site")
        assert (len(heard.keys), len(heard_too.keys)) == (20, 10)
        assert len(endpoint.asked) == 1
        assert set(site.seen) == {f"Bearer {endpoint.given[0]}"}
        assert (counts.requests, counts.tokens) == (30, 1)

    @pytest.mark.parametrize("in_body", [False, True])
    async def test_what_is_asked_for(self, in_body: bool) -> None:
        endpoint = Endpoint()
        parameters = (("scope", "read write"), ("audience", "https://api.shop.test"), ("tenant", "a&b"))
        async with (
            shop(endpoint, parameters=parameters, in_body=in_body) as (_, base, login),
            Access(with_login(base, login)) as access,
        ):
            assert (await answered(access, lookups(1))).keys == [1]
        (asked,), (headers,) = endpoint.asked, endpoint.headers
        client = {"client_id": "me", "client_secret": "s3cret/of+me"} if in_body else {}
        assert asked == {"grant_type": "client_credentials", **dict(parameters), **client}
        assert headers["Content-Type"] == "application/x-www-form-urlencoded"
        # RFC 6749, 2.3.1: both are encoded as in a form before they are packed.
        assert headers.get("Authorization") == (None if in_body else packed("me", "s3cret%2Fof%2Bme"))

    async def test_the_token_ends_and_the_clock_is_handed_in(self) -> None:
        now = 0.0
        endpoint = Endpoint(expires_in=100)
        async with shop(endpoint) as (site, base, login):
            catalog = with_login(base, login)
            transport = HttpTransport(catalog.sources, clock=lambda: now)
            async with transport, Access(catalog, transport=transport) as access:
                for now in (0.0, 89.0, 91.0):
                    assert (await answered(access, lookups(int(now)))).exhausted
        assert site.seen == [f"Bearer {endpoint.given[n]}" for n in (0, 0, 1)]

    async def test_a_token_that_was_taken_back_costs_one_more_request(self) -> None:
        endpoint = Endpoint()
        async with shop(endpoint) as (site, base, login), Access(with_login(base, login)) as access:
            assert (await answered(access, lookups(1))).keys == [1]
            endpoint.given.append("revoked")  # what was given before is not taken any more
            assert (await answered(access, lookups(2))).keys == [2]
            counts = access.statistics().source("site")
        assert len(endpoint.asked) == 2
        assert (len(site.seen), counts.requests, counts.retried, counts.tokens) == (3, 3, 1, 2)

    async def test_many_under_way_when_it_is_taken_back_cost_one_token(self) -> None:
        endpoint = Endpoint()
        async with shop(endpoint) as (_, base, login), Access(with_login(base, login)) as access:
            assert (await answered(access, lookups(1))).keys == [1]
            endpoint.given.append("revoked")
            told = await answered(access, lookups(*range(2, 42)))
        assert len(told.keys) == 40
        assert len(endpoint.asked) == 2

    async def test_a_401_after_that_is_the_end(self) -> None:
        endpoint = Endpoint()
        site = Guarded(in_header("Authorization"), set())
        async with serving(endpoint) as login_at, serving(site) as base:
            login = a_login(base, f"{login_at}/token")
            async with Access(with_login(base, login)) as access:
                for key in range(5):
                    told = await answered(access, lookups(key))
                    assert told.cause == (
                        "refused: r.by_k at site: 401 Unauthorized: it does not take the client secret in the "
                        "environment variable CLIENT_SECRET: look there"
                    )
        assert len(endpoint.asked) == 2, "and not two for each lookup"
        assert len(site.seen) == 6

    async def test_an_endpoint_that_is_down_for_a_moment_is_asked_again(self) -> None:
        endpoint = Endpoint(first=[web.Response(status=503), web.Response(status=500)])
        async with shop(endpoint) as (site, base, login), Access(with_login(base, login)) as access:
            told = await answered(access, lookups(1))
        assert told.keys == [1]
        assert len(endpoint.asked) == 3
        assert len(site.seen) == 1

    async def test_one_that_stays_down_fails_the_lookup_and_says_which(self) -> None:
        endpoint = Endpoint(first=[web.Response(status=503) for _ in range(9)])
        async with (
            shop(endpoint) as (site, base, login),
            Access(with_login(base, login, attempts=2)) as access,
        ):
            told = await answered(access, lookups(1))
        assert told.cause == (
            f"refused: r.by_k at site: its token endpoint {login.token_url}: 503 Service Unavailable"
        )
        assert len(endpoint.asked) == 2
        assert site.seen == []

    async def test_a_token_takes_a_place_of_the_rate(self) -> None:
        now = 0.0
        gate = Gate(Source("site", rate=4.0), lambda: now)
        gate.enter()
        now = 0.1
        gate.token_asked()
        now = 0.3
        assert gate.limited_until() == pytest.approx(0.1 + 0.255), "the next goes so long after the token"
        assert (gate.inside, gate.tokens) == (1, 1)

    async def test_a_token_is_not_charged_to_the_query_that_happens_to_be_first(self) -> None:
        endpoint = Endpoint()
        async with shop(endpoint) as (site, base, login), Access(with_login(base, login)) as access:
            heard = Listener()
            visit = access.visit(heard, Ceilings(calls=1))
            visit.ask(lookups(1))
            await heard.ends()
            visit.close()
        assert heard.keys == [1]
        assert (len(endpoint.asked), len(site.seen)) == (1, 1)

    async def test_it_is_asked_at_no_private_address_unless_that_is_allowed(self) -> None:
        endpoint = Endpoint()
        async with serving(endpoint) as login_at:
            login = a_login("http://site.invalid", f"{login_at}/token")
            async with Access(with_login("http://site.invalid", login, allow_private=False)) as access:
                told = await answered(access, lookups(1))
        assert f"its token endpoint {login_at}/token: 127.0.0.1 is not a public address" in told.cause
        assert endpoint.asked == []

    async def test_a_redirect_of_the_endpoint_is_not_followed(self) -> None:
        saw: list[str] = []

        async def note(request: web.Request) -> web.StreamResponse:
            saw.append(await request.text())
            return web.json_response({"access_token": "t"})

        async with serving(note) as other:
            moved = web.Response(status=307, headers={"Location": f"{other}/token"})
            async with (
                shop(Endpoint(first=[moved]), in_body=True) as (site, base, login),
                Access(with_login(base, login)) as access,
            ):
                told = await answered(access, lookups(1))
        assert (
            "307 Temporary Redirect: it has moved: declare the place where it is now as 'token_url'"
            in told.cause
        )
        assert (saw, site.seen) == ([], [])

    async def test_a_reply_without_end_is_cut_off(self) -> None:
        async def endless(request: web.Request) -> web.StreamResponse:
            reply = web.StreamResponse(headers={"Content-Encoding": "gzip"})
            await reply.prepare(request)
            packer = zlib.compressobj(wbits=31)
            for _ in range(200):
                await reply.write(packer.compress(b" " * (1 << 20)) + packer.flush(zlib.Z_SYNC_FLUSH))
            return reply

        async with serving(endless) as login_at:
            login = a_login("http://site.invalid", f"{login_at}/token")
            async with Access(with_login("http://site.invalid", login)) as access:
                told = await answered(access, lookups(1))
        assert told.cause.startswith("unreadable: r.by_k at site: its token endpoint http://127.0.0.1")

    async def test_a_redirect_of_the_site_takes_no_token_elsewhere(self) -> None:
        saw: list[str] = []

        async def note(request: web.Request) -> web.StreamResponse:
            saw.append(f"{request.path_qs} {dict(request.headers)}")
            return web.json_response({"rows": [[1, "elsewhere"]]})

        endpoint = Endpoint()
        async with serving(note) as other, serving(endpoint) as login_at:

            async def away(request: web.Request) -> web.StreamResponse:
                assert request.headers["Authorization"] == f"Bearer {endpoint.given[0]}"
                raise web.HTTPFound(f"{other}/there")

            async with serving(away) as base:
                login = a_login(base, f"{login_at}/token")
                async with Access(with_login(base, login)) as access:
                    told = await answered(access, lookups(1))
        assert told.rows == [(1, "elsewhere")]
        assert len(saw) == 1
        for secret in (endpoint.given[0], CLIENT[1]):
            assert not [s for s in spellings(secret) if s in saw[0]]
