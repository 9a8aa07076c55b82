"""Who goes first in a queue, and what a query pauses and boosts, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

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

from fixtures.virtual import run
from mediator.access import Access, Ceilings
from mediator.access.line import Line
from mediator.access.visit import Visit
from mediator.access.wishes import HEDGINGS, Hedging
from mediator.catalog.model import Catalog, Mirror, Source
from mediator.catalog.wrapper import Reply, Request
from mediator.flow.events import FIRST, Cancel, Urge

ONE = Source("site", concurrency=1)


Said = tuple[list[str], dict[str, float]]  # what is paused, and what is boosted


def played(network: Scripted, declared: Catalog, play: Callable[[Access], Coroutine[Any, Any, None]]) -> None:
    """Runs a play over a scripted network; nothing may be under way when it is over."""

    async def main() -> None:
        async with Access(declared, transport=network, random=Random(1)) as access:
            await play(access)
        assert not +network.inside

    run(main())


def order(network: Scripted) -> list[int]:
    return [k for _, _, request in network.sent for k in asked_for(request)]


def urge(number: int = 1, **urgencies: float) -> Urge:
    return Urge(number, {(int(k[1:]),): u for k, u in urgencies.items()})


class TestUrgency:
    def test_each_binding_has_a_place_of_its_own(self) -> None:
        async def play(access: Access) -> None:
            visit, heard = visited(access)
            visit.ask(lookups(1, 2, 3, 4, 5))
            visit.urge(urge(k2=1, k4=3, k5=3))
            await heard.ends(5)
            assert order(network) == [4, 5, 2, 1, 3]

        network = steady(1.0)
        played(network, catalog(ONE), play)

    def test_what_waits_moves_up_and_what_has_left_stays(self) -> None:
        async def play(access: Access) -> None:
            visit, heard = visited(access)
            visit.ask(lookups(1, 2, 3, 4))
            await asyncio.sleep(0.5)
            visit.urge(urge(k1=1, k4=7))
            await asyncio.sleep(1.0)
            visit.urge(urge(k3=9, k4=8))
            await heard.ends(4)
            assert order(network) == [1, 4, 3, 2]

        network = steady(1.0)
        played(network, catalog(ONE), play)

    def test_it_also_goes_down(self) -> None:
        async def play(access: Access) -> None:
            visit, heard = visited(access)
            visit.ask(lookups(1, 2, 3))
            visit.urge(urge(k1=5, k2=4, k3=3))
            visit.urge(urge(k1=0))
            await heard.ends(3)
            assert order(network) == [2, 3, 1]

        network = steady(1.0)
        played(network, catalog(ONE), play)

    def test_queries_that_wait_for_one_binding_are_added_up(self) -> None:
        async def play(access: Access) -> None:
            first, heard = visited(access)
            second, _ = visited(access)
            first.ask(lookups(1, 2, 3))
            second.ask(lookups(2, 3))
            first.urge(urge(k1=5, k2=3, k3=3))
            second.urge(urge(k2=1, k3=3))
            await heard.ends(3)
            assert order(network) == [3, 1, 2]

        network = steady(1.0)
        played(network, catalog(ONE), play)

    def test_who_would_have_it_late_does_not_hold_up_others(self) -> None:
        async def play(access: Access) -> None:
            first, heard = visited(access)
            second, heard_second = visited(access)
            first.ask(lookups(1, 2, 3))
            second.ask(lookups(2, 4, urgency=-1e9))
            first.urge(urge(k1=1, k2=2, k3=1))
            await heard.ends(3)
            await heard_second.ends(2)
            assert order(network) == [2, 1, 3, 4]

        network = steady(1.0)
        played(network, catalog(ONE), play)

    def test_who_leaves_takes_his_share_along(self) -> None:
        async def play(access: Access) -> None:
            first, heard = visited(access)
            second, _ = visited(access)
            first.ask(lookups(1, 2))
            second.ask(lookups(2))
            first.urge(urge(k1=2, k2=1))
            second.urge(urge(k2=9))
            second.cancel(Cancel(1))
            await heard.ends(2)
            assert order(network) == [1, 2]

        network = steady(1.0)
        played(network, catalog(ONE), play)

    def test_nobody_is_asked_for_twice_however_often_urged(self) -> None:
        async def play(access: Access) -> None:
            visit, heard = visited(access)
            keys = list(range(50))
            visit.ask(lookups(*keys))
            for turn in range(200):
                visit.urge(Urge(1, {(k,): float((k * 7 + turn) % 50) for k in keys}))
            await heard.ends(50)
            last = {k: (k * 7 + 199) % 50 for k in keys}
            assert order(network) == sorted(keys, key=lambda k: -last[k])
            assert access.statistics().method("r", "by_k").asked == 50

        network = steady(1.0)
        played(network, catalog(ONE), play)

    def test_requests_are_packed_with_the_most_urgent(self) -> None:
        async def play(access: Access) -> None:
            visit, heard = visited(access)
            visit.ask(lookups(1, 2, 3, 4, 5, 6))
            visit.urge(urge(k6=5, k5=4, k2=3))
            await heard.ends(6)
            assert [asked_for(r) for _, _, r in network.sent] == [[6, 5, 2], [1, 3, 4]]

        network = steady(1.0)
        played(network, catalog(ONE, batch_size=3), play)

    def test_further_pages_of_what_is_under_way_go_as_urgent_as_it_is_by_then(self) -> None:
        async def answer(mirror: Mirror, request: Request) -> Reply:
            await asyncio.sleep(1.0)
            if request.path == "/at":
                (key,) = asked_for(request)
                return page([[key, "v"]], [f"/{key}/2"])
            key, number = map(int, request.path.strip("/").split("/"))
            return page([[key, "v"]], [f"/{key}/{number + 1}"] if number < 4 else [])

        async def play(access: Access) -> None:
            visit, heard = visited(access)
            visit.ask(lookups(1, number=1, urgency=2.0))
            await asyncio.sleep(0.5)
            visit.ask(lookups(2, number=2, urgency=3.0))
            await asyncio.sleep(1.0)
            visit.urge(urge(1, k1=9))
            await heard.ends(2)
            paths = [r.path if r.path != "/at" else f"/{asked_for(r)[0]}/1" for _, _, r in network.sent]
            assert paths == ["/1/1", "/2/1", "/1/2", "/1/3", "/1/4", "/2/2", "/2/3", "/2/4"]

        network = Scripted(answer)
        played(network, catalog(ONE), play)

    def test_a_scan_goes_before_all_lookups(self) -> None:
        async def play(access: Access) -> None:
            visit, heard = visited(access)
            visit.ask(lookups(1, 2, number=1))
            await asyncio.sleep(0.5)
            visit.urge(urge(k2=1_000))
            visit.ask(scan(2, FIRST))
            await heard.ends(3)
            assert [r.path for _, _, r in network.sent] == ["/at", "/scan", "/at"]

        network = Scripted(_scanned)
        played(network, catalog(ONE), play)

    def test_no_query_waits_for_ever_behind_another(self) -> None:
        """Each eighth departure is for a query that is not served by what is most urgent."""

        async def play(access: Access) -> None:
            busy, heard_busy = visited(access)
            other, heard_other = visited(access)
            busy.ask(lookups(*range(30)))
            busy.urge(Urge(1, {(k,): 100.0 for k in range(30)}))
            other.ask(lookups(40, 41))
            await heard_busy.ends(30)
            await heard_other.ends(2)
            assert order(network).index(40) == 7
            assert order(network).index(41) == 15
            assert sorted(order(network)) == [*range(30), 40, 41]

        network = steady(1.0)
        played(network, catalog(ONE), play)

    @pytest.mark.parametrize(
        ("busy_wishes", "other_wishes"),
        [(([], {"north": 10.0}), ([], {})), ((["south"], {"north": 1.1}), (["south"], {}))],
    )
    def test_nor_behind_one_that_wishes_otherwise(self, busy_wishes: Said, other_wishes: Said) -> None:
        async def play(access: Access) -> None:
            busy, heard_busy = visited(access)
            other, heard_other = visited(access)
            busy.steer(*busy_wishes)
            other.steer(*other_wishes)
            other.ask(lookups(40, 41))
            busy.ask(lookups(*range(40), urgency=5.0))
            await heard_other.ends(2)
            assert order(network).index(40) == 7
            assert order(network).index(41) == 15
            await heard_busy.ends(40)

        network = steady(1.0)
        played(network, catalog(NORTH), play)

    def test_what_is_urged_before_it_is_asked_again_goes_sooner(self) -> None:
        async def failing_once(mirror: Mirror, request: Request) -> Reply:
            await asyncio.sleep(0.1)
            return status(503) if len(network.sent) == 1 else rows_for(request)

        async def play(access: Access) -> None:
            visit, heard = visited(access)
            visit.ask(lookups(1, number=1))
            await asyncio.sleep(0.05)
            visit.ask(lookups(*range(2, 40), number=2, urgency=10.0))
            await asyncio.sleep(0.06)
            visit.urge(urge(1, k1=1_000))
            await heard.ends(39)
            assert order(network).index(1, 1) < 30

        network = Scripted(failing_once)
        played(network, catalog(Source("site", concurrency=1, attempts=3)), play)

    def test_a_query_that_has_ended_is_forgotten(self) -> None:
        async def play(access: Access) -> None:
            waiting, _ = visited(access)
            waiting.steer(["site"], {})
            waiting.ask(lookups(1))
            for key in range(2, 10):
                visit, heard = visited(access)
                visit.ask(lookups(key))
                await heard.ends(1)
                visit.close()
            (line,) = access._lines.values()
            assert len(line._queries) == 1

        network = steady(1.0)
        played(network, catalog(ONE), play)

    def test_wishes_that_stay_as_they_are_move_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        moved: list[Line] = []
        monkeypatch.setattr(Line, "steered", lambda line, ticket: moved.append(line))

        async def play(access: Access) -> None:
            visit, heard = visited(access)
            visit.ask(lookups(1, 2, 3))
            visit.steer([], {"site": 1.0})
            assert not moved
            visit.steer([], {"site": 2.0})
            visit.steer((), {"site": 2.0})
            assert len(moved) == 1
            await heard.ends(3)

        network = steady(1.0)
        played(network, catalog(ONE), play)

    def test_an_unknown_ask_or_binding_is_nobody_s(self) -> None:
        async def play(access: Access) -> None:
            visit, heard = visited(access)
            visit.ask(lookups(1, 2))
            visit.urge(urge(7, k1=9))
            visit.urge(urge(k3=9))
            await heard.ends(2)
            visit.urge(urge(k1=9))
            assert order(network) == [1, 2]

        network = steady(1.0)
        played(network, catalog(ONE), play)


async def _scanned(mirror: Mirror, request: Request) -> Reply:
    await asyncio.sleep(1.0)
    return rows_for(request) if request.path == "/at" else page([[0, "p"]])


NORTH, SOUTH = Source("north", concurrency=1), Source("south", concurrency=1)


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


class Draw:
    """Mirrors that show the same pages or others, and a query that pauses them at any moment."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.names = ["a", "b", "c"][: self.random.choice([1, 2, 2, 3])]
        self.pages = self.random.choice([1, 4, 9])
        self.alike, self.at_once = self.random.random() < 0.6, self.random.random() < 0.5
        self.paused: list[str] = []
        self.forbidden: list[str] = []  # what was sent to a paused mirror

    async def answer(self, mirror: Mirror, request: Request) -> Reply:
        if mirror.source in self.paused:
            self.forbidden.append(f"{mirror.source}{request.path}")
        await asyncio.sleep(self.random.choice([0.05, 0.2, 1.0]))
        if request.path == "/at":
            return rows_for(request)
        number = 0 if request.path == "/scan" else int(request.path[2:])
        key = number if self.alike or mirror.source == "a" else self.pages - 1 - number
        following = range(1, self.pages) if number == 0 else ()
        one = [number + 1] if number + 1 < self.pages else []
        return page([[key, "v"]], [f"/p{n}" for n in (following if self.at_once else one)])

    def pause(self, visit: Visit, names: list[str]) -> None:
        self.paused = names
        visit.steer(names, {})

    async def play(self, access: Access) -> None:
        visit, heard = visited(access)
        visit.hedge(self.random.choice(HEDGINGS))
        visit.ask(scan())
        visit.ask(lookups(*range(10), number=2))
        for _ in range(self.random.randint(1, 12)):
            await asyncio.sleep(self.random.choice([0.01, 0.1, 0.5, 3.0]))
            self.pause(visit, [name for name in self.names if self.random.random() < 0.5])
        await asyncio.sleep(100.0)
        ended = len(heard.exhausted)
        assert ended == 11 or len(self.paused) == len(self.names), "a mirror is free"
        assert (sum(visit.paused().values()) > 0) == (ended < 11), "what waits is told"
        self.pause(visit, [])
        await heard.ends(11)
        assert not heard.failed
        assert set(heard.keys) == set(range(max(10, self.pages)))
        assert not self.forbidden


@pytest.mark.parametrize("seed", range(60))
def test_however_it_is_paused_all_comes_and_nothing_is_sent_there(seed: int) -> None:
    draw = Draw(seed)
    sources = [Source(name, concurrency=1 + seed % 2) for name in draw.names]
    played(Scripted(draw.answer), catalog(*sources), draw.play)


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


class TestBoost:
    def test_a_boosted_mirror_is_asked_though_it_is_slower(self) -> None:
        async def reply(mirror: Mirror, request: Request) -> Reply:
            await asyncio.sleep(1.0 if mirror.source == "north" else 2.0)
            return rows_for(request)

        async def play(access: Access) -> None:
            visit, heard = visited(access)
            visit.ask(lookups(*range(8)))
            await heard.ends(8)
            network.sent.clear()
            for k in range(10, 20):  # one at a time, so that either has room
                visit.ask(lookups(k, number=k))
                await heard.ends(len(heard.exhausted) + 1)
            plain = network.sources.count("south")
            visit.steer([], {"south": 5.0})
            network.sent.clear()
            for k in range(20, 30):
                visit.ask(lookups(k, number=k))
                await heard.ends(len(heard.exhausted) + 1)
            assert (plain, network.sources.count("south")) == (0, 10)

        network = Scripted(reply)
        played(network, catalog(NORTH, SOUTH), play)

    def test_lookups_of_the_query_that_boosts_are_worth_more(self) -> None:
        async def play(access: Access) -> None:
            first, heard_first = visited(access)
            second, heard_second = visited(access)
            first.ask(lookups(1, 2))
            second.ask(lookups(3, 4))
            first.urge(urge(k1=2, k2=2))
            second.urge(urge(k3=1, k4=1))
            second.steer([], {"site": 5.0})
            await heard_first.ends(2)
            await heard_second.ends(2)
            assert order(network) == [3, 4, 1, 2]

        network = steady(1.0)
        played(network, catalog(ONE), play)
