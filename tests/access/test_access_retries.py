"""What is asked again, when, and what is not; endless pages; unreadable replies. In virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from access_kit import (
    Listener,
    Plain,
    Scripted,
    answered,
    catalog,
    in_turn,
    lookups,
    page,
    scan,
    status,
    steady,
)

from fixtures.virtual import run
from mediator.access import Access
from mediator.catalog.model import Catalog, Mirror, Source
from mediator.catalog.wrapper import Page, Reply, Request
from mediator.errors import RateLimited, Refused, SchemaChanged, TimedOut, Unreachable, Unreadable
from mediator.flow.events import Ask

NOON = datetime(2026, 11, 3, 12, tzinfo=UTC)
Check = Callable[[Access], None]


def heard(network: Scripted, declared: Catalog, *asks: Ask, seed: int = 1) -> Listener:
    """What one visit hears of these asks."""

    async def main() -> Listener:
        async with Access(declared, transport=network, random=Random(seed), today=lambda: NOON) as access:
            return await answered(access, *asks)

    return run(main())


def gaps(network: Scripted) -> list[float]:
    return [b - a for a, b in zip(network.times, network.times[1:], strict=False)]


ONCE_MORE: list[Reply | Exception] = [
    Unreachable("reset", again=True),
    TimedOut("no connection in time", again=True),
    *(status(code) for code in (202, 206, 408, 425, 429, 500, 502, 503, 504)),
]


class TestAgain:
    @pytest.mark.parametrize("trouble", ONCE_MORE, ids=str)
    def test_what_may_pass_is_asked_again(self, trouble: Reply | Exception) -> None:
        network = in_turn(trouble, page([[1, "a"]]))
        told = heard(network, catalog(), lookups(1))
        assert told.exhausted == [(1,)]
        assert told.rows == [(1, "a")]
        assert len(network.sent) == 2

    @pytest.mark.parametrize("code", [301, 400, 401, 403, 404, 410, 451, 501, 505, 599])
    def test_what_will_not_is_not(self, code: int) -> None:
        network = in_turn(status(code))
        told = heard(network, catalog(), lookups(1))
        assert told.cause.startswith(f"refused: r.by_k at site: {code}")
        assert len(network.sent) == 1

    @pytest.mark.parametrize(
        ("code", "cause"),
        [
            (202, "refused: r.scan at site: 202 Accepted: what was asked for is not ready yet"),
            (
                206,
                "unreadable: r.scan at site: 206 Partial Content, to a request for all: the site has to be mended",
            ),
        ],
    )
    def test_what_is_not_all_is_not_taken_for_it(self, code: int, cause: str) -> None:
        told = heard(in_turn(page([[1, "a"]], status=code)), catalog(), scan())
        assert (told.rows, told.cause) == ([], cause)

    def test_what_is_not_ready_is_asked_for_when_the_site_says(self) -> None:
        network = in_turn(status(202, Retry_After="7"), page([[1, "a"]]))
        assert heard(network, catalog(), scan()).rows == [(1, "a")]
        assert 7.0 <= gaps(network)[0] <= 7.2

    def test_a_part_that_was_asked_for_is_all_of_it(self) -> None:
        class Ranged(Plain):
            def request(self, *args: Any) -> Request:
                return replace(super().request(*args), headers=(("Range", "rows=0-9"),))

        told = heard(in_turn(page([[1, "a"]], status=206)), catalog(wrapper=Ranged()), scan())
        assert told.rows == [(1, "a")]
        assert told.exhausted

    def test_a_wrapper_may_know_that_nothing_is_meant(self) -> None:
        told = heard(in_turn(status(202)), catalog(wrapper=Plain(frozenset({202}))), scan())
        assert (told.rows, len(told.exhausted)) == ([], 1)

    def test_the_gaps_grow_and_differ(self) -> None:
        network = in_turn(status(503))
        for seed in range(20):
            network.sent.clear()
            told = heard(network, catalog(Source("site", attempts=5)), lookups(1), seed=seed)
            assert told.cause == "refused: r.by_k at site: 503 Service Unavailable"
            assert len(network.sent) == 5
            for n, gap in enumerate(gaps(network)):
                assert 0.05 * 2**n <= gap <= 0.1 * 2**n

    def test_a_page_that_is_asked_again_lands_once(self) -> None:
        trouble = status(500), Unreachable("cut", again=True)
        told = heard(in_turn(page([[1, "a"]], ["/2"]), *trouble, page([[2, "b"]])), catalog(), scan())
        assert told.rows == [(1, "a"), (2, "b")]

    def test_the_wrapper_may_say_later(self) -> None:
        class Moody(Plain):
            def read(self, request: Any, bind_set: Any, bindings: Any, reply: Reply) -> Page:
                if reply.body == b"no":
                    raise RateLimited("slow down, said the body", again=True, after=3.0)
                return super().read(request, bind_set, bindings, reply)

        network = in_turn(status(200), page([]))
        assert heard(network, catalog(wrapper=Moody()), lookups(1)).exhausted == [(1,)]
        assert gaps(network)[0] >= 3.0


class TestRetryAfter:
    @pytest.mark.parametrize("said", ["7", "Tue, 03 Nov 2026 12:00:07 GMT"])
    @pytest.mark.parametrize("code", [429, 503])
    def test_is_obeyed_in_seconds_and_dates(self, code: int, said: str) -> None:
        network = in_turn(status(code, Retry_After=said), page([]))
        assert heard(network, catalog(), lookups(1)).exhausted == [(1,)]
        assert 7.0 <= gaps(network)[0] <= 7.2

    def test_after_too_many_nobody_asks_before(self) -> None:
        network = in_turn(status(429, Retry_After="7"), page([]))
        heard(network, catalog(Source("site", concurrency=1)), lookups(1, 2, 3))
        assert [t >= 7.0 for t in network.times] == [False, True, True, True]

    def test_is_not_waited_for_past_the_deadline(self) -> None:
        async def main() -> None:
            async with Access(catalog(Source("site", deadline=10.0)), transport=network) as access:
                told = await answered(access, lookups(1))
                assert told.cause == (
                    "rate limited: r.by_k at site: 429 Too Many Requests; it asks to be left alone for 3,600 s, and"
                    " that is more than is left of the deadline of 10 s: raise 'deadline' to wait for it"
                )
                assert asyncio.get_running_loop().time() == 0.0, (
                    "it is known at once that it would be too late"
                )
                others = await answered(access, lookups(*range(2, 200)))
                assert len(others.failed) == 198
                assert others.cause == (
                    "rate limited: site has asked to be left alone for 3,600 s, and that is more than its deadline of"
                    " 10 s: raise 'deadline' to wait for it"
                )
                assert len(network.sent) == 1, "a site that is asked all the same may shut its doors for good"
                await asyncio.sleep(3600.0)
                assert (await answered(access, lookups(1))).exhausted == [(1,)]

        network = in_turn(status(429, Retry_After="3600"), page([]))
        run(main())

    def test_no_longer_than_an_hour_is_believed(self) -> None:
        async def main() -> None:
            async with Access(catalog(), transport=network) as access:
                assert (await answered(access, lookups(1))).failed
                await asyncio.sleep(3599.0)
                assert (await answered(access, lookups(1))).failed
                await asyncio.sleep(1.0)
                assert (await answered(access, lookups(1))).exhausted == [(1,)]

        network = in_turn(status(429, Retry_After=str(7 * 86_400)), page([]))
        run(main())
        assert len(network.sent) == 2

    def test_another_mirror_is_asked_meanwhile(self) -> None:
        async def reply(mirror: Mirror, request: Request) -> Reply:
            return status(429, Retry_After="3600") if mirror.source == "one" else page([])

        async def main() -> None:
            async with Access(two, transport=network) as access:
                told = await answered(access, lookups(*range(50)))
                assert len(told.exhausted) == 50

        network = Scripted(reply)
        two = catalog(Source("one"), Source("two"))
        run(main())
        assert network.sources.count("one") <= Source("one").concurrency


class TestDeadline:
    def test_spans_all_attempts(self) -> None:
        async def hang(mirror: Mirror, request: Request) -> Reply:
            await asyncio.sleep(1e9)
            raise AssertionError

        async def main() -> None:
            async with Access(catalog(Source("site", deadline=8.0)), transport=network) as access:
                told = await answered(access, lookups(1))
                assert told.cause.startswith("timed out: r.by_k at site: no ")
                assert asyncio.get_running_loop().time() == pytest.approx(8.0, abs=1.0)

        network = Scripted(hang)
        run(main())
        assert 3 <= len(network.sent) <= 5
        assert network.times[1] >= 4.0, "the first attempt gets half of the time"
        assert network.abandoned == len(network.sent)

    def test_one_that_hangs_leaves_time_for_the_next(self) -> None:
        async def reply(mirror: Mirror, request: Request) -> Reply:
            await asyncio.sleep(1e9 if len(network.sent) == 1 else 1.0)
            return page([])

        network = Scripted(reply)
        assert heard(network, catalog(Source("site", deadline=8.0)), lookups(1)).exhausted == [(1,)]

    def test_waiting_in_the_queue_is_not_charged(self) -> None:
        network = steady(5.0)
        told = heard(network, catalog(Source("site", concurrency=1, deadline=11.0)), lookups(*range(10)))
        assert len(told.exhausted) == 10

    def test_each_page_has_its_own(self) -> None:
        network = in_turn(*[page([[n, "x"]], [f"/{n}"]) for n in range(9)], page([]), seconds=4.0)
        assert heard(network, catalog(Source("site", deadline=9.0)), scan()).keys == list(range(9))


class TestGarbage:
    def test_is_given_a_second_look_and_no_third(self) -> None:
        network = in_turn(Reply(200, {}, b'{"rows": ['))
        told = heard(network, catalog(), lookups(1))
        assert told.cause.startswith("unreadable: r.by_k at site: not JSON")
        assert len(network.sent) == 2
        network = in_turn(Reply(200, {}, b'{"rows": ['), page([[1, "a"]]))
        assert heard(network, catalog(), lookups(1)).rows == [(1, "a")]

    def test_a_wrapper_that_fails_is_named(self) -> None:
        network = in_turn(Reply(200, {}, b"[]"))
        told = heard(network, catalog(), lookups(1))
        assert told.cause.startswith(
            "unreadable: r.by_k at site: the wrapper Plain of r.by_k cannot read the reply"
        )
        assert "TypeError" in told.cause

    def test_a_changed_schema_is_final(self) -> None:
        class Strict(Plain):
            def read(self, request: Any, bind_set: Any, bindings: Any, reply: Reply) -> Page:
                raise SchemaChanged("r: expected 'k', found 'key'")

        network = in_turn(page([]))
        told = heard(network, catalog(wrapper=Strict()), lookups(1))
        assert told.cause == "schema changed: r.by_k at site: r: expected 'k', found 'key'"
        assert len(network.sent) == 1

    def test_rows_of_another_shape_do_not_get_in(self) -> None:
        class Wrong(Plain):
            def read(self, request: Any, bind_set: Any, bindings: Any, reply: Reply) -> Page:
                return Page(pa.RecordBatch.from_pydict({"k": ["1"], "v": ["a"]}))

        told = heard(in_turn(page([])), catalog(wrapper=Wrong()), lookups(1))
        assert told.cause.startswith("schema changed")
        assert "k: string" in told.cause
        assert "k: int64" in told.cause
        assert not told.landings

    def test_a_large_reply_is_read_in_a_thread_and_may_fail_there(self) -> None:
        rows = [[n, "x" * 100] for n in range(2_000)]
        assert len(heard(in_turn(page(rows)), catalog(), scan()).rows) == 2_000
        told = heard(in_turn(Reply(200, {}, b"x" * 200_000)), catalog(), scan())
        assert told.cause.startswith("unreadable")

    def test_no_is_an_answer_where_the_wrapper_says_so(self) -> None:
        told = heard(in_turn(status(404)), catalog(wrapper=Plain(frozenset({404}))), lookups(1))
        assert told.exhausted == [(1,)]
        assert not told.landings


class TestPages:
    def test_in_a_chain_and_side_by_side(self) -> None:
        async def reply(mirror: Mirror, request: Request) -> Reply:
            await asyncio.sleep(1.0)
            number = int(request.path.rpartition("/")[2]) if request.path != "/scan" else 0
            then = {0: ["/1"], 1: [f"/{n}" for n in range(2, 10)]}.get(number, [])
            return page([[number, "x"]], then)

        async def main() -> None:
            async with Access(catalog(Source("site", concurrency=4)), transport=network) as access:
                told = await answered(access, scan())
                assert told.keys == list(range(10))
                assert isinstance(told.events[-1], tuple)
                assert asyncio.get_running_loop().time() == 4.0
                assert network.peak["site"] == 4

        network = Scripted(reply)
        run(main())

    def test_pages_side_by_side_may_lead_on(self) -> None:
        async def reply(mirror: Mirror, request: Request) -> Reply:
            await asyncio.sleep(1.0)
            path = request.path if request.path != "/scan" else "/"
            return page([[len(path), path]], [path + "a", path + "b"] if len(path) < 4 else [])

        told = heard(Scripted(reply), catalog(Source("site", concurrency=3)), scan())
        assert sorted(v for _, v in told.rows) == sorted(
            "/" + "".join("ab"[(i >> b) & 1] for b in range(d)) for d in range(4) for i in range(2**d)
        )

    def test_one_page_that_fails_ends_the_flight_and_the_rows_that_landed_stay(self) -> None:
        async def reply(mirror: Mirror, request: Request) -> Reply:
            await asyncio.sleep(1.0)
            if request.path == "/3":
                return status(403)
            return page([[1, request.path]], [f"/{n}" for n in range(9)] if request.path == "/scan" else [])

        network = Scripted(reply)
        told = heard(network, catalog(Source("site", concurrency=2)), scan())
        assert told.cause == "refused: r.scan at site: 403 Forbidden"
        assert {v for _, v in told.rows} >= {"/scan", "/0", "/1"}
        assert len(network.sent) <= 7

    @pytest.mark.parametrize("then", [["/scan"], ["/2", "/2"], ["/2", "/3", "/scan"]])
    def test_pages_that_lead_back_are_endless(self, then: list[str]) -> None:
        told = heard(in_turn(page([[1, "a"]], then)), catalog(), scan())
        assert told.cause.startswith("endless: r.scan at site: its pages lead back")
        assert told.rows == [(1, "a")], "what was found stays found"

    @pytest.mark.parametrize("back", ["/scan", "http://site.test/scan", "http://SITE.test/scan#top"])
    def test_the_first_page_is_known_again_however_it_is_written(self, back: str) -> None:
        """It is made by the wrapper, and what leads back to it by the site."""

        @dataclass(frozen=True, slots=True)
        class Numbered(Request):
            number: int = field(default=0, compare=False)

        class Counting(Plain):
            def read(self, *args: Any) -> Page:
                page = super().read(*args)
                return replace(page, then=tuple(Numbered(r.path, rooted=True) for r in page.then))

        network = in_turn(page([[1, "a"]], ["/2"]), page([[2, "b"]], [back]))
        told = heard(network, catalog(wrapper=Counting()), scan())
        assert told.cause.startswith("endless: r.scan at site: its pages lead back")
        assert told.rows == [(1, "a"), (2, "b")]
        assert len(network.sent) == 2

    def test_more_pages_than_allowed_are_endless(self) -> None:
        async def reply(mirror: Mirror, request: Request) -> Reply:
            return page([[len(network.sent), "x"]], [f"/{len(network.sent)}"])

        network = Scripted(reply)
        told = heard(network, catalog(max_pages=7), scan())
        assert (
            told.cause
            == "endless: r.scan at site: it has more than 7 pages, which is as many as max_pages allows"
        )
        assert len(told.rows) == len(network.sent) == 7


class TestDown:
    def test_a_dead_site_costs_few_requests_and_ends_every_lookup(self) -> None:
        async def dead(mirror: Mirror, request: Request) -> Reply:
            await asyncio.sleep(0.01)
            raise Unreachable("connection refused", again=True)

        async def main() -> None:
            async with Access(catalog(Source("site", deadline=30.0)), transport=network) as access:
                told = await answered(access, lookups(*range(500)))
                assert len(told.failed) == 500
                assert asyncio.get_running_loop().time() <= 31.0

        network = Scripted(dead)
        run(main())
        assert len(network.sent) <= 30

    def test_a_short_blip_fails_nothing(self) -> None:
        async def blip(mirror: Mirror, request: Request) -> Reply:
            await asyncio.sleep(0.01)
            if asyncio.get_running_loop().time() < 1.0:
                raise Unreachable("connection refused", again=True)
            return page([])

        told = heard(Scripted(blip), catalog(), lookups(*range(500)))
        assert len(told.exhausted) == 500


def test_a_fault_of_the_engine_ends_the_flight_and_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    network = in_turn(ZeroDivisionError("a bug"))
    told = heard(network, catalog(), lookups(1))
    assert told.cause == "internal: r.by_k: a fault of the engine: ZeroDivisionError('a bug')"
    assert "ZeroDivisionError" in caplog.text


def test_an_error_that_says_no_is_believed() -> None:
    for error in (Refused("certificate"), Unreadable("the reply is larger than 9 bytes")):
        network = in_turn(error)
        assert error.message in heard(network, catalog(), lookups(1)).cause
        assert len(network.sent) == 1
