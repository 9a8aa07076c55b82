"""Nothing that a site, a link or a resolver says makes the engine connect to its own house."""

from __future__ import annotations

import asyncio
import socket
from asyncio.selector_events import BaseSelectorEventLoop
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path

import pytest
from access_kit import answered, catalog, lookups
from hostile_kit import Canary, Liar, Wire, canary_listening, raw_site
from private_targets import NAMES, NAMES_AS_WRITTEN, ODD_BASES, PRIVATE, SPELLINGS, spelt

from mediator.access import Access, HttpTransport
from mediator.access.web import addresses
from mediator.catalog.model import Mirror, Source
from mediator.catalog.wrapper import Request
from mediator.errors import Refused, SourceError, Unreachable

TARGETS = dict(spelt())
STATUSES = (301, 302, 303, 307, 308)
HARBOUR = "127.7.7.7"  # the one loopback address that counts as public while redirects are tested
REDIRECTED = (
    "http://127.0.0.1:{port}/",
    "//127.0.0.1:{port}/",
    "http://2130706433:{port}/",
    "http://0x7f.1:{port}/",
    "http://localhost:{port}/",
    "http://[::1]:{port}/",
    "http://[::ffff:127.0.0.1]:{port}/",
    "http://10.0.0.1:{port}/",
    "http://100.100.100.200:{port}/",
    "http://169.254.169.254:{port}/latest/meta-data/",
    "http://168.63.129.16:{port}/",
    "http://224.0.0.1:{port}/",
    "http://0.0.0.0:{port}/",
    "http://[fd00:ec2::254]:{port}/",
    "http://[fec0::1]:{port}/",
    "http://www.example.org@127.0.0.1:{port}/",
    "http://127.0.0.1:{port}\\@site.example/",
    "https://127.0.0.1:{port}/",
    "gopher://127.0.0.1:{port}/",
)

Attempts = list[IPv4Address | IPv6Address]


@pytest.fixture
async def canary() -> AsyncIterator[Canary]:
    async with canary_listening() as canary:
        yield canary
        await asyncio.sleep(0)
        assert canary.connections == 0


@pytest.fixture
def attempts(monkeypatch: pytest.MonkeyPatch) -> Iterator[Attempts]:
    """Every address that a socket was told to connect to. None of them leaves this machine."""
    connect, tried = BaseSelectorEventLoop.sock_connect, Attempts()

    async def watched(loop: BaseSelectorEventLoop, sock: socket.socket, address: tuple[str, int]) -> None:
        tried.append(found := ip_address(address[0].partition("%")[0]))
        if not found.is_loopback:
            raise ConnectionRefusedError(f"{found} is out of bounds for a test")
        await connect(loop, sock, address)

    monkeypatch.setattr(BaseSelectorEventLoop, "sock_connect", watched)
    yield tried
    assert [a for a in tried if not addresses.is_public(a)] == []


@pytest.fixture
def harbour(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets a site on loopback pass for a public one."""
    public = addresses.is_public
    monkeypatch.setattr(addresses, "is_public", lambda a: str(a) == HARBOUR or public(a))


async def failure(base: str, resolver: Liar) -> SourceError:
    sources = {"site": Source("site")}
    async with HttpTransport(sources, resolver=resolver) as transport:
        with pytest.raises(SourceError) as raised:
            await transport.send(Mirror("site", base), Request("/"))
    return raised.value


def liar() -> Liar:
    return Liar(**{name: list(map(list, answers)) for name, answers in NAMES.items()})


def test_there_are_enough_spellings() -> None:
    assert len(TARGETS) + len(ODD_BASES) + len(NAMES_AS_WRITTEN) >= 700


@pytest.mark.parametrize("target", TARGETS)
async def test_no_spelling_of_a_private_address_is_connected_to(
    target: str, canary: Canary, attempts: Attempts
) -> None:
    error = await failure(TARGETS[target].format(port=canary.port), liar())
    assert isinstance(error, Refused | Unreachable), error
    assert attempts == []
    assert error.message


@pytest.mark.parametrize("base", ODD_BASES)
async def test_no_odd_base_leads_into_the_house(base: str, canary: Canary, attempts: Attempts) -> None:
    error = await failure(base.format(port=canary.port), liar())
    assert isinstance(error, Refused | Unreachable), error
    assert attempts == []


@pytest.mark.parametrize("name", NAMES_AS_WRITTEN)
async def test_no_name_that_resolves_to_a_private_address_is_connected_to(
    name: str, canary: Canary, attempts: Attempts
) -> None:
    error = await failure(f"http://{name}:{canary.port}/", liar())
    assert isinstance(error, Refused), error
    assert "not a public address" in error.message
    assert "declare `allow_private`" in error.message
    assert attempts == []


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("location", REDIRECTED)
async def test_no_redirect_leads_into_the_house(
    status: int, location: str, canary: Canary, attempts: Attempts, harbour: None
) -> None:
    said = location.format(port=canary.port)

    async def astray(wire: Wire) -> None:
        head = f"HTTP/1.1 {status} Elsewhere\r\nLocation: {said}\r\nContent-Length: 0\r\n\r\n"
        await wire.say(head.encode())

    async with raw_site(astray, host=HARBOUR) as site:
        error = await failure(site.base, liar())
        assert isinstance(error, Refused | Unreachable), error
        assert [str(a) for a in attempts] == [HARBOUR] * len(site.heads)
        assert 1 <= len(site.heads) <= 2  # some of these lead back to the site itself


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("name", ["localtest.example", "six.example", "both.example", "many.example"])
async def test_no_redirect_to_a_name_leads_into_the_house(
    status: int, name: str, canary: Canary, attempts: Attempts, harbour: None
) -> None:
    async def astray(wire: Wire) -> None:
        head = f"HTTP/1.1 {status} Elsewhere\r\nLocation: http://{name}:{canary.port}/\r\n\r\n"
        await wire.say(head.encode())

    async with raw_site(astray, host=HARBOUR) as site:
        error = await failure(site.base, liar())
        assert isinstance(error, Refused), error
        assert "not a public address" in error.message


async def test_a_resolver_that_changes_its_mind_gains_nothing(
    canary: Canary, attempts: Attempts, harbour: None
) -> None:
    """The first answer is the site's own address, which sends the engine back to the same name."""

    async def again(wire: Wire) -> None:
        head = f"HTTP/1.1 302 Again\r\nLocation: http://two-faced.example:{canary.port}/\r\n\r\n"
        await wire.say(head.encode())

    resolver = Liar(**{"two-faced.example": [[HARBOUR], ["127.0.0.1"], ["::1"]]})
    async with raw_site(again, host=HARBOUR) as site:
        error = await failure(f"http://two-faced.example:{site.port}", resolver)
    assert "127.0.0.1 is not a public address" in error.message
    assert resolver.asked == ["two-faced.example"] * 2
    assert [str(a) for a in attempts] == [HARBOUR]


async def test_of_several_addresses_only_the_public_ones_are_tried(
    canary: Canary, attempts: Attempts
) -> None:
    resolver = Liar(**{"mixed.example": [["127.0.0.1", "93.184.216.34", "::1", "10.0.0.1"]]})
    await failure(f"http://mixed.example:{canary.port}", resolver)
    assert {str(a) for a in attempts} == {"93.184.216.34"}


@pytest.mark.parametrize("variable", ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "https_proxy"])
async def test_no_proxy_of_the_environment_is_used(
    variable: str, canary: Canary, attempts: Attempts, harbour: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, f"http://127.0.0.1:{canary.port}")

    async def fine(wire: Wire) -> None:
        await wire.say(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine")

    async with raw_site(fine, host=HARBOUR) as site, HttpTransport({"site": Source("site")}) as transport:
        reply = await transport.send(Mirror("site", site.base), Request("/"))
        assert reply.body == b"fine"
    assert [str(a) for a in attempts] == [HARBOUR]


async def test_no_login_of_the_environment_is_used(
    harbour: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    logins = tmp_path / "netrc"
    logins.write_text(f"machine {HARBOUR} login me password secret\n")
    monkeypatch.setenv("NETRC", str(logins))

    async def fine(wire: Wire) -> None:
        await wire.say(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    async with raw_site(fine, host=HARBOUR) as site, HttpTransport({"site": Source("site")}) as transport:
        await transport.send(Mirror("site", site.base), Request("/"))
        assert b"authorization" not in site.heads[0].lower()


async def test_the_spellings_do_lead_to_the_canary_where_the_source_allows_it() -> None:
    """Else the tests above would show nothing."""
    alive = 0
    async with canary_listening() as canary:
        sources = {"site": Source("site", allow_private=True)}
        for base in [TARGETS[f"127.0.0.1, {spelling}"] for spelling in SPELLINGS] + [*ODD_BASES]:
            before = canary.connections
            async with HttpTransport(sources, resolver=liar()) as transport, asyncio.timeout(20):
                with suppress(SourceError):
                    await transport.send(Mirror("site", base.format(port=canary.port)), Request("/"))
            alive += canary.connections > before
    assert alive >= 25


async def test_the_completeness_report_says_why_and_what_to_do(canary: Canary, attempts: Attempts) -> None:
    declared = catalog(Source("site"), base=f"http://127.0.0.1:{canary.port}")
    async with Access(declared) as access:
        told = await answered(access, lookups(1))
    assert told.cause == (
        "refused: r.by_k at site: 127.0.0.1 is not a public address, and the source does not allow private"
        " ones: if it is meant to be there, declare `allow_private`"
    )


@pytest.mark.parametrize("address", PRIVATE)
@pytest.mark.parametrize("wrap", [None, "::ffff:{}", "64:ff9b::{}", "2606:2800:220:1:200:5efe:{}"])
def test_private_addresses_are_told_bare_and_wrapped(address: str, wrap: str | None) -> None:
    assert not addresses.is_public(ip_address(wrap.format(address) if wrap else address))


@pytest.mark.parametrize(
    "address",
    [
        "1.1.1.1",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.0",
        "168.63.129.15",
        "169.253.255.255",
        "172.15.255.255",
        "172.32.0.0",
        "192.0.1.0",
        "192.167.255.255",
        "192.169.0.0",
        "198.17.255.255",
        "198.20.0.0",
        "223.255.255.255",
        "2001:200::1",
        "2003::1",
        "2606:4700::1111",
        "2a00:1450:4001::1",
        "::ffff:1.1.1.1",
        "64:ff9b::1.1.1.1",
        "2606:2800:220:1:0:5efe:101:101",
    ],
)
def test_the_neighbours_of_private_addresses_are_public(address: str) -> None:
    assert addresses.is_public(ip_address(address))
