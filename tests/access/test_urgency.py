"""Who goes first in a queue, in virtual time."""

from __future__ import annotations

import asyncio

import pytest
from access_kit import (
    Scripted,
    asked_for,
    catalog,
    lookups,
    page,
    rows_for,
    scan,
    status,
    steady,
    visited,
)
from steering_kit import NORTH, ONE, Said, order, played, urge

from mediator.access import Access
from mediator.access.line import Line
from mediator.catalog.model import Mirror, Source
from mediator.catalog.wrapper import Reply, Request
from mediator.flow.events import FIRST, Cancel, Urge


async def _scanned(mirror: Mirror, request: Request) -> Reply:
    await asyncio.sleep(1.0)
    return rows_for(request) if request.path == "/at" else page([[0, "p"]])


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
