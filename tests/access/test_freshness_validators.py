"""Over real HTTP: a page that has not changed is not sent again, and what it said stands."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from access_kit import Listener, Plain, answered, catalog, lookups, scan, table
from aiohttp import web
from freshness_kit import Changing, changing, listening
from hostile_kit import Wire, raw_site

import sources
from mediator.access import Access, Ceilings
from mediator.access.fresh.remembered import Memory
from mediator.catalog.model import Catalog, Mirror, Source
from mediator.catalog.wrapper import Binding, Page, Reply, Request

ROWS = [(1, "a"), (2, "b")]


async def test_what_has_not_changed_comes_without_a_body() -> None:
    async with changing() as site, Access(site.catalog()) as access:
        first = await answered(access, scan())
        again = await answered(access, scan())
        assert first.rows == again.rows == ROWS
        assert again.exhausted == [()]
        assert site.statuses == [200, 304]
        assert site.said[0].size > 0
        assert site.said[1].size == 0
        told = access.statistics().source("site")
        assert (told.requests, told.answered, told.rows) == (2, 2, 4), (
            "a 304 is a request, and brings its rows"
        )


async def test_what_has_changed_comes_anew_and_is_remembered_instead() -> None:
    async with changing() as site, Access(site.catalog()) as access:
        await answered(access, scan())
        site.rows = [(1, "z")]
        assert (await answered(access, scan())).rows == [(1, "z")]
        assert (await answered(access, scan())).rows == [(1, "z")]
        assert site.statuses == [200, 200, 304]
        site.rows = list(ROWS)
        assert (await answered(access, scan())).rows == ROWS


async def test_each_request_has_its_own_tag() -> None:
    async with changing() as site, Access(site.catalog()) as access:
        for keys in ((1,), (2,), (1, 2)):
            await answered(access, lookups(*keys))
        site.rows = [(1, "a"), (2, "changed")]
        heard = await answered(access, lookups(1, 2))
        assert sorted(heard.rows) == [(1, "a"), (2, "changed")]
        asked = {said.path: said.status for said in site.said[-2:]}
        assert asked == {"/at?k=1": 304, "/at?k=2": 200}


async def test_dates_do_where_there_is_no_tag() -> None:
    changed = format_datetime(datetime.now(UTC) - timedelta(days=1), usegmt=True)
    async with changing(tagged=False, headers={"Last-Modified": changed}) as site:
        async with Access(site.catalog()) as access:
            await answered(access, scan())
            assert (await answered(access, scan())).rows == ROWS
        assert site.statuses == [200, 304]
        assert site.said[1].headers["If-Modified-Since"] == changed
        assert "If-None-Match" not in site.said[1].headers


@pytest.mark.parametrize(
    "headers",
    [{"Cache-Control": "no-store"}, {"Cache-Control": "max-age=60, No-Store"}, {"Vary": "*"}],
)
async def test_what_may_not_be_stored_is_fetched_each_time(headers: dict[str, str]) -> None:
    async with changing(headers=headers) as site, Access(site.catalog()) as access:
        await answered(access, scan())
        assert (await answered(access, scan())).rows == ROWS
        assert site.statuses == [200, 200]
        assert not any(said.conditional for said in site.said)


async def test_a_304_that_says_no_store_is_the_last_one() -> None:
    async with changing() as site, Access(site.catalog()) as access:
        await answered(access, scan())
        site.headers = {"Cache-Control": "no-store"}
        assert (await answered(access, scan())).rows == ROWS
        await answered(access, scan())
        assert site.statuses == [200, 304, 200]


async def test_what_was_forgotten_is_asked_for_without_a_condition() -> None:
    async with changing() as site, Access(site.catalog()) as access:
        access._fetcher.memory._most = 8_000  # a few entries
        for key in range(1, 21):
            await answered(access, lookups(key))
        again = await answered(access, lookups(1))
        assert again.rows == [(1, "a")]
        assert site.statuses == [200] * 21
        assert 0 < access._fetcher.memory.size <= 8_000
        assert (await answered(access, lookups(20))).rows == []
        assert site.statuses[-1] == 304, "the latest were kept"


async def test_what_is_forgotten_while_it_is_asked_for_still_answers() -> None:
    async with changing() as site, Access(site.catalog()) as access:
        await answered(access, scan())
        memory = access._fetcher.memory
        original = site._page

        def forgetting(request: web.Request) -> web.Response:
            for key in list(memory._entries):
                memory.forget(key)
            return original(request)

        site._page = forgetting  # type: ignore[method-assign]
        assert (await answered(access, scan())).rows == ROWS
        assert site.statuses == [200, 304]
        assert (await answered(access, scan())).rows == ROWS


async def test_a_304_that_nobody_asked_for_is_a_failure() -> None:
    async with changing() as site, Access(site.catalog()) as access:
        site.overrides["/scan"] = [web.Response(status=304) for _ in range(2)]
        heard = await answered(access, scan())
        assert heard.rows == []
        assert heard.cause == (
            "unreadable: r.scan at site: 304 Not Modified, to a request without a condition: "
            "the site has to be mended"
        )
        assert (await answered(access, scan())).rows == ROWS


async def test_a_304_of_another_version_is_not_believed() -> None:
    async with changing() as site, Access(site.catalog()) as access:
        await answered(access, scan())
        site.overrides["/scan"] = [web.Response(status=304, headers={"ETag": '"another"'})]
        site.rows = [(3, "c")]
        assert (await answered(access, scan())).rows == [(3, "c")]
        assert site.statuses == [200, 304, 200]
        assert not site.said[2].conditional, "what it is not sure of it asks anew"


async def test_a_site_that_takes_no_notice_of_conditions_is_read_as_ever() -> None:
    async with changing(honest=False) as site, Access(site.catalog()) as access:
        for _ in range(3):
            assert (await answered(access, scan())).rows == ROWS
        assert site.statuses == [200] * 3
        assert site.said[2].conditional


@pytest.mark.parametrize("tag", ["rubbish", '"two" "tags"', '"\u00e9"', "W/", '"' + "x" * 2_000 + '"'])
async def test_rubbish_is_not_sent_back(tag: str) -> None:
    async with changing(tagged=False, headers={"ETag": tag, "Last-Modified": "tomorrow"}) as site:
        async with Access(site.catalog()) as access:
            for _ in range(2):
                assert (await answered(access, scan())).rows == ROWS
        assert site.statuses == [200, 200]
        assert not any(said.conditional for said in site.said)


async def test_an_error_does_not_forget_what_was_known() -> None:
    async with changing() as site, Access(site.catalog()) as access:
        await answered(access, scan())
        site.overrides["/scan"] = [web.Response(status=500)]
        assert (await answered(access, scan())).rows == ROWS
        assert site.statuses == [200, 500, 304]


async def test_further_pages_are_remembered_with_the_page_that_leads_to_them() -> None:
    async with changing() as site, Access(site.catalog()) as access:
        tagged = {"ETag": '"first"'}
        first = json.dumps({"rows": [[7, "g"]], "then": ["/more"]})
        site.overrides["/scan"] = [
            web.Response(text=first, headers=tagged),
            web.Response(status=304, headers=tagged),
        ]
        site.rows = [(8, "h")]
        assert (await answered(access, scan())).rows == [(7, "g"), (8, "h")]
        site.rows = [(9, "i")]
        assert (await answered(access, scan())).rows == [(7, "g"), (9, "i")]
        assert site.paths == ["/scan", "/more"] * 2
        assert site.statuses == [200, 200, 304, 200]


async def test_what_one_mirror_said_is_not_put_to_another() -> None:
    """Both use the same tag, for different rows. The race looks at each of them before it prefers one."""
    same = {"ETag": '"1"'}
    async with (
        changing(tagged=False, headers=same) as north,
        changing(tagged=False, headers=same, rows=[(5, "e")]) as south,
        Access(at_both(north, south)) as access,
    ):
        found = [(await answered(access, scan())).rows for _ in range(3)]
        assert sorted(found[:2]) == [ROWS, [(5, "e")]]
        assert found[2] in found[:2]
        assert not north.said[0].conditional
        assert not south.said[0].conditional
        assert all(said.conditional for said in north.said[1:] + south.said[1:])


def at_both(north: Changing, south: Changing) -> Catalog:
    declared = catalog(*(Source(name, allow_private=True, attempts=2) for name in ("north", "south")))
    relation = declared.relations["r"]
    mirrors = (Mirror("north", north.base), Mirror("south", south.base))
    methods = tuple(replace(method, mirrors=mirrors) for method in relation.methods)
    return Catalog({"r": replace(relation, methods=methods)}, declared.sources)


async def test_what_a_redirect_leads_to_is_not_asked_under_the_condition_of_the_first_address() -> None:
    """Two addresses may use the same tag for different things."""
    async with changing(tagged=False, headers={"ETag": '"1"'}) as site, Access(site.catalog()) as access:
        await answered(access, scan())
        site.overrides["/scan"] = [web.Response(status=302, headers={"Location": "/elsewhere"})]
        site.rows = [(5, "e")]
        assert (await answered(access, scan())).rows == [(5, "e")]
        assert site.paths == ["/scan", "/scan", "/elsewhere"]
        assert [said.conditional for said in site.said] == [False, True, False]


async def test_where_304_means_no_rows_nothing_is_asked_under_a_condition() -> None:
    async with changing() as site:
        async with Access(site.catalog(wrapper=Plain(empty_statuses=frozenset({304})))) as access:
            await answered(access, scan())
            site.overrides["/scan"] = [web.Response(status=304)]
            assert (await answered(access, scan())).rows == []
        assert not any(said.conditional for said in site.said)


async def test_a_304_costs_the_query_a_call_and_no_bytes() -> None:
    async with changing() as site, Access(site.catalog()) as access:
        await answered(access, scan())
        listener = Listener()
        visit = access.visit(listener, Ceilings(calls=1, bytes=1))
        visit.ask(scan())
        await listener.ends()
        assert listener.rows == ROWS
        assert listener.exhausted == [()]
        visit.close()
        assert site.statuses == [200, 304]


def test_the_memory_of_a_process_has_a_bound() -> None:
    assert 1 << 20 <= Memory()._most <= 1 << 28


@pytest.mark.parametrize(
    "headers",
    [
        b"Content-Encoding: gzip\r\n",
        b"Content-Length: 44\r\n",
        b"Content-Encoding: deflate\r\nContent-Length: 10485760\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"Content-Type: application/json\r\n",
    ],
)
async def test_headers_of_the_body_that_a_304_does_not_have_are_of_no_concern(headers: bytes) -> None:
    body = b'{"rows": [[1, "a"], [2, "b"]]}'

    async def script(wire: Wire) -> None:
        if b"If-None-Match" in wire.head:
            await wire.say(b'HTTP/1.1 304 Not Modified\r\nETag: "x"\r\n' + headers + b"\r\n")
        else:
            head = b'HTTP/1.1 200 OK\r\nETag: "x"\r\nContent-Length: %d\r\n\r\n' % len(body)
            await wire.say(head + body)

    async with raw_site(script) as site:
        source = Source("site", allow_private=True, attempts=1)
        async with Access(catalog(source, base=site.base)) as access:
            for _ in range(2):
                heard = await answered(access, scan())
                assert heard.failed == {}
                assert heard.rows == ROWS
        assert [b"If-None-Match" in head for head in site.heads] == [False, True]


@dataclass(frozen=True, slots=True)
class Knowing(Request):
    """Equal to those like it, but read by what it knows."""

    known: object = field(default=None, compare=False)


class Counted(Plain):
    """The first page says how the second is to be read."""

    def read(
        self, request: Request, bind_set: tuple[str, ...], bindings: Sequence[Binding], reply: Reply
    ) -> Page:
        rows = json.loads(reply.body)["rows"]
        if isinstance(request, Knowing):
            return Page(table([[k, f"{v} {request.known}"] for k, v in rows]))
        return Page(table([]), (Knowing("/more", known=rows[0][1]),))


async def test_a_page_that_was_read_by_what_another_said_is_read_anew_when_that_says_something_else() -> None:
    """Such as how many pages there are: else the old number would hold on."""
    async with changing() as site, Access(site.catalog(wrapper=Counted())) as access:
        site.tagged = False
        site.headers = {"ETag": '"same"'}
        first = [[1, "euro"]]
        site.places["/scan"] = lambda: ({"rows": first}, f'"{first[0][1]}"')
        site.rows = [(7, "price in")]
        assert (await answered(access, scan())).rows == [(7, "price in euro")]
        assert (await answered(access, scan())).rows == [(7, "price in euro")]
        assert site.statuses == [200, 200, 304, 304]
        first[0][1] = "yen"
        assert (await answered(access, scan())).rows == [(7, "price in yen")]
        assert site.statuses[4:] == [200, 200]
        assert not site.said[5].conditional


async def test_what_does_not_know_what_it_equals_is_read_anew() -> None:
    class Odd:
        def __eq__(self, other: object) -> bool:
            raise TypeError("not now")

        __hash__ = None  # type: ignore[assignment]

    class Oddly(Plain):
        def request(self, bind_set: tuple[str, ...], bindings: Sequence[Binding]) -> Request:
            return Knowing("/scan", known=Odd())

    async with changing() as site, Access(site.catalog(wrapper=Oddly())) as access:
        for _ in range(2):
            assert (await answered(access, scan())).rows == ROWS
        assert site.statuses == [200, 200]


async def test_a_304_that_leads_to_another_next_page_is_no_confirmation() -> None:
    async with changing(headers={"Link": '</a>; rel="next"'}) as site, Access(site.catalog()) as access:
        await answered(access, scan())
        site.headers = {"Link": '</b>; rel="next"'}
        assert (await answered(access, scan())).rows == ROWS
        assert site.statuses == [200, 304, 200]
        assert (await answered(access, scan())).rows == ROWS
        assert site.statuses[3:] == [304]


@pytest.mark.parametrize("pages", [{"offset": "from", "limit": "size", "size": 2, "total": "/total"}])
async def test_more_pages_than_last_time_are_all_read(pages: dict[str, Any], tmp_path: Path) -> None:
    """A site that has grown: the second page is as it was, but no longer the last one."""
    held = list(range(4))

    async def answer(request: web.Request) -> web.Response:
        start, size = int(request.query["from"]), int(request.query["size"])
        body = json.dumps({"rows": [{"k": k} for k in held[start : start + size]], "total": len(held)})
        tag = f'"{held[start : start + size]}{len(held) if start == 0 else ""}"'.replace(" ", "")
        if request.headers.get("If-None-Match") == tag:
            return web.Response(status=304, headers={"ETag": tag})
        return web.Response(text=body, headers={"ETag": tag})

    async with listening(answer) as base:
        file = tmp_path / "site.yaml"
        file.write_text(
            yaml.safe_dump(
                {
                    "sources": {"site": {"base": base, "allow_private": True}},
                    "relations": {
                        "r": {
                            "fields": {"k": "int64"},
                            "methods": {
                                "scan": {
                                    "mirrors": ["site"],
                                    "request": {"path": "/n"},
                                    "pages": pages,
                                    "reply": {"kind": "json", "rows": "/rows"},
                                }
                            },
                        }
                    },
                }
            )
        )
        async with Access(sources.load(file)) as access:
            for count in (4, 4, 9, 3, 6):
                held[:] = range(count)
                heard = await answered(access, scan())
                assert heard.failed == {}
                found = [row["k"] for landing in heard.landings for row in landing.rows.to_pylist()]
                assert sorted(found) == held
