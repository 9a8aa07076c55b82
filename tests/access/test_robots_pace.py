"""Crawl-delay, in virtual time: no two requests to the source come closer than it asks."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest
from access_kit import Scripted, answered, catalog, lookups, rows_for, visited

from fixtures import virtual
from mediator.access import Access
from mediator.catalog.model import Mirror, Source
from mediator.catalog.wrapper import Reply, Request


def ruled(*robots: str, seconds: float = 0.0) -> Scripted:
    """A site whose robots.txt is each of these in turn, the last one for ever."""
    left = list(robots)

    async def answer(mirror: Mirror, request: Request) -> Reply:
        await asyncio.sleep(seconds)
        if request.path == "/robots.txt":
            said = left.pop(0) if len(left) > 1 else left[0]
            return Reply(200, {}, said.encode())
        return rows_for(request)

    return Scripted(answer)


def gaps(site: Scripted) -> list[float]:
    return [later - earlier for earlier, later in pairwise(site.times)]


@pytest.mark.parametrize(
    ("said", "rate", "least", "most"),
    [
        ("Crawl-delay: 5", None, 5.0, 5.2),
        ("Crawl-delay: 5", 100.0, 5.0, 5.2),
        ("Crawl-delay: 0.01", 0.5, 2.0, 2.1),  # what is declared may ask for more
        ("Crawl-delay: 100000", None, 60.0, 61.5),
        ("Crawl-delay: soon", None, 0.0, 0.0),
    ],
)
def test_requests_are_as_far_apart_as_it_says(
    said: str, rate: float | None, least: float, most: float
) -> None:
    site = ruled(f"User-agent: *\n{said}")

    async def main() -> None:
        async with Access(catalog(Source("site", rate=rate, robots="obey")), transport=site) as access:
            visit, heard = visited(access)
            visit.ask(lookups(*range(6)))
            await asyncio.sleep(1_000)
            assert heard.keys == list(range(6))
            visit.close()
        assert len(site.sent) == 7
        assert all(gap >= least for gap in gaps(site)), gaps(site)
        # The first place was taken before anybody knew, and left to whoever fetches the file.
        assert all(gap <= most for gap in gaps(site)[1:]), gaps(site)

    virtual.run(main())


def test_it_is_of_no_concern_to_who_ignores_it() -> None:
    site = ruled("User-agent: *\nCrawl-delay: 5")

    async def main() -> None:
        async with Access(catalog(Source("site")), transport=site) as access:
            await answered(access, lookups(*range(6)))
        assert len(site.sent) == 6
        assert site.times[-1] == 0.0

    virtual.run(main())


def test_what_it_no_longer_says_no_longer_holds() -> None:
    site = ruled("User-agent: *\nCrawl-delay: 5", "User-agent: *\nDisallow: /x")

    async def main() -> None:
        async with Access(catalog(Source("site", robots="obey")), transport=site) as access:
            await answered(access, lookups(1, 2))
            await asyncio.sleep(90_000)
            before = len(site.sent)
            await answered(access, lookups(*range(10)))
            found = gaps(site)[before + 1 :]
            assert sum(found) < 5.2, "only the file itself is waited for"

    virtual.run(main())


def test_a_source_with_a_rate_keeps_it_while_the_file_is_fetched() -> None:
    site = ruled("", seconds=0.1)

    async def main() -> None:
        async with Access(catalog(Source("site", rate=4.0, robots="obey")), transport=site) as access:
            await answered(access, lookups(*range(8)))
        assert len(site.sent) == 9
        assert all(gap >= 0.25 for gap in gaps(site)), gaps(site)

    virtual.run(main())


def test_one_that_is_read_again_and_again_by_many_is_read_once_a_day() -> None:
    site = ruled("User-agent: *\nDisallow: /x", seconds=0.5)

    async def main() -> None:
        async with Access(catalog(Source("site", robots="obey")), transport=site) as access:
            for day in range(3):
                async with asyncio.TaskGroup() as group:
                    for number in range(20):
                        group.create_task(answered(access, lookups(number + 100 * day)))
                await asyncio.sleep(86_400)
        assert [r.path for _, _, r in site.sent].count("/robots.txt") == 3

    virtual.run(main())
