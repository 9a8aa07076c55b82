"""Ceilings and budgets over real HTTP on loopback: what the site sees, and what its sockets see."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

from access_kit import Listener, answered, lookups, scan
from aiohttp import web
from test_access_http import at, lookup, said, serving

from fixtures import book_trade
from mediator.access import Access, Ceilings
from mediator.answering import Mediator
from mediator.catalog.model import Catalog


async def test_a_site_that_is_out_of_a_query_s_time_loses_the_connection() -> None:
    never = asyncio.Event()

    async def hangs(request: web.Request) -> web.StreamResponse:
        await never.wait()
        return said([])

    async with serving(hangs) as site, Access(at(site)) as access:
        told = Listener()
        access.visit(told, at={"site": Ceilings(seconds=0.05)}).ask(lookups(1, 2, 3))
        await told.ends(3)
        assert "ceiling: the query may spend 0.05 s with requests to site" in told.cause
        await site.until(lambda: site.inside == 0)
        assert site.disconnected == 3


async def test_retries_are_paid_for_and_pages_too() -> None:
    async def flaky(request: web.Request) -> web.StreamResponse:
        if len(site.requests) % 2:
            return web.Response(status=500)
        number = len(site.requests) // 2
        return said([[number, "x"]], [f"/scan/{number}"])

    async with serving(flaky) as site, Access(at(site)) as access:
        told = Listener()
        access.visit(told, at={"site": Ceilings(calls=5)}).ask(scan())
        await told.ends()
        assert len(site.requests) == 5
        assert told.keys == [1, 2]
        assert told.cause.startswith("ceiling: the query may send 5 requests to site")


async def test_bytes_are_those_of_the_bodies() -> None:
    async with serving(lookup) as site, Access(at(site, concurrency=1)) as access:
        told = Listener()
        access.visit(told, at={"site": Ceilings(bytes=80)}).ask(lookups(*range(10)))
        await told.ends(10)
        assert 1 < len(site.requests) < 10
        assert "(max_bytes), and has read" in told.cause


async def test_a_daily_budget_goes_for_all_queries_together() -> None:
    async with serving(lookup) as site, Access(at(site, daily=7)) as access:
        heard = await asyncio.gather(*(answered(access, lookups(n, 10 + n)) for n in range(5)))
        assert len(site.requests) == 7
        assert sum(len(told.failed) for told in heard) == 3
        assert {cause.split(":")[0] for told in heard for cause in told.failed.values()} == {"daily budget"}
        assert access.left_today() == {"site": 0}


async def test_other_sources_go_on_and_the_report_names_the_one(tmp_path: Path) -> None:
    """Five lookups of authors a day, in two processes that share a store; offers as many as are needed."""
    sql = (
        "SELECT a.name, o.price FROM books b JOIN authors a ON a.id = b.author_id "
        "JOIN offers o ON o.isbn = b.isbn"
    )
    async with book_trade(40, book_page=20) as trade:
        sites = dict(trade.catalog.sources)
        sites["who_is_who"] = replace(sites["who_is_who"], daily=5)
        for _ in range(2):
            async with (
                Mediator(Catalog(trade.catalog.relations, sites), threads=1, store=tmp_path) as mediator,
                mediator.answering(sql) as answers,
            ):
                async for _ in answers:
                    pass
                report = answers.report
            assert not report.complete
            failures = {r.relation: [f.cause.kind for f in r.failures] for r in report.relations}
            assert failures["authors"] == ["daily budget"]
            assert failures["books"] == []
            assert failures["offers"] == []
        # One that was about to be sent may have been called back: it counts, too.
        assert 3 <= trade.counters["authors"].requests <= 5
