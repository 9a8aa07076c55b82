"""Sources that obey their robots.txt, over real HTTP: what it forbids is not asked, and the report says why."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from access_kit import Listener, answered, catalog, lookups, scan, visited
from aiohttp import web
from freshness_kit import in_shifted_time, later, listening

from mediator.access import Access
from mediator.access.web.robots_text import READ
from mediator.answering import Mediator
from mediator.catalog.login import KeyLogin
from mediator.catalog.model import Catalog, Mirror, Source
from mediator.catalog.secret import Secret

FORBIDS = "User-agent: *\nDisallow: /at\n"
Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Ruled:
    """Answers `/robots.txt` with `robots` (a text, a status, or whatever a coroutine does), and every other path."""

    robots: str | int | Answer = FORBIDS
    asked: list[str] = field(default_factory=list)
    heads: list[dict[str, str]] = field(default_factory=list)
    places: dict[str, Answer] = field(default_factory=dict)
    base: str = ""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request.path)
        self.heads.append(dict(request.headers))
        if request.path in self.places:
            return await self.places[request.path](request)
        if request.path != "/robots.txt":
            keys = request.query.get("k", "1").split(",")
            return web.json_response({"rows": [[int(k), f"v{k}"] for k in keys]})
        if isinstance(self.robots, str):
            return web.Response(text=self.robots)
        return (
            web.Response(status=self.robots) if isinstance(self.robots, int) else await self.robots(request)
        )

    @property
    def times_read(self) -> int:
        return self.asked.count("/robots.txt")

    def catalog(self, **source: Any) -> Catalog:
        options = {"allow_private": True, "robots": "obey", "attempts": 1, **source}
        return catalog(Source("site", **options), base=self.base)


@asynccontextmanager
async def ruled(robots: str | int | Answer = FORBIDS) -> AsyncIterator[Ruled]:
    site = Ruled(robots)
    async with listening(site.answer) as base:
        site.base = base
        yield site


def to(place: str, status: int = 302) -> Answer:
    async def redirect(request: web.Request) -> web.Response:
        return web.Response(status=status, headers={"Location": place})

    return redirect


async def test_what_is_forbidden_is_not_asked_and_the_cause_says_so() -> None:
    async with ruled() as site, Access(site.catalog()) as access:
        heard = await answered(access, lookups(1), scan(2))
        assert heard.failed == {
            (
                1,
            ): f"refused: r.by_k at site: robots.txt of {site.base} disallows /at for mediator (Disallow: /at); "
            "if you have leave to ask it nevertheless, declare robots: ignore"
        }
        assert heard.exhausted == [()]
        assert sorted(site.asked) == ["/robots.txt", "/scan"]
        assert site.heads[0]["User-Agent"].startswith("mediator/")


async def test_the_report_of_a_query_names_it() -> None:
    async with ruled() as site:
        relations = site.catalog()
        relation = relations.relations["r"]
        only = replace(relation, methods=(relation.method("by_k"),))
        async with (
            Mediator(replace(relations, relations={"r": only}), threads=1) as mediator,
            mediator.answering("SELECT v FROM r WHERE k = 1") as answers,
        ):
            assert [batch async for batch in answers] == []
            report = answers.report
        assert not report.complete
        assert "disallows /at for mediator" in "\n".join(report.lines())


async def test_who_ignores_it_does_not_ask_for_it() -> None:
    async with ruled() as site, Access(site.catalog(robots="ignore")) as access:
        assert (await answered(access, lookups(1))).keys == [1]
        assert site.asked == ["/at"]


async def test_it_is_fetched_once_for_all_that_want_it() -> None:
    async def slowly(request: web.Request) -> web.Response:
        await asyncio.sleep(0.05)
        return web.Response(text="User-agent: *\nDisallow: /nothing")

    async with ruled(slowly) as site, Access(site.catalog()) as access:
        heard = await answered(access, lookups(*range(30)), scan(2))
        assert heard.failed == {}
        assert site.times_read == 1
        assert site.asked[0] == "/robots.txt"


@pytest.mark.parametrize("concurrency", [1, 2])
async def test_it_takes_no_more_places_than_there_are(concurrency: int) -> None:
    """Whoever waits for it leaves his place to who fetches it: with only one place nothing would go on otherwise."""
    inside = most = 0

    async def counted(request: web.Request) -> web.Response:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        await asyncio.sleep(0.01)
        inside -= 1
        return web.json_response({"rows": []})

    async with ruled("") as site, Access(site.catalog(concurrency=concurrency)) as access:
        site.places |= {"/at": counted, "/robots.txt": counted}
        heard = await answered(access, lookups(*range(10)))
        assert len(heard.exhausted) == 10
        assert most <= concurrency
        assert access.statistics().source("site").in_flight == 0


async def test_no_more_wait_for_it_than_the_source_has_places() -> None:
    """The rest stays in line, where it can be called back, packed and paid for."""
    started, release = asyncio.Event(), asyncio.Event()

    async def slowly(request: web.Request) -> web.Response:
        started.set()
        await release.wait()
        return web.Response(text="")

    async with ruled(slowly) as site, Access(site.catalog(concurrency=3)) as access:
        visit, heard = visited(access)
        visit.ask(lookups(*range(50)))
        await started.wait()
        await asyncio.sleep(0.05)
        told = access.statistics().method("r", "by_k")
        assert (told.in_flight, told.queued) == (3, 47)
        release.set()
        await heard.ends(50)
        assert heard.keys == list(range(50))
        visit.close()


def test_it_holds_for_a_day() -> None:
    async def main() -> None:
        async with ruled() as site, Access(site.catalog()) as access:
            await answered(access, lookups(1))
            site.robots = ""
            await later(86_000)
            assert (await answered(access, lookups(1))).failed
            assert site.times_read == 1
            await later(500)
            assert (await answered(access, lookups(1))).keys == [1]
            assert site.times_read == 2

    in_shifted_time(main())


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 451, 300])
async def test_what_is_not_there_forbids_nothing(status: int) -> None:
    async with ruled(status) as site, Access(site.catalog()) as access:
        assert (await answered(access, lookups(1))).keys == [1]
        assert site.asked == ["/robots.txt", "/at"]


@pytest.mark.parametrize("status", [500, 501, 502, 503, 429, 304])
def test_what_cannot_be_read_forbids_everything_until_it_can(status: int) -> None:
    async def main() -> None:
        async with ruled(status) as site, Access(site.catalog()) as access:
            cause = (await answered(access, scan())).cause
            assert cause.startswith(
                f"refused: r.scan at site: robots.txt of {site.base} cannot be read ({status} "
            )
            assert "tried again after 60 s" in cause
            assert "robots: ignore" in cause
            site.robots = ""
            await later(30)
            assert (await answered(access, scan())).failed
            assert site.asked == ["/robots.txt"]
            await later(31)
            assert (await answered(access, scan())).keys == [1]
            assert site.asked == ["/robots.txt", "/robots.txt", "/scan"]

    in_shifted_time(main())


async def test_it_is_tried_a_few_times() -> None:
    left = [503, 503]

    async def at_last(request: web.Request) -> web.Response:
        return web.Response(status=left.pop()) if left else web.Response(text=FORBIDS)

    async with ruled(at_last) as site, Access(site.catalog(attempts=5)) as access:
        assert (await answered(access, scan())).keys == [1]
        assert site.times_read == 3


def test_the_old_rules_hold_on_while_new_ones_cannot_be_read() -> None:
    async def main() -> None:
        async with ruled() as site, Access(site.catalog()) as access:
            assert (await answered(access, scan())).keys == [1]
            site.robots = 500
            await later(90_000)
            assert (await answered(access, scan())).keys == [1]
            assert "disallows /at" in (await answered(access, lookups(1))).cause
            assert site.times_read == 2
            await later(61)
            site.robots = "User-agent: *\nDisallow: /scan"
            assert "disallows /scan" in (await answered(access, scan())).cause
            assert site.times_read == 3

    in_shifted_time(main())


async def test_nobody_there() -> None:
    async with ruled() as site:
        gone = site.catalog()
    async with Access(gone) as access:
        cause = (await answered(access, scan())).cause
        assert re.search(r"robots\.txt of http://127\.0\.0\.1:\d+ cannot be read \(.*onnect", cause), cause


async def test_one_that_hangs_costs_no_more_than_the_deadline() -> None:
    async def hang(request: web.Request) -> web.Response:
        await asyncio.sleep(60)
        return web.Response()

    async with ruled(hang) as site, Access(site.catalog(deadline=0.2)) as access:
        heard = await answered(access, lookups(1, 2, 3))
        assert all("cannot be read (no answer within 0.2 s)" in cause for cause in heard.failed.values())
        assert site.asked == ["/robots.txt"]


async def test_who_is_called_back_while_fetching_it_leaves_it_to_the_next() -> None:
    started, release = asyncio.Event(), asyncio.Event()

    async def slowly(request: web.Request) -> web.Response:
        started.set()
        await release.wait()
        return web.Response(text="")

    async with ruled(slowly) as site, Access(site.catalog()) as access:
        first, _ = visited(access)
        first.ask(lookups(1))
        await started.wait()
        second, heard = visited(access)
        second.ask(lookups(2))
        await asyncio.sleep(0.05)
        first.close()
        release.set()
        await heard.ends()
        assert heard.keys == [2]
        assert site.times_read == 2
        second.close()


@pytest.mark.parametrize(("hops", "followed"), [(5, True), (6, False)])
async def test_five_redirects_are_followed(hops: int, followed: bool) -> None:
    async with ruled(to("/r1")) as site, Access(site.catalog()) as access:
        for n in range(1, hops):
            site.places[f"/r{n}"] = to(f"/r{n + 1}")

        async def text(request: web.Request) -> web.Response:
            return web.Response(text=FORBIDS)

        site.places[f"/r{hops}"] = text
        heard = await answered(access, scan(), lookups(1, number=2))
        if followed:
            assert heard.exhausted == [()]
            assert "disallows /at" in heard.failed[1,]
        else:
            assert all("cannot be read (more than 5 redirects" in cause for cause in heard.failed.values())
            assert not {"/scan", "/at"} & {*site.asked}


async def test_a_redirect_to_another_place_counts_for_the_first_one() -> None:
    """As RFC 9309 has it: the file that is found in the end holds for where it was asked for."""
    async with (
        ruled() as other,
        ruled(to(f"{other.base}/robots.txt")) as site,
        Access(site.catalog()) as access,
    ):
        assert "disallows /at" in (await answered(access, lookups(1))).cause
        assert (site.asked, other.asked) == (["/robots.txt"], ["/robots.txt"])


async def test_a_page_is_not_followed_to_where_it_is_forbidden() -> None:
    async with ruled() as site, Access(site.catalog()) as access:
        site.places["/scan"] = to("/at?k=1")
        heard = await answered(access, scan())
        assert f"robots.txt of {site.base} disallows /at" in heard.cause
        assert site.asked == ["/robots.txt", "/scan"]


@pytest.mark.parametrize(
    ("robots", "may"), [(FORBIDS, False), ("User-agent: *\nDisallow: /b", True), (500, False)]
)
async def test_a_page_is_followed_to_another_place_by_the_rules_of_that_place(
    robots: str | int, may: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SITE_KEY", "a-secret-key")
    async with (
        ruled(robots) as other,
        ruled("") as site,
        Access(site.catalog(login=KeyLogin(site.base, Secret(env="SITE_KEY"), header="X-Key"))) as access,
    ):
        site.places["/scan"] = to(f"{other.base}/at?k=1")
        heard = await answered(access, scan())
        assert site.asked == ["/robots.txt", "/scan"]
        assert "X-Key" not in site.heads[0], "anybody may read it"
        assert site.heads[1]["X-Key"] == "a-secret-key"
        assert not any("X-Key" in head for head in other.heads), "it is meant for the first place alone"
        if may:
            assert (heard.keys, other.asked) == ([1], ["/robots.txt", "/at"])
        else:
            assert f"robots.txt of {other.base}" in heard.cause
            assert other.asked == ["/robots.txt"]


async def test_where_one_mirror_forbids_it_another_is_asked() -> None:
    async with ruled() as strict, ruled("") as open_:
        declared = catalog(*(Source(n, allow_private=True, robots="obey") for n in ("strict", "open")))
        relation = declared.relations["r"]
        mirrors = (Mirror("strict", strict.base), Mirror("open", open_.base))
        methods = tuple(replace(method, mirrors=mirrors) for method in relation.methods)
        relations = {"r": replace(relation, methods=methods)}
        async with Access(Catalog(relations, declared.sources)) as access:
            heard = await answered(access, lookups(1, 2, 3))
            assert heard.keys == [1, 2, 3]
            assert (strict.asked, set(open_.asked)) == (["/robots.txt"], {"/robots.txt", "/at"})


async def test_it_is_part_of_the_daily_budget() -> None:
    async with ruled("") as site, Access(site.catalog(daily=2)) as access:
        heard = await answered(access, lookups(1), lookups(2, number=2))
        assert len(heard.exhausted) == 1
        assert next(iter(heard.failed.values())).startswith("daily budget: ")
        assert len(site.asked) == 2


async def test_two_sources_at_one_place_read_it_once() -> None:
    async with ruled("") as site:
        declared = catalog(
            *(Source(n, allow_private=True, robots="obey") for n in ("a", "b")), base=site.base
        )
        async with Access(declared) as access:
            listener = Listener()
            visit = access.visit(listener)
            for number in range(6):
                visit.ask(lookups(number, number=number))
            await listener.ends(6)
            visit.close()
            assert listener.keys == list(range(6))
            assert site.times_read == 1


async def test_a_site_that_leads_everywhere_is_not_remembered_everywhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("mediator.access.web.robots._MOST_RULES", 100)
    many = "User-agent: *\n" + "".join(f"Disallow: /x{n}\n" for n in range(40))
    async with ruled(many) as site, Access(site.catalog(concurrency=1)) as access:
        others = [Ruled(many) for _ in range(5)]
        async with AsyncExitStack() as stack:
            for other in others:
                other.base = await stack.enter_async_context(listening(other.answer))
                site.places["/scan"] = to(f"{other.base}/scan")
                assert (await answered(access, scan())).keys == [1]
                assert len(access._robots._known) <= 2
                assert len(access._robots._locks) <= 2
        assert all(other.asked == ["/robots.txt", "/scan"] for other in others)
        assert site.times_read > 1, "it was forgotten as well, and is asked for again"


async def test_a_file_of_the_largest_size_holds_nobody_up() -> None:
    rules = "User-agent: *\nDisallow: /at\n" + "".join(f"Disallow: /some/where/{n}\n" for n in range(30_000))
    async with ruled(rules) as site, Access(site.catalog()) as access:
        heard = await answered(access, lookups(1), scan(2))
        assert "disallows /at" in heard.cause
        assert heard.exhausted == [()]
        assert len(rules) > READ
