"""Keys, tokens, names and passwords over real HTTP: who is let in, who is told what, and what other sites see."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from access_kit import Listener, Plain, answered, lookups, scan
from aiohttp import web
from login_kit import Guarded, in_header, in_query, packed, serving, spellings, with_login

from mediator.access import Access, HttpTransport
from mediator.catalog.login import BasicLogin, KeyLogin, Login
from mediator.catalog.model import Mirror
from mediator.catalog.secret import Secret
from mediator.catalog.wrapper import Request
from mediator.errors import Refused

KEY = "k3y/of+the=shop & more"
OTHER = "an0ther-key"
SAID_NO = "refused: r.by_k at site: 401 Unauthorized: it does not take"
Env = pytest.MonkeyPatch


def by_header(base: str) -> Login:
    return KeyLogin(base, Secret("SHOP_KEY", what="key"), header="X-Api-Key")


def by_query(base: str) -> Login:
    return KeyLogin(base, Secret("SHOP_KEY", what="key"), query="api_key")


def by_token(base: str) -> Login:
    return KeyLogin(base, Secret("SHOP_KEY", what="token"), header="Authorization", prefix="Bearer")


def by_name(base: str) -> Login:
    return BasicLogin(base, "reader", Secret("SHOP_KEY"))


def by_key_as_name(base: str) -> Login:
    return BasicLogin(base, Secret("SHOP_KEY", what="user name"))


AUTHORIZATION = in_header("Authorization")
KINDS: dict[str, tuple[Callable[[str], Login], Callable[[web.Request], str], Callable[[str], str]]] = {
    "key in a header": (by_header, in_header("X-Api-Key"), str),
    "key in the query": (by_query, in_query("api_key"), str),
    "bearer": (by_token, AUTHORIZATION, lambda key: f"Bearer {key}"),
    "basic": (by_name, AUTHORIZATION, lambda key: packed("reader", key)),
    "basic with a key": (by_key_as_name, AUTHORIZATION, lambda key: packed(key, "")),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


async def heard(base: str, login: Login, *keys: int, **source: object) -> Listener:
    async with Access(with_login(base, login, **source)) as access:
        return await answered(access, lookups(*keys or (1,)))


@every_kind
async def test_who_shows_it_is_let_in(kind: str, monkeypatch: Env) -> None:
    login, shown, expected = KINDS[kind]
    monkeypatch.setenv("SHOP_KEY", KEY)
    site = Guarded(shown, {expected(KEY)})
    async with serving(site) as base:
        told = await heard(base, login(base), 1, 2, 3)
    assert told.keys == [1, 2, 3]
    assert set(site.seen) == {expected(KEY)}


@every_kind
async def test_who_does_not_is_told_where_to_look(kind: str, monkeypatch: Env) -> None:
    login, shown, expected = KINDS[kind]
    monkeypatch.setenv("SHOP_KEY", OTHER)
    site = Guarded(shown, {expected(KEY)})
    async with serving(site) as base:
        told = await heard(base, login(base))
    assert told.cause.startswith(SAID_NO)
    assert told.cause.endswith("in the environment variable SHOP_KEY: look there")
    assert len(site.seen) == 1, "nothing has changed, so nothing is asked again"


@every_kind
async def test_a_secret_that_is_missing_costs_no_request(kind: str, monkeypatch: Env) -> None:
    login, shown, _ = KINDS[kind]
    monkeypatch.delenv("SHOP_KEY", raising=False)
    site = Guarded(shown, set())
    async with serving(site) as base:
        told = await heard(base, login(base))
    assert told.cause.startswith("refused: r.by_k at site: its ")
    assert told.cause.endswith("is missing: set the environment variable SHOP_KEY")
    assert site.seen == []


@every_kind
async def test_a_changed_secret_is_read_anew(kind: str, monkeypatch: Env) -> None:
    """Between two requests, and while one is under way: a 401 to the old one is followed by one with the new one."""
    login, shown, expected = KINDS[kind]
    monkeypatch.setenv("SHOP_KEY", "the-old-one")
    site = Guarded(shown, {expected("the-old-one")})

    async def changing(request: web.Request) -> web.StreamResponse:
        if request.query.get("k") == "2" and len(site.seen) == 1:
            monkeypatch.setenv("SHOP_KEY", KEY)
            site.lets_in = {expected(KEY)}
        return await site(request)

    async with serving(changing) as base, Access(with_login(base, login(base), attempts=1)) as access:
        for key in (1, 2, 3):
            assert (await answered(access, lookups(key))).keys == [key]
        counts = access.statistics().source("site")
    assert site.seen == [expected("the-old-one")] * 2 + [expected(KEY)] * 2
    assert (counts.requests, counts.retried, counts.failed) == (4, 1, 0)


async def test_the_new_one_is_tried_once(monkeypatch: Env) -> None:
    site = Guarded(in_header("X-Api-Key"), set())

    async def changing(request: web.Request) -> web.StreamResponse:
        monkeypatch.setenv("SHOP_KEY", f"another-one-{len(site.seen)}")
        return await site(request)

    monkeypatch.setenv("SHOP_KEY", "the-first-one")
    async with serving(changing) as base:
        told = await heard(base, by_header(base))
    assert told.cause.startswith(SAID_NO)
    assert site.seen == ["the-first-one", "another-one-0"]


async def test_a_secret_in_a_file_is_rotated(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("one-of-them\n")
    site = Guarded(in_header("X-Api-Key"), {"one-of-them"})
    async with serving(site) as base:
        login = KeyLogin(base, Secret(file=str(file), what="key"), header="X-Api-Key")
        async with Access(with_login(base, login)) as access:
            assert (await answered(access, lookups(1))).keys == [1]
            file.write_text("the-next-one\r\n")
            site.lets_in = {"the-next-one"}
            assert (await answered(access, lookups(2))).keys == [2]
            file.unlink()
            told = await answered(access, lookups(3))
    assert "its key file" in told.cause
    assert "cannot be read: No such file" in told.cause
    assert site.seen == ["one-of-them", "the-next-one"]


async def test_what_cannot_stand_in_a_header_is_not_sent(monkeypatch: Env) -> None:
    monkeypatch.setenv("SHOP_KEY", "one-line\r\nX-Other: two-lines")
    site = Guarded(in_header("X-Api-Key"), set())
    async with serving(site) as base:
        told = await heard(base, by_header(base))
    assert "the key in the environment variable SHOP_KEY has a line break or the like in it" in told.cause
    assert "two-lines" not in told.cause
    assert site.seen == []


async def test_a_prefix_stands_before_the_key(monkeypatch: Env) -> None:
    monkeypatch.setenv("SHOP_KEY", "abc-def")
    site = Guarded(AUTHORIZATION, {"Token abc-def", "key=abc-def"})
    async with serving(site) as base:
        for prefix in ("Token", "Token ", "key="):
            login = KeyLogin(base, Secret("SHOP_KEY", what="key"), "Authorization", prefix=prefix)
            assert (await heard(base, login)).keys == [1]
    assert site.seen == ["Token abc-def", "Token abc-def", "key=abc-def"]


async def test_a_site_without_a_login_that_wants_one_says_so() -> None:
    site = Guarded(in_header("X-Api-Key"), {"x"})
    async with serving(site) as base:
        catalog = with_login(base, by_header(base))
        catalog.sources["site"] = type(catalog.sources["site"])("site", allow_private=True)
        async with Access(catalog) as access:
            told = await answered(access, lookups(1))
    assert told.cause.endswith(
        "401 Unauthorized: it wants to know who asks: declare 'auth' for the source site"
    )


async def test_a_403_says_whose_rights_to_look_at(monkeypatch: Env) -> None:
    monkeypatch.setenv("SHOP_KEY", KEY)
    site = Guarded(in_header("X-Api-Key"), set(), says_no=403)
    async with serving(site) as base:
        told = await heard(base, by_header(base))
    assert "403 Forbidden: it knows who asks, and does not allow it: look at what the key in" in told.cause
    assert len(site.seen) == 1


async def test_what_a_wrapper_calls_no_rows_stays_that(monkeypatch: Env) -> None:
    """A declared meaning of 401 goes before."""
    monkeypatch.setenv("SHOP_KEY", KEY)
    site = Guarded(in_header("X-Api-Key"), set())
    async with serving(site) as base:
        catalog = with_login(base, by_header(base))
        relation = catalog.relations["r"]
        for method in relation.methods:
            assert isinstance(method.wrapper, Plain)
            method.wrapper.empty_statuses = frozenset({401})
        async with Access(catalog) as access:
            told = await answered(access, lookups(1))
    assert told.exhausted == [(1,)]


class TestRedirects:
    """Another server notes all that it is shown."""

    @asynccontextmanager
    async def elsewhere(self) -> AsyncIterator[tuple[str, list[str]]]:
        saw: list[str] = []

        async def note(request: web.Request) -> web.StreamResponse:
            saw.append(f"{request.path_qs} {dict(request.headers)} {await request.text()}")
            if back := request.query.get("back"):
                raise web.HTTPFound(back)
            return web.json_response({"rows": [[1, "elsewhere"]]})

        async with serving(note) as base:
            yield base, saw

    @every_kind
    async def test_to_another_origin_take_no_secret_along(self, kind: str, monkeypatch: Env) -> None:
        login, shown, expected = KINDS[kind]
        monkeypatch.setenv("SHOP_KEY", KEY)
        home: list[str] = []
        async with self.elsewhere() as (other, saw):

            async def away(request: web.Request) -> web.StreamResponse:
                home.append(shown(request))
                raise web.HTTPFound(f"{other}/there?x=1")

            async with serving(away) as base:
                told = await heard(base, login(base))
        assert told.rows == [(1, "elsewhere")]
        assert home == [expected(KEY)]
        assert len(saw) == 1
        assert not [s for s in spellings(KEY) if s in saw[0]]
        assert not [s for s in spellings(expected(KEY)) if s in saw[0]]

    @every_kind
    async def test_and_back_neither(self, kind: str, monkeypatch: Env) -> None:
        login, shown, expected = KINDS[kind]
        monkeypatch.setenv("SHOP_KEY", KEY)
        home: list[str] = []
        async with self.elsewhere() as (other, saw):

            async def away(request: web.Request) -> web.StreamResponse:
                home.append(shown(request))
                if request.path == "/back":
                    return web.json_response({"rows": [[1, "back"]]})
                raise web.HTTPFound(f"{other}/there?back=http://{request.host}/back")

            async with serving(away) as base:
                told = await heard(base, login(base))
        assert told.rows == [(1, "back")]
        assert home == [expected(KEY), ""]
        assert len(saw) == 1

    @every_kind
    async def test_within_the_site_take_it_along_once(self, kind: str, monkeypatch: Env) -> None:
        login, shown, expected = KINDS[kind]
        monkeypatch.setenv("SHOP_KEY", KEY)
        asked: list[str] = []

        async def around(request: web.Request) -> web.StreamResponse:
            asked.append(request.path_qs)
            assert shown(request) == expected(KEY)
            assert len(request.query.getall("api_key", [])) < 2
            if request.path == "/here":
                return web.json_response({"rows": [[1, "here"]]})
            raise web.HTTPFound(f"/here?{request.query_string}")

        async with serving(around) as base:
            told = await heard(base, login(base))
        assert told.rows == [(1, "here")]
        assert len(asked) == 2

    async def test_a_site_that_repeats_the_key_in_a_link_to_elsewhere(self, monkeypatch: Env) -> None:
        monkeypatch.setenv("SHOP_KEY", KEY)
        async with self.elsewhere() as (other, saw):

            async def leaking(request: web.Request) -> web.StreamResponse:
                raise web.HTTPFound(f"{other}{request.path_qs}")

            async with serving(leaking) as base:
                told = await heard(base, by_query(base))
        assert saw == []
        assert f"it would take a secret along to another place, {other}/at: declare" in told.cause

    async def test_a_mirror_elsewhere_is_shown_nothing(self, monkeypatch: Env) -> None:
        """Whoever asks another origin in a source's name, as for its robots.txt, does it without the login."""
        monkeypatch.setenv("SHOP_KEY", KEY)
        async with self.elsewhere() as (other, saw):
            catalog = with_login("http://127.0.0.1:9", by_header("http://127.0.0.1:9"))
            async with HttpTransport(catalog.sources) as transport:
                await transport.send(Mirror("site", other), Request("/x"))
        assert len(saw) == 1
        assert KEY not in saw[0]


async def test_links_that_repeat_the_key_are_followed_and_carry_it_once(monkeypatch: Env) -> None:
    monkeypatch.setenv("SHOP_KEY", KEY)
    asked: list[list[str]] = []

    async def paged(request: web.Request) -> web.StreamResponse:
        asked.append(request.query.getall("api_key"))
        if request.path == "/scan":
            then = [str(request.url.with_path("/2").update_query(api_key=KEY))]
            return web.json_response({"rows": [[1, "a"]], "then": then})
        return web.json_response({"rows": [[2, "b"]], "then": [str(request.url)]})

    async with serving(paged) as base, Access(with_login(base, by_query(base))) as access:
        told = await answered(access, scan())
    assert told.keys == [1, 2]
    assert asked == [[KEY], [KEY]]
    assert "its pages lead back to one that was read already: GET http" in told.cause
    assert not [s for s in spellings(KEY) if s in told.cause]


async def test_what_a_template_says_is_overruled(monkeypatch: Env) -> None:
    monkeypatch.setenv("SHOP_KEY", KEY)
    site = Guarded(lambda request: ",".join(request.headers.getall("X-Api-Key")), {KEY})
    async with serving(site) as base:
        catalog = with_login(base, by_header(base))
        async with HttpTransport(catalog.sources) as transport:
            asked = Request("/scan", headers=(("x-api-key", "mine"),))
            reply = await transport.send(Mirror("site", base), asked)
    assert reply.status == 200
    assert site.seen == [KEY]


async def test_robots_txt_is_for_everybody(monkeypatch: Env) -> None:
    monkeypatch.setenv("SHOP_KEY", KEY)
    saw: dict[str, str] = {}

    async def site(request: web.Request) -> web.StreamResponse:
        saw[request.path] = request.headers.get("X-Api-Key", "")
        if request.path == "/robots.txt":
            return web.Response(status=404)
        return web.json_response({"rows": [[1, "v1"]]})

    async with serving(site) as base:
        told = await heard(base, by_header(base), robots="obey")
    assert told.keys == [1]
    assert saw == {"/robots.txt": "", "/at": KEY}


async def test_a_password_in_a_base_of_python_is_not_shown_either(monkeypatch: Env) -> None:
    async def site(request: web.Request) -> web.StreamResponse:
        return web.Response(status=418, text=request.headers["Authorization"])

    async with serving(site) as base:
        catalog = with_login(base, by_header(base))
        mirror = Mirror("site", base.replace("http://", "http://me:hunter2-and-more@"))
        async with HttpTransport(
            {"site": type(catalog.sources["site"])("site", allow_private=True)}
        ) as transport:
            reply = await transport.send(mirror, Request("/x"))
            assert transport.redaction.clean(reply.body.decode()).startswith("Basic bWU6***")
            with pytest.raises(Refused) as caught:
                await transport.send(mirror, Request("http://elsewhere.test/hunter2-and-more"))
    assert "hunter2" not in repr(caught.value)
