"""Single-flight, packing, order and cancellation, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

import pytest
from access_kit import (
    Listener,
    Plain,
    Scripted,
    answered,
    asked_for,
    catalog,
    in_turn,
    lookups,
    page,
    rows_for,
    scan,
    status,
    steady,
    visited,
)

from fixtures.virtual import run
from mediator.access import Access
from mediator.catalog.model import Catalog, Mirror, Source
from mediator.catalog.wrapper import Reply, Request
from mediator.flow.events import Arrived, Ask, Cancel, Event, Exhausted


def played(network: Scripted, declared: Catalog, play: Callable[[Access], Coroutine[Any, Any, None]]) -> None:
    """Runs a play over a scripted network; nothing may be under way when it is over."""

    async def main() -> None:
        async with Access(declared, transport=network, random=Random(1)) as access:
            await play(access)
        assert not +network.inside

    run(main())


class TestSingleFlight:
    def test_a_binding_in_flight_is_joined_across_asks_and_visits(self) -> None:
        async def play(access: Access) -> None:
            first, heard_first = visited(access)
            second, heard_second = visited(access)
            first.ask(lookups(1, 2))
            await asyncio.sleep(0.5)
            first.ask(lookups(2, 3, number=2))
            second.ask(lookups(1, 2, 3))
            await heard_first.ends(4)
            await heard_second.ends(3)
            assert len(network.sent) == 3
            assert access.statistics().method("r", "by_k").joined == 4
            mine = {id(landing) for landing in heard_first.landings}
            assert {id(landing) for landing in heard_second.landings} == mine
            assert heard_second.keys == [1, 2, 3]
            first.ask(lookups(1, number=3))
            await heard_first.ends(5)
            assert len(network.sent) == 4, "what has ended is asked anew"

        network = steady(1.0)
        played(network, catalog(), play)

    def test_who_joins_late_first_gets_what_has_landed_and_then_the_rest(self) -> None:
        async def play(access: Access) -> None:
            early, heard_early = visited(access)
            late, heard_late = visited(access)
            early.ask(scan())
            await asyncio.sleep(2.5)
            late.ask(scan(number=7))
            assert not heard_late.events, "nothing is delivered from inside a call"
            await asyncio.sleep(0)
            assert heard_late.rows == [(0, "v0"), (1, "v1")]
            await heard_late.ends()
            assert [id(a) for a in heard_late.landings] == [id(a) for a in heard_early.landings]
            assert len(network.sent) == 4
            assert isinstance(heard_late.events[-1][1], Exhausted)
            assert heard_late.events[-1][1] == Exhausted(7, ((),), at=0.0, landings=())

        chain = [page([[n, f"v{n}"]], [f"/scan/{n + 1}"] if n < 3 else []) for n in range(4)]
        network = in_turn(*chain, seconds=1.0)
        played(network, catalog(), play)

    def test_who_joins_in_the_moment_of_a_landing_gets_it_once(self) -> None:
        async def play(access: Access) -> None:
            late, heard_late = visited(access)
            early = access.visit(
                lambda event: late.ask(scan()) if isinstance(event, Arrived) and not joined else None
            )
            joined: list[int] = []
            early.ask(scan())
            await heard_late.until(lambda: bool(heard_late.events))
            joined.append(1)
            await heard_late.ends()
            assert heard_late.keys == [1, 2]

        played(in_turn(page([[1, "a"]], ["/2"]), page([[2, "b"]]), seconds=1.0), catalog(), play)

    def test_a_binding_given_twice_ends_once(self) -> None:
        async def play(access: Access) -> None:
            heard = await answered(access, lookups(1))
            visit, heard = visited(access)
            visit.ask(lookups(1, 1, 1))
            await heard.ends()
            await asyncio.sleep(5)
            assert heard.exhausted == [(1,)]

        played(steady(), catalog(), play)


class TestPacking:
    def test_all_that_is_asked_in_one_turn_is_packed(self) -> None:
        async def play(access: Access) -> None:
            heard = await answered(access, lookups(*range(45)))
            assert [len(asked_for(request)) for _, _, request in network.sent] == [20, 20, 5]
            assert heard.keys == list(range(45))

        network = steady(1.0)
        played(network, catalog(batch_size=20), play)

    def test_queries_are_packed_together(self) -> None:
        async def play(access: Access) -> None:
            (one, heard_one), (two, heard_two) = visited(access), visited(access)
            one.ask(lookups(1, 2))
            two.ask(lookups(3, 4))
            await heard_one.ends(2)
            await heard_two.ends(2)
            assert len(network.sent) == 1
            assert heard_one.exhausted == [(1,), (2,)]
            assert heard_two.exhausted == [(3,), (4,)]

        network = steady()
        played(network, catalog(batch_size=4), play)

    def test_what_waits_is_packed_when_a_place_gets_free(self) -> None:
        async def play(access: Access) -> None:
            visit, heard = visited(access)
            for number in range(9):
                visit.ask(lookups(number, number=number))
                await asyncio.sleep(0.01)
            await heard.ends(9)
            assert [asked_for(request) for _, _, request in network.sent] == [[0], [1, 2, 3, 4], [5, 6, 7, 8]]

        network = steady(1.0)
        played(network, catalog(Source("site", concurrency=1), batch_size=4), play)

    def test_one_bad_binding_does_not_spoil_the_others(self) -> None:
        def picky(request: Request) -> Reply:
            return status(400) if 13 in asked_for(request) else rows_for(request)

        async def play(access: Access) -> None:
            heard = await answered(access, lookups(*range(16)))
            assert set(heard.failed) == {(13,)}
            assert heard.keys == [k for k in range(16) if k != 13]
            assert len(network.sent) == 9

        network = steady(0.1, picky)
        played(network, catalog(batch_size=16), play)

    def test_nor_does_one_that_cannot_be_written(self) -> None:
        class Particular(Plain):
            def request(self, bind_set: Any, bindings: Any) -> Request:
                if (3,) in bindings:
                    raise ValueError("three?")
                return super().request(bind_set, bindings)

        async def play(access: Access) -> None:
            heard = await answered(access, lookups(1, 2, 3, 4))
            assert heard.keys == [1, 2, 4]
            assert heard.cause.startswith(
                "refused: the wrapper Particular of r.by_k cannot write the request"
            )

        played(steady(), catalog(batch_size=4, wrapper=Particular()), play)


class TestOrder:
    def test_the_most_urgent_goes_first_then_who_came_first(self) -> None:
        async def play(access: Access) -> None:
            visit, heard = visited(access)
            visit.ask(lookups(1, number=1))
            await asyncio.sleep(0.5)
            visit.ask(lookups(2, 3, number=2, urgency=1.0))
            visit.ask(lookups(4, 5, number=3, urgency=5.0))
            visit.ask(lookups(6, number=4, urgency=1.0))
            await heard.ends(6)
            assert [asked_for(r)[0] for _, _, r in network.sent] == [1, 4, 5, 2, 3, 6]

        network = steady(1.0)
        played(network, catalog(Source("site", concurrency=1)), play)

    def test_whoever_joins_in_the_queue_can_hurry_it(self) -> None:
        async def play(access: Access) -> None:
            visit, heard = visited(access)
            visit.ask(lookups(1, 2, 3, number=1))
            await asyncio.sleep(0.5)
            visit.ask(lookups(3, number=2, urgency=9.0))
            await heard.ends(4)
            assert [asked_for(r)[0] for _, _, r in network.sent] == [1, 3, 2]

        network = steady(1.0)
        played(network, catalog(Source("site", concurrency=1)), play)

    def test_pages_of_what_has_begun_go_before_what_has_not(self) -> None:
        def pages(request: Request) -> Reply:
            if request.path == "/at":
                return rows_for(request)
            return page([[0, "p"]], ["/scan/2"] if request.path == "/scan" else [])

        async def play(access: Access) -> None:
            visit, heard = visited(access)
            visit.ask(scan())
            visit.ask(lookups(1, 2, number=2))
            await heard.ends(3)
            assert [r.path for _, _, r in network.sent] == ["/scan", "/scan/2", "/at", "/at"]

        network = steady(1.0, pages)
        played(network, catalog(Source("site", concurrency=1)), play)

    def test_a_blocked_source_holds_up_no_other(self) -> None:
        async def play(access: Access) -> None:
            visit, heard = visited(access)
            visit.ask(Ask(1, "slow", "by_k", ("k",), ((1,), (2,), (3,)), urgency=9.0))
            visit.ask(lookups(4, 5, number=2))
            await heard.ends(2)
            assert sorted(heard.exhausted) == [(4,), (5,)]
            visit.close()

        async def reply(mirror: Mirror, request: Request) -> Reply:
            await asyncio.sleep(100.0 if mirror.source == "slow" else 1.0)
            return rows_for(request)

        fast, slow = catalog(Source("fast")), catalog(Source("slow", concurrency=1, deadline=1000.0))
        both = Catalog(
            {"r": fast.relations["r"], "slow": slow.relations["r"]}, {**fast.sources, **slow.sources}
        )
        played(Scripted(reply), both, play)


class TestLimits:
    def test_never_more_at_once_than_the_source_allows(self) -> None:
        async def play(access: Access) -> None:
            await answered(access, lookups(*range(20)), scan(number=2))
            assert network.peak["site"] == 3
            assert access.statistics().source("site").peak == 3

        def spread(request: Request) -> Reply:
            if request.path == "/at":
                return rows_for(request)
            return page([], [f"/scan/{n}" for n in range(10)] if request.path == "/scan" else [])

        network = steady(1.0, spread)
        played(network, catalog(Source("site", concurrency=3)), play)

    def test_the_rate_is_kept_by_all_queries_together_and_who_waits_for_it_is_counted(self) -> None:
        async def play(access: Access) -> None:
            one, heard_one = visited(access)
            two, heard_two = visited(access)
            one.ask(lookups(*range(10)))
            two.ask(lookups(*range(10, 20)))
            await asyncio.sleep(1.0)
            told = access.statistics().source("site")
            assert (told.in_flight, told.waiting, told.queued) == (0, 15, 15)
            await heard_one.ends(10)
            await heard_two.ends(10)
            assert [round(t * 5 / 1.02) for t in network.times] == list(range(20))

        network = steady(0.01)
        played(network, catalog(Source("site", rate=5.0, concurrency=20)), play)


class TestCancel:
    def test_one_of_two_leaves_and_the_flight_goes_on(self) -> None:
        async def play(access: Access) -> None:
            (one, heard_one), (two, heard_two) = visited(access), visited(access)
            one.ask(scan())
            two.ask(scan())
            await asyncio.sleep(1.5)
            one.cancel(Cancel(1))
            await heard_two.ends()
            assert heard_two.keys == [1, 2]
            assert heard_one.keys == [1]
            assert not heard_one.exhausted
            assert network.abandoned == 0

        network = in_turn(page([[1, "a"]], ["/2"]), page([[2, "b"]]), seconds=1.0)
        played(network, catalog(), play)

    def test_the_last_one_leaves_and_it_is_called_back_at_once(self) -> None:
        async def play(access: Access) -> None:
            (one, heard_one), (two, heard_two) = visited(access), visited(access)
            one.ask(lookups(1))
            two.ask(lookups(1))
            await asyncio.sleep(0.5)
            one.cancel(Cancel(1))
            two.close()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert network.abandoned == 1
            assert access.statistics().source("site").in_flight == 0
            one.ask(lookups(1, number=2))
            await heard_one.ends()
            assert len(network.sent) == 2, "whoever comes after that does not join what was called back"
            assert not heard_two.events

        network = steady(1.0)
        played(network, catalog(), play)

    def test_some_bindings_of_a_pack(self) -> None:
        async def play(access: Access) -> None:
            visit, heard = visited(access)
            visit.ask(lookups(1, 2, 3))
            await asyncio.sleep(0.5)
            visit.cancel(Cancel(1, ((2,), (99,))))
            await heard.ends(2)
            assert heard.exhausted == [(1,), (3,)]
            assert network.abandoned == 0

        network = steady(1.0)
        played(network, catalog(batch_size=3), play)

    def test_what_waits_is_not_asked_any_more(self) -> None:
        async def play(access: Access) -> None:
            visit, heard = visited(access)
            visit.ask(lookups(1, 2, 3, 4))
            await asyncio.sleep(0.5)
            visit.cancel(Cancel(1, ((2,), (3,))))
            await heard.ends(2)
            assert [asked_for(r) for _, _, r in network.sent] == [[1], [4]]
            assert access.statistics().method("r", "by_k").queued == 0

        network = steady(1.0)
        played(network, catalog(Source("site", concurrency=1)), play)

    def test_before_anything_has_left(self) -> None:
        async def play(access: Access) -> None:
            visit, heard = visited(access)
            visit.ask(lookups(1))
            visit.cancel(Cancel(1))
            visit.ask(lookups(2))
            await asyncio.sleep(0)
            visit.cancel(Cancel(1))
            await asyncio.sleep(10)
            assert not heard.events
            told = access.statistics().method("r", "by_k")
            assert (told.in_flight, told.queued, told.cancelled) == (0, 0, 2)

        network = steady(1.0)
        played(network, catalog(), play)

    @pytest.mark.parametrize("moment", ["arrived", "exhausted"])
    def test_from_inside_a_delivery(self, moment: str) -> None:
        async def play(access: Access) -> None:
            events: list[Event] = []

            def stop(event: Event) -> None:
                events.append(event)
                if isinstance(event, Arrived if moment == "arrived" else Exhausted):
                    visit.close()

            visit = access.visit(stop)
            visit.ask(scan())
            visit.ask(lookups(1, number=2))
            await asyncio.sleep(10)
            assert [type(e).__name__ for e in events] == ["Arrived", "Exhausted"][: len(events)]
            assert len(events) == (1 if moment == "arrived" else 2)

        def pages(request: Request) -> Reply:
            if request.path == "/at":
                return status(503)
            return page([[1, "a"]], ["/2"]) if request.path == "/scan" else page([])

        played(steady(0.0, pages), catalog(), play)

    def test_a_closed_visit_is_deaf_and_mute(self) -> None:
        async def play(access: Access) -> None:
            visit, heard = visited(access)
            visit.close()
            visit.ask(scan())
            visit.cancel(Cancel(1))
            visit.close()
            await asyncio.sleep(10)
            assert not heard.events
            assert not network.sent

        network = steady()
        played(network, catalog(), play)

    def test_leaving_the_block_calls_everything_back(self) -> None:
        heard = Listener()

        async def play(access: Access) -> None:
            access.visit(heard).ask(lookups(*range(50)))
            await asyncio.sleep(0.5)
            raise KeyError("what went wrong in the block goes on as it is")

        network = steady(1.0)
        with pytest.raises(KeyError):
            played(network, catalog(), play)
        assert network.abandoned == 8
        assert not heard.events


def test_a_number_that_is_still_open_is_not_taken_twice() -> None:
    async def play(access: Access) -> None:
        visit, _ = visited(access)
        visit.ask(lookups(1))
        with pytest.raises(ValueError, match="still open"):
            visit.ask(lookups(2))

    played(steady(), catalog(), play)


def test_rows_that_come_from_the_engine_itself_are_not_asked_for_here() -> None:
    declared = catalog()
    relation = declared.relations["r"]
    object.__setattr__(relation.methods[0], "wrapper", None)

    async def play(access: Access) -> None:
        with pytest.raises(ValueError, match="no wrapper"):
            access.visit(Listener()).ask(scan())

    played(steady(), declared, play)


def test_statistics_add_up() -> None:
    async def play(access: Access) -> None:
        visit, heard = visited(access)
        visit.ask(lookups(*range(6)))
        await asyncio.sleep(0.5)
        told = access.statistics().method("r", "by_k")
        assert (told.asked, told.in_flight, told.queued) == (4, 4, 2)
        await heard.ends(6)
        told = access.statistics().method("r", "by_k")
        assert (told.asked, told.answered, told.failed, told.in_flight, told.queued) == (6, 6, 0, 0, 0)
        assert (told.requests, told.retried, told.rows, told.rows_per_lookup) == (6, 0, 6, 1.0)
        assert told.latency.p50 == told.latency.p95 == told.latency.mean == 1.0
        of_source = access.statistics().source("site")
        assert (of_source.asked, of_source.answered, of_source.rows) == (6, 6, 6)

    played(steady(1.0), catalog(Source("site", concurrency=4)), play)
