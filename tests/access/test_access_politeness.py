"""How hard a site is pressed: retries are budgeted, late requests sent twice, fewer asked where it is too much."""

from __future__ import annotations

import asyncio
from random import Random

import pytest
from access_kit import Listener, Scripted, answered, catalog, lookups, page, rows_for, scan, status

from fixtures.virtual import run
from mediator.access import Access, Ceilings
from mediator.access.limits.budget import Budget
from mediator.access.limits.width import Width
from mediator.catalog.model import Catalog, Mirror, Source
from mediator.catalog.wrapper import Reply, Request


class TestBudget:
    def test_pays_for_what_was_saved_then_for_a_share_and_a_trickle(self) -> None:
        async def main() -> None:
            loop = asyncio.get_running_loop()
            budget = Budget(loop.time, share=0.1, trickle=1.0, saved=3.0)
            assert [budget.pays() for _ in range(4)] == [True, True, True, False]
            for _ in range(10):
                budget.earn()
            assert [budget.pays() for _ in range(2)] == [True, False]
            await asyncio.sleep(2.0)
            assert [budget.pays() for _ in range(3)] == [True, True, False]

        run(main())

    def test_who_waits_is_served_in_the_order_of_coming_and_who_left_costs_nothing(self) -> None:
        async def main() -> None:
            loop = asyncio.get_running_loop()
            budget = Budget(loop.time, share=0.5, trickle=1.0, saved=1.0)
            assert budget.pays()
            served: list[tuple[int, float]] = []

            async def wait(number: int) -> None:
                await budget.paid()
                served.append((number, round(loop.time(), 6)))

            tasks = [loop.create_task(wait(n)) for n in range(4)]
            await asyncio.sleep(0.5)
            assert budget.waiting == 4
            assert not budget.pays(), "nobody goes before those who wait"
            tasks[1].cancel()
            budget.earn()
            await asyncio.wait(tasks)
            assert served == [(0, 0.5), (2, 1.5), (3, 2.5)]

        run(main())


class TestRetries:
    def test_a_site_that_often_fails_gets_a_tenth_more_and_a_trickle(self) -> None:
        random = Random(3)

        async def flaky(mirror: Mirror, request: Request) -> Reply:
            await asyncio.sleep(0.1)
            return status(500) if random.random() < 0.3 else rows_for(request)

        async def main() -> None:
            declared = catalog(Source("site", concurrency=4, deadline=10.0))
            async with Access(declared, transport=network, random=Random(1)) as access:
                told = await answered(access, lookups(*range(1_000)))
                seconds = asyncio.get_running_loop().time()
                assert 1_000 < len(network.sent) <= 1.1 * 1_000 + 10 + seconds
                assert len(told.exhausted) > 500
                assert len(told.exhausted) + len(told.failed) == 1_000

        network = Scripted(flaky)
        run(main())

    def test_a_few_faults_among_many_replies_fail_nothing(self) -> None:
        random = Random(3)

        async def moody(mirror: Mirror, request: Request) -> Reply:
            await asyncio.sleep(0.1)
            return status(500) if random.random() < 0.08 else rows_for(request)

        async def main() -> None:
            async with Access(catalog(), transport=Scripted(moody), random=Random(1)) as access:
                assert len((await answered(access, lookups(*range(1_000)))).exhausted) == 1_000

        run(main())

    def test_a_small_site_that_says_not_now_answers_all_without_waiting_for_the_trickle(self) -> None:
        inside = 0

        async def small(mirror: Mirror, request: Request) -> Reply:
            nonlocal inside
            if inside >= 16:
                return status(503)
            inside += 1
            await asyncio.sleep(0.1)
            inside -= 1
            return rows_for(request)

        async def main() -> None:
            declared = catalog(Source("site", concurrency=32, deadline=30.0))
            async with Access(declared, transport=Scripted(small), random=Random(1)) as access:
                assert len((await answered(access, lookups(*range(100)))).exhausted) == 100
                assert asyncio.get_running_loop().time() < 5.0

        run(main())

    def test_a_site_that_only_says_not_now_gets_no_more_than_one_that_fails(self) -> None:
        async def never(mirror: Mirror, request: Request) -> Reply:
            await asyncio.sleep(0.1)
            return status(503)

        async def main() -> None:
            declared = catalog(Source("site", concurrency=4, deadline=10.0))
            async with Access(declared, transport=network, random=Random(1)) as access:
                told = await answered(access, lookups(*range(200)))
                assert len(told.failed) == 200
                assert len(network.sent) <= 1.1 * 200 + 10 + asyncio.get_running_loop().time()

        network = Scripted(never)
        run(main())


class TestTwice:
    def once_late(self, declared: Catalog, fails: bool = False) -> tuple[Scripted, float]:
        """A site whose hundredth request hangs; how long that lookup took."""

        async def reply(mirror: Mirror, request: Request) -> Reply:
            late = len(network.sent) == 100
            await asyncio.sleep(20.0 if late else 0.1)
            return status(403) if fails and len(network.sent) > 100 else rows_for(request)

        async def main() -> float:
            loop = asyncio.get_running_loop()
            async with Access(declared, transport=network, random=Random(1)) as access:
                for key in range(99):
                    await answered(access, lookups(key))
                began = loop.time()
                told = await answered(access, lookups(99))
                took = loop.time() - began
                if not fails:
                    assert told.rows == [(99, "v99")], "the row lands once"
                (mirror,) = access.statistics().method("r", "by_k").mirrors
                assert mirror.in_flight == 0
                assert mirror.asked == 100, "it is one lookup, however often it was sent"
                return took

        network = Scripted(reply)
        return network, run(main())

    def test_a_late_request_is_sent_once_more_where_the_source_allows_it(self) -> None:
        network, took = self.once_late(catalog(Source("site", deadline=50.0, twice=True)))
        assert took < 0.3
        assert len(network.sent) == 101
        assert network.abandoned == 1, "the loser is called back"

    def test_but_nowhere_else(self) -> None:
        network, took = self.once_late(catalog(Source("site", deadline=50.0)))
        assert took == pytest.approx(20.0)
        assert len(network.sent) == 100

    def test_and_a_no_to_the_second_leaves_the_first_its_chance(self) -> None:
        network, took = self.once_late(catalog(Source("site", deadline=50.0, twice=True)), fails=True)
        assert took == pytest.approx(20.0)
        assert len(network.sent) == 101

    def test_a_query_that_cannot_pay_for_a_second_waits_for_the_first(self) -> None:
        async def reply(mirror: Mirror, request: Request) -> Reply:
            await asyncio.sleep(5.0)
            return rows_for(request)

        async def main() -> None:
            async with Access(catalog(Source("site", twice=True)), transport=network) as access:
                told = Listener()
                access.visit(told, Ceilings(calls=1)).ask(lookups(1))
                await told.ends()
                assert told.rows == [(1, "v1")]

        network = Scripted(reply)
        run(main())
        assert len(network.sent) == 1

    def test_where_most_are_late_no_more_than_a_twentieth_is_sent_again(self) -> None:
        async def reply(mirror: Mirror, request: Request) -> Reply:
            await asyncio.sleep(0.1 if len(network.sent) < 50 or len(network.sent) % 2 else 3.0)
            return rows_for(request)

        async def main() -> None:
            async with Access(catalog(Source("site", twice=True)), transport=network) as access:
                for key in range(1_000):
                    assert (await answered(access, lookups(key))).keys == [key]

        network = Scripted(reply)
        run(main())
        assert 1_000 < len(network.sent) <= 1_050


class TestWidth:
    def test_goes_down_once_for_all_who_entered_together_and_never_below_one(self) -> None:
        width = Width(10)
        for number in [width.enter() for _ in range(10)]:
            width.refused(number)
        assert width.places == 9
        for _ in range(60):
            width.refused(width.enter())
        assert width.places == 1

    def test_comes_back_and_no_further_than_declared(self) -> None:
        width = Width(4)
        for _ in range(20):
            width.refused(width.enter())
        assert width.places == 1
        for _ in range(100):
            width.answered(width.enter(), seconds=0.1)
        assert width.places == 4

    def test_is_careful_where_the_last_no_was_said(self) -> None:
        width, refused = Width(32), 0
        for _ in range(2_000):
            number = width.enter()
            if width.places > 1:
                width.refused(number)
                refused += 1
            else:
                width.answered(number, seconds=0.1)
        assert refused <= 32 + 2_000 / 10

    def ask(self, bears: int | None, seconds: float, width: Width, rounds: int) -> None:
        """Rounds of as many requests as there are places; who bears fewer makes the others wait."""
        for _ in range(rounds):
            places = width.places
            took = seconds if bears is None else seconds * max(1.0, places / bears)
            for number in [width.enter() for _ in range(places)]:
                width.answered(number, took)

    def test_shrinks_where_replies_only_queue(self) -> None:
        width = Width(32)
        self.ask(32, 0.05, width, 10)
        assert width.places == 32
        self.ask(4, 0.05, width, 60)
        assert 4 <= width.places <= 9, "a queue as long again as what it bears, at most"

    def test_does_not_stay_small_where_the_site_has_merely_become_slow(self) -> None:
        width = Width(32)
        self.ask(None, 0.05, width, 10)
        self.ask(None, 0.5, width, 10)
        assert width.places == 32
        self.ask(None, 0.5, width, 50)
        assert width.places == 32


class TestTight:
    def test_a_site_that_bears_less_than_it_declared_is_asked_no_more_than_it_bears(self) -> None:
        bears = [16]

        async def reply(mirror: Mirror, request: Request) -> Reply:
            if network.inside["site"] > bears[0]:
                refused.append(asyncio.get_running_loop().time())
                return status(503)
            await asyncio.sleep(0.05)
            return rows_for(request)

        async def main() -> None:
            loop = asyncio.get_running_loop()
            loop.call_later(3.0, lambda: bears.__setitem__(0, 8))
            async with Access(catalog(Source("site", concurrency=32)), transport=network) as access:
                told = await answered(access, lookups(*range(2_000)))
                assert len(told.exhausted) == 2_000
                limit = 3.0 + (2_000 - 3.0 / 0.05 * 16) / 8 * 0.05
                assert loop.time() < limit / 0.9
                assert access.statistics().source("site").width <= 9

        refused: list[float] = []
        network = Scripted(reply)
        run(main())
        assert len(refused) < 2_000 * 0.1

    def test_one_that_says_too_many_is_asked_one_at_a_time_in_the_end(self) -> None:
        async def reply(mirror: Mirror, request: Request) -> Reply:
            if network.inside["site"] > 1:
                return status(429)
            await asyncio.sleep(0.05)
            return page([[1, "a"]]) if request.path == "/scan" else rows_for(request)

        async def main() -> None:
            async with Access(catalog(Source("site", concurrency=8)), transport=network) as access:
                assert (await answered(access, scan())).rows == [(1, "a")]
                told = await answered(access, lookups(*range(200)))
                assert len(told.exhausted) == 200
                assert access.statistics().source("site").width <= 2

        network = Scripted(reply)
        run(main())
