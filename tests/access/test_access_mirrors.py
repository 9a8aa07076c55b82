"""Mirrors race: exploring, preferring, hedging, failing over, leaving alone. In virtual time."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

from access_kit import Scripted, answered, catalog, lookups, page, rows_for, scan, status, visited

from fixtures.virtual import run
from mediator.access import Access
from mediator.access.limits.breaker import State
from mediator.catalog.model import Catalog, Mirror, Source
from mediator.catalog.wrapper import Reply, Request
from mediator.errors import Unreachable
from mediator.flow.events import Cancel

A, B = Source("a"), Source("b")


def network_of(**latencies: float | Callable[[], float]) -> Scripted:
    """Honest mirrors, each of its own speed."""

    async def reply(mirror: Mirror, request: Request) -> Reply:
        seconds = latencies[mirror.source]
        await asyncio.sleep(seconds() if callable(seconds) else seconds)
        return rows_for(request) if request.path == "/at" else page([[1, "a"]])

    return Scripted(reply)


def played(network: Scripted, declared: Catalog, play: Callable[[Access], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        async with Access(declared, transport=network, random=Random(1)) as access:
            await play(access)
        assert not +network.inside

    run(main())


async def one_by_one(access: Access, count: int) -> None:
    for key in range(count):
        told = await answered(access, lookups(key))
        assert told.keys == [key], "each row is delivered once"


class TestPreference:
    def test_all_are_explored_then_the_faster_is_preferred(self) -> None:
        async def play(access: Access) -> None:
            await one_by_one(access, 60)
            assert network.sources[0] != network.sources[1]
            assert set(network.sources[2:]) == {"a"}

        network = network_of(b=0.5, a=0.1)
        played(network, catalog(B, A), play)

    def test_a_slower_one_helps_when_the_faster_is_full(self) -> None:
        async def play(access: Access) -> None:
            await one_by_one(access, 10)
            network.sent.clear()
            await answered(access, lookups(*range(100, 400)))
            shares = Counter(network.sources)
            assert shares["a"] > shares["b"] >= 300 // 8

        network = network_of(a=0.1, b=0.3)
        played(network, catalog(A, B), play)

    def test_but_not_when_waiting_is_faster(self) -> None:
        async def play(access: Access) -> None:
            await one_by_one(access, 10)
            network.sent.clear()
            await answered(access, lookups(*range(100, 120)))
            assert set(network.sources) == {"a"}

        network = network_of(a=0.1, b=30.0)
        played(network, catalog(A, Source("b", deadline=100)), play)

    def test_a_mirror_that_has_become_fast_is_found_out(self) -> None:
        pace = {"a": 1.0, "b": 0.3}

        async def play(access: Access) -> None:
            await one_by_one(access, 20)
            pace["a"] = 0.01
            await one_by_one(access, 400)
            assert Counter(network.sources[-50:])["a"] >= 48

        network = network_of(a=lambda: pace["a"], b=lambda: pace["b"])
        played(network, catalog(A, B), play)


class TestHedging:
    def test_a_late_lookup_is_sent_to_another_mirror_and_the_first_reply_wins(self) -> None:
        latency = {"a": 0.1}

        async def play(access: Access) -> None:
            await one_by_one(access, 50)
            latency["a"] = 100.0
            network.sent.clear()
            network.abandoned = 0
            loop = asyncio.get_running_loop()
            began = loop.time()
            told = await answered(access, lookups(7))
            assert loop.time() - began < 0.1 * 1.2 + 0.5 + 0.01
            assert told.rows == [(7, "v7")]
            assert network.sources == ["a", "b"]
            assert network.abandoned == 1, "the loser is called back"
            mirrors = {m.source: m for m in access.statistics().method("r", "by_k").mirrors}
            assert mirrors["b"].hedges >= 1
            assert mirrors["a"].in_flight == mirrors["b"].in_flight == 0

        network = network_of(a=lambda: latency["a"], b=0.5)
        played(network, catalog(A, B), play)

    def test_the_tail_is_cut_for_a_few_more_requests(self) -> None:
        random = Random(5)

        def bimodal() -> float:
            return 2.0 if random.random() < 0.03 else random.uniform(0.09, 0.11)

        async def play(access: Access) -> None:
            loop = asyncio.get_running_loop()
            waits = []
            for key in range(1000):
                began = loop.time()
                await answered(access, lookups(key))
                waits.append(loop.time() - began)
            assert sorted(waits)[990] < 0.4
            assert len(network.sent) <= 1000 * 1.06

        network = network_of(a=bimodal, b=bimodal)
        played(network, catalog(A, B), play)

    def test_a_mirror_that_is_slow_for_all_is_not_hedged_without_end(self) -> None:
        pace = {"a": 0.1, "b": 0.12}

        async def play(access: Access) -> None:
            await one_by_one(access, 100)
            pace.update(a=1.0, b=1.0)
            network.sent.clear()
            await one_by_one(access, 300)
            assert len(network.sent) <= 300 * 1.1

        network = network_of(a=lambda: pace["a"], b=lambda: pace["b"])
        played(network, catalog(A, B), play)

    def test_the_very_first_request_is_hedged_too(self) -> None:
        async def play(access: Access) -> None:
            told = await answered(access, scan())
            assert asyncio.get_running_loop().time() < 2.0
            assert told.rows == [(1, "a")]

        network = network_of(a=25.0, b=0.1)
        played(network, catalog(A, B), play)

    def test_cancelling_calls_back_both(self) -> None:
        async def play(access: Access) -> None:
            visit, heard = visited(access)
            visit.ask(lookups(1))
            await asyncio.sleep(5.0)
            assert +network.inside == {"a": 1, "b": 1}
            visit.cancel(Cancel(1))
            await asyncio.sleep(0.001)
            assert not +network.inside
            assert not heard.events

        network = network_of(a=20.0, b=20.0)
        played(network, catalog(Source("a", deadline=100), Source("b", deadline=100)), play)


class TestFailingOver:
    def test_when_one_fails_for_good_the_other_is_tried(self) -> None:
        async def reply(mirror: Mirror, request: Request) -> Reply:
            await asyncio.sleep(0.1)
            return status(403) if mirror.source == "a" else rows_for(request)

        async def play(access: Access) -> None:
            await one_by_one(access, 10)
            assert {"a", "b"} == set(network.sources)

        network = Scripted(reply)
        played(network, catalog(A, B), play)

    def test_when_all_fail_the_lookup_fails_once(self) -> None:
        async def reply(mirror: Mirror, request: Request) -> Reply:
            await asyncio.sleep(0.1)
            return status(403)

        async def play(access: Access) -> None:
            told = await answered(access, lookups(1))
            assert told.cause == "refused: r.by_k at b: 403 Forbidden"
            assert len(told.events) == 1
            assert network.sources == ["a", "b"]

        network = Scripted(reply)
        played(network, catalog(A, B), play)

    def test_in_the_middle_of_a_scan_it_starts_over_elsewhere(self) -> None:
        async def reply(mirror: Mirror, request: Request) -> Reply:
            await asyncio.sleep(0.1)
            if request.path == "/2" and mirror.source == "a":
                return status(410)
            if request.path == "/2":
                return page([[2, "b"]])
            return page([[1, mirror.source]], ["/2"])

        async def play(access: Access) -> None:
            told = await answered(access, scan())
            assert told.exhausted == [()]
            assert told.rows == [(1, "a"), (1, "b"), (2, "b")], "what both brought vanishes where it is built"

        played(Scripted(reply), catalog(A, B), play)

    def test_but_not_when_it_is_called_back_in_the_moment_of_failing(self) -> None:
        async def play(access: Access) -> None:
            visit, heard = visited(access)

            async def reply(mirror: Mirror, request: Request) -> Reply:
                await asyncio.sleep(0.1)
                if request.path == "/scan":
                    return page([], ["/1", "/2"])
                visit.cancel(Cancel(1))
                return status(403)

            network.answer = reply
            visit.ask(scan())
            await asyncio.sleep(10.0)
            assert set(network.sources) == {"a"}
            assert not heard.events

        network = network_of()
        played(network, catalog(A, B), play)


class TestProbation:
    def test_a_mirror_that_is_down_is_left_alone_and_comes_back(self) -> None:
        down = {"a"}

        async def reply(mirror: Mirror, request: Request) -> Reply:
            await asyncio.sleep(0.01 if mirror.source == "a" else 0.2)
            if mirror.source in down:
                raise Unreachable("connection refused", again=True)
            return rows_for(request)

        async def play(access: Access) -> None:
            loop = asyncio.get_running_loop()
            await one_by_one(access, 100)
            mirrors = {m.source: m for m in access.statistics().method("r", "by_k").mirrors}
            assert mirrors["a"].state is State.OPEN
            assert mirrors["a"].requests <= 5 + 7, "no more than it took to find out, and some probes"
            down.clear()
            await asyncio.sleep(40.0)
            began = loop.time()
            await one_by_one(access, 300)
            assert Counter(network.sources[-100:])["a"] >= 95
            assert loop.time() - began < 0.2 * 150

        network = Scripted(reply)
        played(network, catalog(A, B), play)

    def test_while_one_is_down_the_other_answers_everything_without_delay(self) -> None:
        async def reply(mirror: Mirror, request: Request) -> Reply:
            await asyncio.sleep(0.01)
            if mirror.source == "a":
                return status(503)
            return rows_for(request)

        async def play(access: Access) -> None:
            told = await answered(access, lookups(*range(200)))
            assert told.keys == list(range(200))
            assert asyncio.get_running_loop().time() < 3.0

        network = Scripted(reply)
        played(network, catalog(A, B), play)
        assert Counter(network.sources)["a"] <= 20
