"""What a query boosts is asked rather than others, in virtual time."""

from __future__ import annotations

import asyncio

from access_kit import (
    Scripted,
    catalog,
    lookups,
    rows_for,
    steady,
    visited,
)
from steering_kit import NORTH, ONE, SOUTH, order, played, urge

from mediator.access import Access
from mediator.catalog.model import Mirror
from mediator.catalog.wrapper import Reply, Request


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
