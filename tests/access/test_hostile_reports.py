"""A hostile site is a line in the completeness report: which source, which limit, and what to do."""

from __future__ import annotations

import pytest
from access_kit import catalog
from hostile_kit import Wire, canary_listening, raw_site
from hostile_replies import REPLIES

from mediator.answering import answering
from mediator.catalog.model import Source
from mediator.output.report import Report

SQL = "SELECT v FROM r WHERE k = 1"


async def reported(base: str, private: bool = True) -> Report:
    declared = catalog(Source("site", allow_private=private, attempts=1), base=base)
    async with answering(SQL, declared) as answers:
        assert sum([batch.num_rows async for batch in answers]) == 0
    return answers.report


def missing(report: Report) -> list[str]:
    lines = [line for line in report.lines() if line.startswith("    missing: ")]
    assert lines
    return lines


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        ("a body without end", "the reply is larger than 33,554,432 bytes: ask for less at once"),
        ("zlib bomb", "the reply unpacks to more than 250 times its size: ask for it unpacked"),
        ("20,000 empty members", "the reply is packed in more than 10,000 pieces: ask for it unpacked"),
        ("brotli", "the reply is packed as 'br', which was not asked for: the site has to heed"),
        ("a million headers", "it has more than 128 headers: the site sends too much before its answer"),
        ("the value of a header without end", "one of its header lines is longer than 8,190 bytes: the site"),
        ("headers of 90 kB together", "its headers are larger than 65,536 bytes: the site sends too much"),
        ("a status of five digits", "not HTTP: Bad status line: Invalid response status"),
        ("SSH", "not HTTP: Bad status line: Expected HTTP/, RTSP/ or ICE/"),
        ("redirects without end", "more than 5 redirects: declare the address where the redirects end"),
        ("redirect to a circle", "its redirects go round in a circle at http://127.0.0.1:PORT/a: declare"),
        ("redirect to FTP", "it redirects from http to ftp://127.0.0.1/x: declare"),
    ],
)
async def test_a_broken_bound_is_named(reply: str, says: str) -> None:
    async with raw_site(REPLIES[reply].script) as site:
        report = await reported(site.base)
    assert not report.complete
    kind, said = REPLIES[reply].kinds[0], says.replace("PORT", str(site.port))
    assert all(f": {kind}: r." in line and f" at site: {said}" in line for line in missing(report))


async def test_a_private_address_is_named() -> None:
    async with canary_listening() as canary:
        report = await reported(f"http://127.0.0.1:{canary.port}", private=False)
        assert canary.connections == 0
    for line in missing(report):
        assert " at site: 127.0.0.1 is not a public address" in line
        assert line.endswith("if it is meant to be there, declare `allow_private`")


async def test_an_honest_site_is_complete() -> None:
    """Else the tests above would show nothing."""

    async def honest(wire: Wire) -> None:
        body = b'{"rows": [[2, "v"]]}'
        await wire.say(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)

    async with raw_site(honest) as site:
        assert (await reported(site.base)).complete
