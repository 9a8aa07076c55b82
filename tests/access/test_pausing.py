"""What a query pauses is asked nothing, and goes on elsewhere, in virtual time."""

from __future__ import annotations

import asyncio

import pytest
from access_kit import (
    Listener,
    Scripted,
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
from steering_kit import NORTH, ONE, SOUTH, order, played

from mediator.access import Access, Ceilings
from mediator.access.wishes import Hedging
from mediator.catalog.model import Mirror, Source
from mediator.catalog.wrapper import Reply, Request
from mediator.flow.events import Cancel


async def _in_pages(mirror: Mirror, request: Request) -> Reply:
    await asyncio.sleep(1.0)
    number = 0 if request.path == "/scan" else int(request.path[2:])
    return page([[number, "v"]], [f"/p{number + 1}"] if number < 5 else [])


async def _side_by_side(mirror: Mirror, request: Request) -> Reply:
    await asyncio.sleep(1.0)
    if request.path == "/at":
        return rows_for(request)
    number = 0 if request.path == "/scan" else int(request.path[2:])
    return page([[number, "v"]], [f"/p{n}" for n in range(1, 9)] if number == 0 else [])


class TestPause:
    def test_a_paused_source_is_asked_nothing_until_it_is_resumed(self) -> None:
        async def play(access: Access) -> None:
            visit, heard = visited(access)
            visit.ask(lookups(1, 2, 3))
            await asyncio.sleep(0.5)
            visit.steer(["site"], {})
            await asyncio.sleep(100.0)
            assert order(network) == [1]
            assert heard.exhausted == [(1,)]  # it was under way, and came
            assert visit.paused() == {"site": 2}
            visit.steer([], {})
            await heard.ends(3)
            assert order(network) == [1, 2, 3]
            assert visit.paused() == {}

        network = steady(1.0)
        played(network, catalog(ONE), play)

    def test_what_is_asked_meanwhile_waits_as_well_and_can_be_cancelled(self) -> None:
        async def play(access: Access) -> None:
            visit, heard = visited(access)
            visit.steer(["site"], {})
            visit.ask(lookups(1, 2))
            await asyncio.sleep(10.0)
            visit.cancel(Cancel(1, ((2,),)))
            visit.steer([], {})
            await heard.ends(1)
            assert order(network) == [1]

        network = steady(1.0)
        played(network, catalog(ONE), play)

    def test_the_other_mirror_goes_on(self) -> None:
        async def play(access: Access) -> None:
            visit, heard = visited(access)
            visit.steer(["north"], {})
            visit.ask(lookups(*range(8)))
            await heard.ends(8)
            assert set(network.sources) == {"south"}
            assert visit.paused() == {}

        network = steady(1.0)
        played(network, catalog(NORTH, SOUTH), play)

    def test_another_query_goes_on_and_what_it_brings_comes_to_both(self) -> None:
        async def play(access: Access) -> None:
            paused, heard_paused = visited(access)
            other, heard_other = visited(access)
            paused.steer(["site"], {})
            paused.ask(lookups(1, 2, 3))
            await asyncio.sleep(5.0)
            other.ask(lookups(2, 4))
            await heard_other.ends(2)
            assert sorted(order(network)) == [2, 4]
            assert heard_paused.exhausted == [(2,)]
            assert paused.paused() == {"site": 2}
            paused.close()

        network = steady(1.0)
        played(network, catalog(ONE), play)

    def test_when_the_other_query_leaves_what_both_wanted_waits_again(self) -> None:
        async def play(access: Access) -> None:
            paused, heard = visited(access)
            other, _ = visited(access)
            paused.steer(["site"], {})
            paused.ask(lookups(2))
            other.ask(lookups(1, 2))
            await asyncio.sleep(0.5)
            other.close()
            await asyncio.sleep(10.0)
            assert order(network) == [1]
            assert paused.paused() == {"site": 1}
            paused.steer([], {})
            await heard.ends(1)

        network = steady(1.0)
        played(network, catalog(ONE), play)

    def test_bindings_of_different_wishes_do_not_share_a_request(self) -> None:
        async def play(access: Access) -> None:
            northern, heard_north = visited(access)
            southern, heard_south = visited(access)
            northern.steer(["south"], {})
            southern.steer(["north"], {})
            northern.ask(lookups(1, 2))
            southern.ask(lookups(3, 4))
            await heard_north.ends(2)
            await heard_south.ends(2)
            assert {(s, tuple(asked_for(r))) for _, s, r in network.sent} == {
                ("north", (1, 2)),
                ("south", (3, 4)),
            }

        network = steady(1.0)
        played(network, catalog(NORTH, SOUTH, batch_size=4), play)

    def test_a_scan_stops_between_two_pages(self) -> None:
        async def play(access: Access) -> None:
            visit, heard = visited(access)
            visit.ask(scan())
            await asyncio.sleep(0.5)
            visit.steer(["site"], {})
            await asyncio.sleep(10.0)
            assert [r.path for _, _, r in network.sent] == ["/scan"]
            assert heard.keys == [1]
            assert visit.paused() == {"site": 1}
            visit.steer([], {})
            await heard.ends(1)
            assert heard.keys == [1, 2]

        network = in_turn(page([[1, "a"]], ["/scan/2"]), page([[2, "b"]]), seconds=1.0)
        played(network, catalog(ONE), play)

    def test_a_held_scan_goes_on_when_another_query_joins_and_is_called_back_when_nobody_is_left(
        self,
    ) -> None:
        async def play(access: Access) -> None:
            visit, _ = visited(access)
            visit.ask(scan())
            await asyncio.sleep(0.5)
            visit.steer(["site"], {})
            await asyncio.sleep(10.0)
            other, heard = visited(access)
            other.ask(scan())
            await heard.ends(1)
            assert heard.keys == [1, 2]
            third, _ = visited(access)
            third.steer(["site"], {})
            third.ask(scan())
            third.close()
            await asyncio.sleep(1.0)
            assert len(network.sent) == 2

        network = in_turn(page([[1, "a"]], ["/scan/2"]), page([[2, "b"]]), seconds=1.0)
        played(network, catalog(ONE), play)

    @pytest.mark.parametrize("hedging", ["none", "some", "more"])
    def test_a_scan_goes_on_where_the_same_pages_are_shown(self, hedging: Hedging) -> None:
        """Though nobody would pay for a second request."""

        async def play(access: Access) -> None:
            visit, heard = visited(access)
            visit.hedge(hedging)
            visit.ask(scan())
            await asyncio.sleep(1.5)
            access._methods["r", "scan"].race._hedges = 0.0
            first = network.sources[0]
            visit.steer([first], {})
            await heard.ends(1)
            assert heard.keys == [0, 1, 2, 3, 4, 5]
            assert [(s == first, r.path) for _, s, r in network.sent] == [
                (True, "/scan"),
                (True, "/p1"),
                (False, "/p2"),
                (False, "/p1"),  # whether it is shown the same
                (False, "/p3"),
                (False, "/p4"),
                (False, "/p5"),
            ]

        network = Scripted(_in_pages)
        played(network, catalog(NORTH, SOUTH), play)

    def test_a_scan_begins_anew_where_other_pages_are_shown(self) -> None:
        async def differing(mirror: Mirror, request: Request) -> Reply:
            await asyncio.sleep(1.0)
            number = 0 if request.path == "/scan" else int(request.path[2:])
            key = number if mirror.source == "north" else 2 - number
            return page([[key, "v"]], [f"/p{number + 1}"] if number < 2 else [])

        async def play(access: Access) -> None:
            visit, heard = visited(access)
            visit.ask(scan())
            await asyncio.sleep(0.5)
            first = network.sources[0]
            visit.steer([first], {})
            await heard.ends(1)
            assert heard.failed == {}
            assert set(heard.keys) == {0, 1, 2}
            assert network.sources.count(first) == 1

        network = Scripted(differing)
        played(network, catalog(NORTH, SOUTH), play)

    def test_a_scan_that_waits_goes_on_wherever_it_may_first(self) -> None:
        async def play(access: Access) -> None:
            visit, heard = visited(access)
            visit.ask(scan())
            await asyncio.sleep(1.5)
            visit.steer(["north", "south"], {})
            await asyncio.sleep(100.0)
            assert len(network.sent) == 2
            assert visit.paused() == {"north": 1, "south": 1}
            first = network.sources[0]
            visit.steer([first], {})
            await heard.ends(1)
            assert heard.keys == [0, 1, 2, 3, 4, 5]
            assert network.sources.count(first) == 2

        network = Scripted(_in_pages)
        played(network, catalog(NORTH, SOUTH), play)

    def test_pages_side_by_side_go_to_the_mirror_that_is_left(self) -> None:
        async def play(access: Access) -> None:
            visit, heard = visited(access)
            visit.hedge("none")
            visit.ask(scan())
            await asyncio.sleep(1.5)
            first = network.sources[0]
            visit.steer([first], {})
            asked = network.sources.count(first)
            await heard.ends(1)
            assert sorted(set(heard.keys)) == list(range(9))
            assert network.sources.count(first) == asked

        network = Scripted(_side_by_side)
        played(network, catalog(Source("north", concurrency=3), Source("south", concurrency=3)), play)

    def test_nothing_is_asked_again_of_what_is_paused_meanwhile(self) -> None:
        async def play(access: Access) -> None:
            visit, heard = visited(access)
            visit.ask(lookups(1))
            await asyncio.sleep(1.01)
            visit.steer(["site"], {})
            await asyncio.sleep(100.0)
            assert len(network.sent) == 1
            assert visit.paused() == {"site": 1}
            visit.steer([], {})
            await heard.ends(1)
            assert heard.exhausted == [(1,)]

        network = in_turn(status(503), page([[1, "v"]]), seconds=1.0)
        played(network, catalog(Source("site", attempts=3)), play)

    def test_what_is_to_be_asked_again_is_asked_at_the_mirror_that_is_left(self) -> None:
        async def failing(mirror: Mirror, request: Request) -> Reply:
            await asyncio.sleep(1.0)
            return status(503) if len(network.sent) == 1 else rows_for(request)

        async def play(access: Access) -> None:
            visit, heard = visited(access)
            visit.hedge("none")
            visit.ask(lookups(1))
            await asyncio.sleep(1.01)
            first = network.sources[0]
            visit.steer([first], {})
            await heard.ends(1)
            assert heard.exhausted == [(1,)]
            assert network.sources.count(first) == 1

        network = Scripted(failing)
        played(network, catalog(Source("north", attempts=3), Source("south", attempts=3)), play)

    def test_pages_that_wait_for_a_place_are_not_sent_either(self) -> None:
        async def play(access: Access) -> None:
            visit, heard = visited(access)
            other, heard_other = visited(access)
            visit.ask(scan())
            await asyncio.sleep(0.5)
            other.ask(lookups(*range(20), urgency=100.0))
            await asyncio.sleep(1.0)
            visit.steer(["site"], {})
            await heard_other.ends(20)
            await asyncio.sleep(10.0)
            assert [r.path for _, _, r in network.sent if r.path != "/at"] == ["/scan"]
            assert visit.paused() == {"site": 1}
            visit.steer([], {})
            await heard.ends(1)
            assert heard.keys == list(range(9))

        network = Scripted(_side_by_side)
        played(network, catalog(ONE), play)

    def test_a_late_or_failed_request_is_not_sent_to_a_paused_mirror(self) -> None:
        async def play(access: Access) -> None:
            visit, heard = visited(access)
            visit.steer(["south"], {})
            visit.ask(lookups(1))
            await heard.ends(1)
            assert set(network.sources) == {"north"}
            assert heard.cause.startswith("refused:")

        network = in_turn(status(403), seconds=1.0)
        played(network, catalog(NORTH, SOUTH), play)

    def test_ceilings_hold_after_a_pause_as_before(self) -> None:
        async def play(access: Access) -> None:
            heard = Listener()
            visit = access.visit(heard, Ceilings(calls=1))
            visit.ask(lookups(1, 2))
            await asyncio.sleep(0.5)
            visit.steer(["site"], {})
            await asyncio.sleep(10.0)
            visit.steer([], {})
            await heard.ends(2)
            assert order(network) == [1]
            assert heard.cause.startswith("ceiling:")

        network = steady(1.0)
        played(network, catalog(ONE), play)

    def test_leaving_the_house_calls_back_what_is_held(self) -> None:
        async def play(access: Access) -> None:
            visit, _ = visited(access)
            visit.ask(scan())
            await asyncio.sleep(0.5)
            visit.steer(["site"], {})
            await asyncio.sleep(10.0)
            assert len(network.sent) == 1

        network = in_turn(page([[1, "a"]], ["/scan/2"]), seconds=1.0)
        played(network, catalog(ONE), play)
