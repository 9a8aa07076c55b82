"""How eagerly a second mirror is sent after a late one: as the query's goal has it. In virtual time."""

from __future__ import annotations

import asyncio
from random import Random

from access_kit import Scripted, catalog, lookups, page, rows_for, visited

from fixtures.virtual import run
from mediator.access import Access
from mediator.access.wishes import HEDGINGS, Hedging
from mediator.answering import HEDGED
from mediator.catalog.model import Mirror, Source
from mediator.catalog.wrapper import Reply, Request
from mediator.eddy.goals.goal import GOALS

A, B = Source("a"), Source("b")
LOOKUPS = 400


def _network() -> Scripted:
    """Two mirrors that are late now and then."""
    random = Random(3)

    async def reply(mirror: Mirror, request: Request) -> Reply:
        await asyncio.sleep(1.0 if random.random() < 0.15 else random.uniform(0.09, 0.11))
        return rows_for(request) if request.path == "/at" else page([[1, "a"]])

    return Scripted(reply)


def _asked(hedging: Hedging) -> tuple[int, float]:
    """Requests for so many lookups, one after another, and the seconds they took."""
    network = _network()

    async def main() -> float:
        async with Access(catalog(A, B), transport=network, random=Random(1)) as access:
            for key in range(LOOKUPS):
                visit, heard = visited(access)
                visit.hedge(hedging)
                visit.ask(lookups(key))
                await heard.ends()
                assert heard.keys == [key]
                visit.close()
            return asyncio.get_running_loop().time()

    seconds = run(main())
    return len(network.sent), seconds


def test_no_call_is_sent_twice_where_calls_are_what_matters() -> None:
    assert _asked("none")[0] == LOOKUPS


def test_the_more_eager_the_more_calls_and_the_less_time() -> None:
    calls, seconds = zip(*(_asked(hedging) for hedging in HEDGINGS), strict=True)
    assert calls[0] < calls[1] < calls[2]
    assert seconds[0] > seconds[1] > seconds[2]


def test_who_waits_for_the_same_lookup_has_it_as_the_most_eager_would() -> None:
    latency = {"a": 0.1, "b": 0.1}

    async def reply(mirror: Mirror, request: Request) -> Reply:
        await asyncio.sleep(latency[mirror.source])
        return rows_for(request) if request.path == "/at" else page([[1, "a"]])

    async def main() -> list[int]:
        sent = []
        for other in ("none", "some"):
            latency.update(a=0.1, b=0.1)
            network = Scripted(reply)
            async with Access(catalog(A, B), transport=network, random=Random(1)) as access:
                for key in range(20):
                    visit, heard = visited(access)
                    visit.ask(lookups(key))
                    await heard.ends()
                    visit.close()
                network.sent.clear()
                latency.update(a=0.6, b=0.6)
                (one, first), (two, second) = visited(access), visited(access)
                one.hedge("none")
                two.hedge(other)  # type: ignore[arg-type]
                for visit in (one, two):
                    visit.ask(lookups(99))
                await first.ends()
                await second.ends()
                sent.append(len(network.sent))
        return sent

    assert run(main()) == [1, 2]


def test_every_goal_says_how_eager_it_is() -> None:
    assert {goal: HEDGED[goal] for goal in GOALS} == {
        "first_rows": "more",
        "all_rows": "some",
        "fewest_calls": "none",
    }
