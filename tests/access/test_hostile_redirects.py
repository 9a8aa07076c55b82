"""What goes along on a redirect, and what aiohttp must not do by itself."""

from __future__ import annotations

import asyncio
from random import Random

import pytest
from hostile_kit import Wire, raw_site
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from mediator.access import HttpTransport
from mediator.access.web.bounds import Bounds
from mediator.access.web.quoting import plain, quoted, shown
from mediator.access.web.redirects import Hop, Trail
from mediator.access.web.transport import address
from mediator.catalog.model import Mirror, Source
from mediator.catalog.wrapper import Reply, Request
from mediator.errors import Refused, SourceError, Unreachable

SOURCES = {"site": Source("site", allow_private=True)}
SECRETS = (("Authorization", "Bearer s"), ("Cookie", "s=1"), ("X-Api-Key", "s"), ("X-Anything", "s"))
HERE = URL("http://a.test/api?key=1")


async def sent(base: str, request: Request, bounds: Bounds | None = None) -> Reply:
    async with HttpTransport(SOURCES, bounds) as transport:
        return await transport.send(Mirror("site", base), request)


def after(
    status: int, location: str, method: str = "GET", body: bytes | None = None, here: URL = HERE
) -> Hop:
    headers = (*SECRETS, ("Accept", "text/csv"), ("Content-Type", "text/plain"))
    trail = Trail(Hop(here, method, headers, body), 5)
    assert trail.follow(status, [location])
    return trail.hop


class TestWhatGoesAlong:
    def test_everything_to_another_path_of_the_site(self) -> None:
        hop = after(302, "/x?y=1#z")
        assert str(hop.url) == "http://a.test/x?y=1"
        assert set(SECRETS) < set(hop.headers)

    @pytest.mark.parametrize(
        "location", ["http://b.test/", "//b.test/", "http://a.test:8080/", "http://a.test.b.test/"]
    )
    def test_no_credentials_to_another_host_or_port(self, location: str) -> None:
        assert after(302, location).headers == (("Accept", "text/csv"),)

    def test_they_do_not_come_back_either(self) -> None:
        trail = Trail(Hop(HERE, "GET", SECRETS), 5)
        trail.follow(302, ["http://b.test/"])
        trail.follow(302, ["http://a.test/"])
        assert trail.hop.headers == ()

    def test_the_login_of_the_base_stays_with_the_site(self) -> None:
        here = URL("http://me:secret@a.test/")
        assert str(after(302, "http://a.test/x", here=here).url) == "http://me:secret@a.test/x"
        assert str(after(302, "/x", here=here).url) == "http://me:secret@a.test/x"
        assert str(after(302, "http://b.test/x", here=here).url) == "http://b.test/x"

    @pytest.mark.parametrize("status", [301, 302, 303])
    def test_a_post_becomes_a_get(self, status: int) -> None:
        hop = after(status, "/x", "POST", b"form")
        assert (hop.method, hop.body) == ("GET", None)
        assert "Content-Type" not in dict(hop.headers)

    @pytest.mark.parametrize("status", [307, 308])
    def test_a_post_stays_one_and_stays_at_the_site(self, status: int) -> None:
        hop = after(status, "/x", "POST", b"form")
        assert (hop.method, hop.body) == ("POST", b"form")
        with pytest.raises(Refused, match="redirects what was sent to another place"):
            after(status, "http://b.test/x", "POST", b"form")

    @pytest.mark.parametrize("location", ["https://a.test/", "https://b.test/"])
    def test_the_scheme_stays(self, location: str) -> None:
        with pytest.raises(Refused, match="redirects from http to https"):
            after(302, location)

    def test_what_is_no_redirect_is_a_reply(self) -> None:
        for status in (200, 201, 300, 304, 305, 306):
            assert not Trail(Hop(HERE), 5).follow(status, ["/x"])
        assert not Trail(Hop(HERE), 5).follow(302, [])

    def test_a_circle_is_found_before_the_bound(self) -> None:
        trail = Trail(Hop(HERE), 100)
        for location in ("/1", "/2", "/3"):
            trail.follow(302, [location])
        with pytest.raises(Refused, match=r"circle at http://a\.test/2: declare"):
            trail.follow(302, ["/2"])

    @given(st.integers(300, 308), st.lists(st.text(max_size=80) | st.text("htp:/@.[]%1\\#?", max_size=40)))
    def test_no_location_is_a_crash(self, status: int, locations: list[str]) -> None:
        trail = Trail(Hop(HERE, "GET", SECRETS), 5)
        refusals = []
        try:
            trail.follow(status, locations)
        except Refused as error:
            refusals.append(error.message)
        assert all(map(str.isprintable, refusals))
        assert trail.hop.url.scheme == "http"
        assert trail.hop.url.host == "a.test" or trail.hop.headers == ()


async def test_each_hop_is_a_request_of_its_own_without_the_secrets_of_the_first() -> None:
    async def fine(wire: Wire) -> None:
        await wire.say(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine")

    async with raw_site(fine) as other:

        async def away(wire: Wire) -> None:
            head = f"HTTP/1.1 302 Away\r\nLocation: {other.base}/there\r\nSet-Cookie: c=1\r\n\r\n"
            await wire.say(head.encode())

        async with raw_site(away) as site:
            assert (await sent(site.base, Request("/", headers=SECRETS))).body == b"fine"
            assert b"X-Api-Key: s" in site.heads[0]
    (head,) = other.heads
    assert head.startswith(b"GET /there ")
    for name in (b"authorization", b"cookie", b"x-api-key", b"x-anything", b"referer"):
        assert name not in head.lower()


async def test_a_lost_connection_is_not_asked_again_behind_our_back() -> None:
    async def once(wire: Wire) -> None:
        if len(site.heads) > 1:
            wire.writer.transport.abort()
        await wire.say(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    async with raw_site(once, keep=True) as site, HttpTransport(SOURCES) as transport:
        mirror = Mirror("site", site.base)
        await transport.send(mirror, Request("/"))
        with pytest.raises(Unreachable) as lost:
            await transport.send(mirror, Request("/"))
        assert lost.value.again  # by those who count
        assert (len(site.heads), site.connections) == (2, 1)


async def test_a_reply_that_nobody_asked_for_is_not_taken_for_the_next_one() -> None:
    async def twice(wire: Wire) -> None:
        honest = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhonest"
        await wire.say(honest + b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison")

    async with raw_site(twice, keep=True) as site, HttpTransport(SOURCES) as transport:
        for _ in range(5):
            reply = await transport.send(Mirror("site", site.base), Request("/"))
            assert reply.body == b"honest"


async def test_nor_is_one_that_comes_while_nothing_is_asked() -> None:
    async def twice(wire: Wire) -> None:
        await wire.say(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhonest")
        await read.wait()
        await wire.say(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison")
        said.set()

    read, said = asyncio.Event(), asyncio.Event()
    async with raw_site(twice, keep=True) as site, HttpTransport(SOURCES) as transport:
        for _ in range(3):
            reply = await transport.send(Mirror("site", site.base), Request("/"))
            assert reply.body == b"honest"
            read.set()
            await said.wait()
            for _ in range(10):  # turns of the loop, in which it comes
                await asyncio.sleep(0)
            read.clear()
            said.clear()
    assert site.connections == 3


OK = b"HTTP/1.1 200 OK\r\nConnection: close\r\n"


@pytest.mark.parametrize(
    ("raw", "bounds", "says"),
    [
        (OK + b"\r\n0123456789", Bounds(body=9), "larger than 9 bytes"),
        (OK + b"A: 1\r\nB: 2\r\n\r\n", Bounds(headers=2), "more than 2 headers"),
        (OK + b"A: " + b"x" * 50 + b"\r\n\r\n", Bounds(header_line=30), "longer than 30 bytes"),
        (OK + b"A: 12345678\r\n\r\n", Bounds(header_bytes=20), "headers are larger than 20 bytes"),
        (b"HTTP/1.1 302 On\r\nLocation: /x\r\n\r\n", Bounds(redirects=0), "more than 0 redirects"),
    ],
)
async def test_bounds_can_be_set(raw: bytes, bounds: Bounds, says: str) -> None:
    async def script(wire: Wire) -> None:
        await wire.say(OK + b"Content-Length: 0\r\n\r\n" if b" /x " in wire.head else raw)

    async with raw_site(script) as site:
        assert (await sent(site.base, Request("/"))).status == 200
        with pytest.raises(SourceError, match=says):
            await sent(site.base, Request("/"), bounds)


@pytest.mark.parametrize("seed", range(20))
async def test_an_honest_reply_with_a_few_bytes_changed_is_a_reply_or_a_failure(seed: int) -> None:
    random = Random(seed)
    honest = (
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        b'b\r\n{"rows": []\r\n1\r\n}\r\n0\r\nTrailer: x\r\n\r\n'
    )

    async def changed(wire: Wire) -> None:
        raw = bytearray(honest)
        for _ in range(random.randint(1, 4)):
            match random.randrange(3):
                case 0:
                    raw[random.randrange(len(raw))] = random.randrange(256)
                case 1:
                    del raw[random.randrange(len(raw))]
                case _:
                    raw.insert(random.randrange(len(raw)), random.choice(b"\r\n\0 :;\xff0f"))
        await wire.say(bytes(raw))

    ends: list[str] = []
    async with raw_site(changed) as site, HttpTransport(SOURCES) as transport:
        for _ in range(25):
            try:
                ends.append(str((await transport.send(Mirror("site", site.base), Request("/"))).status))
            except SourceError as error:
                ends.append(error.message)
    assert len(ends) == 25
    assert all(map(str.isprintable, ends))


async def test_a_header_that_is_sent_several_times_is_a_list() -> None:
    async def links(wire: Wire) -> None:
        await wire.say(b"HTTP/1.1 200 OK\r\nLink: <a>\r\nlink: <b>\r\nLink: <a>\r\nContent-Length: 0\r\n\r\n")

    async with raw_site(links) as site:
        assert (await sent(site.base, Request("/"))).headers["link"] == "<a>, <b>"


def test_links_stay_at_the_port_and_the_scheme_of_the_base_too() -> None:
    mirror = Mirror("site", "https://me:secret@a.test/api")
    for link in ("https://a.test:8443/x?key=s", "http://a.test/x?key=s"):
        with pytest.raises(Refused, match="leads to another port or scheme") as refused:
            address(mirror, Request(link))
        assert "secret" not in refused.value.message
        assert "key" not in refused.value.message
    assert str(address(mirror, Request("https://a.test/x"))) == "https://me:secret@a.test/x"


def test_what_a_site_says_is_harmless_where_it_is_shown() -> None:
    assert quoted("\x1b[31m" + "x" * 500) == repr("\x1b[31m" + "x" * 115 + "...")
    assert plain("first\x07 line\nsecond") == r"first\x07 line"
    assert plain("") == ""
    assert shown(URL("http://me:secret@a.test:81/x?key=s#f")) == "http://a.test:81/x"
    assert shown(URL("/x?key=s")) == "/x"


async def test_a_reply_says_where_on_the_site_it_was_led_to() -> None:
    async def moved(wire: Wire) -> None:
        if b"GET /old " in site.heads[-1]:
            await wire.say(
                b"HTTP/1.1 302 Moved\r\nLocation: /v2/new/?q=M%FCller\r\nContent-Length: 0\r\n\r\n"
            )
        else:
            await wire.say(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    async with raw_site(moved, keep=True) as site:
        assert (await sent(site.base, Request("/old"))).address == "/v2/new/?q=M%FCller"
        assert (await sent(site.base, Request("/other"))).address == ""


async def test_where_on_another_site_it_was_led_to_is_none_of_this_ones_addresses() -> None:
    async def fine(wire: Wire) -> None:
        await wire.say(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    async with raw_site(fine) as other:

        async def away(wire: Wire) -> None:
            await wire.say(f"HTTP/1.1 302 Away\r\nLocation: {other.base}/there\r\n\r\n".encode())

        async with raw_site(away) as site:
            assert (await sent(site.base, Request("/old"))).address == ""
