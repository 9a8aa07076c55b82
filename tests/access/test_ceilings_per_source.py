"""What one query may spend at one source: at its edge, with retries and mirrors, and without touching others."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from random import Random

import pytest
from access_kit import Listener, Scripted, catalog, in_turn, lookups, page, rows_for, scan, status, steady
from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures.virtual import run
from mediator.access import Access, Ceilings
from mediator.catalog.model import Catalog, Mirror, Source
from mediator.catalog.wrapper import Reply, Request
from mediator.errors import MediatorError, Unreachable
from mediator.flow.events import Ask, Cancel

NORTH, SOUTH = Source("north", concurrency=4), Source("south", concurrency=4)


def asked(
    known: Catalog,
    network: Scripted,
    *asks: Ask,
    ceilings: Ceilings | None = None,
    at: Mapping[str, Ceilings] | None = None,
) -> Listener:
    """What one query hears in virtual time, with ceilings of its own or of its source's."""

    async def main() -> Listener:
        async with Access(known, transport=network) as access:
            told = Listener()
            visit = access.visit(told, ceilings or Ceilings(), at or {})
            for ask in asks:
                visit.ask(ask)
            await told.ends(sum(len(ask.bindings) for ask in asks))
            visit.close()
            return told

    return run(main())


class TestCalls:
    @pytest.mark.parametrize("most", [0, 1, 3, 9])
    def test_so_many_are_sent_and_the_rest_fails_by_name(self, most: int) -> None:
        network = steady(0.1)
        told = asked(catalog(), network, lookups(*range(10)), at={"site": Ceilings(calls=most)})
        assert len(network.sent) == most
        assert len(told.exhausted) == most
        assert told.cause == (
            f"ceiling: the query may send {most} requests to site (max_calls), and needs more"
        )

    def test_as_many_as_are_needed_are_enough(self) -> None:
        told = asked(catalog(), steady(0.1), lookups(*range(10)), at={"site": Ceilings(calls=10)})
        assert told.keys == list(range(10))
        assert not told.failed

    @pytest.mark.parametrize(("declared", "said"), [(2, 5), (5, 2), (2, None), (None, 2)])
    def test_the_lower_of_what_is_declared_and_said_holds(
        self, declared: int | None, said: int | None
    ) -> None:
        network = steady(0.1)
        known = catalog(Source("site", per_query=Ceilings(calls=declared)))
        asked(known, network, lookups(*range(10)), at={"site": Ceilings(calls=said)} if said else {})
        assert len(network.sent) == 2

    def test_retries_count(self) -> None:
        network = in_turn(status(500))
        told = asked(catalog(), network, lookups(1), at={"site": Ceilings(calls=3)})
        assert len(network.sent) == 3
        assert told.cause.startswith("ceiling: the query may send 3 requests to site")

    def test_further_pages_count_and_those_that_came_stay(self) -> None:
        network = in_turn(page([[1, "a"]], ["/2"]), page([[2, "b"]], ["/3"]), page([[3, "c"]]))
        told = asked(catalog(), network, scan(), at={"site": Ceilings(calls=2)})
        assert told.keys == [1, 2]
        assert "(max_calls)" in told.cause

    def test_a_late_request_is_not_sent_twice_where_only_one_is_paid_for(self) -> None:
        network = steady(5.0)
        known = catalog(Source("site", twice=True))
        told = asked(known, network, lookups(1), at={"site": Ceilings(calls=1)})
        assert told.keys == [1]
        assert len(network.sent) == 1

    def test_one_that_is_sent_twice_counts_twice(self) -> None:
        network = steady(5.0)
        known = catalog(Source("site", twice=True))
        told = asked(known, network, lookups(1), lookups(2, number=2), at={"site": Ceilings(calls=3)})
        assert len(network.sent) == 3
        assert told.keys == [1, 2]

    def test_what_waits_does_not_wait_for_a_limiter_to_say_no(self) -> None:
        async def main() -> float:
            async with Access(catalog(Source("site", rate=1.0)), transport=steady()) as access:
                told = Listener()
                access.visit(told, at={"site": Ceilings(calls=2)}).ask(lookups(*range(1_000)))
                await told.ends(1_000)
                return asyncio.get_running_loop().time()

        assert run(main()) < 5.0

    def test_a_name_that_is_no_source_is_refused(self) -> None:
        async def main() -> None:
            async with Access(catalog(), transport=steady()) as access:
                with pytest.raises(MediatorError, match="'sit', which is no source: did you mean 'site'"):
                    access.visit(Listener(), at={"sit": Ceilings(calls=1)})

        run(main())


class TestBytes:
    def test_what_is_under_way_is_read_and_the_rest_fails(self) -> None:
        network = steady(0.1)
        known = catalog(Source("site", concurrency=2))
        told = asked(known, network, lookups(*range(10)), at={"site": Ceilings(bytes=1)})
        assert len(network.sent) == 2
        assert told.keys == [0, 1]
        assert "ceiling: the query may read 1 bytes from site (max_bytes), and has read" in told.cause

    def test_a_byte_more_than_is_needed_is_enough(self) -> None:
        size = len(rows_for(Request("/at", (("k", "1"),))).body)
        enough = asked(catalog(), steady(), lookups(1, 2), at={"site": Ceilings(bytes=2 * size + 1)})
        assert not enough.failed


class TestSeconds:
    def test_what_is_under_way_is_called_back(self) -> None:
        async def main() -> None:
            network = steady(10.0)
            async with Access(catalog(), transport=network) as access:
                told = Listener()
                access.visit(told, at={"site": Ceilings(seconds=3.0)}).ask(lookups(*range(20)))
                await told.ends(20)
                assert asyncio.get_running_loop().time() == pytest.approx(3.0)
                assert told.cause == (
                    "ceiling: the query may spend 3 s with requests to site (max_seconds), and needs more"
                )
                assert network.abandoned == 8
                assert access.statistics().source("site").in_flight == 0

        run(main())

    def test_several_at_once_count_once_and_pauses_do_not(self) -> None:
        async def main() -> None:
            async with Access(catalog(), transport=steady(1.0)) as access:
                told = Listener()
                visit = access.visit(told, at={"site": Ceilings(seconds=2.5)})
                for number in range(3):
                    visit.ask(lookups(*range(10 * number, 10 * number + 8), number=number))
                    await told.ends(8 * (number + 1))
                    await asyncio.sleep(100.0)
                assert len(told.exhausted) == 16
                assert len(told.failed) == 8

        run(main())

    def test_waiting_to_be_sent_again_counts(self) -> None:
        network = in_turn(status(500, retry_after="20"))
        told = asked(catalog(), network, lookups(1), at={"site": Ceilings(seconds=2.0)})
        assert "max_seconds" in told.cause
        assert len(network.sent) == 1

    def test_none_at_all(self) -> None:
        network = steady(1.0)
        told = asked(catalog(), network, lookups(1), at={"site": Ceilings(seconds=0.0)})
        assert not network.sent
        assert "may spend 0 s" in told.cause

    def test_a_breaker_hears_nothing_of_it(self) -> None:
        async def main() -> None:
            async with Access(catalog(), transport=steady(1.0)) as access:
                for number in range(20):
                    told = Listener()
                    access.visit(told, at={"site": Ceilings(seconds=0.5)}).ask(lookups(number))
                    await told.ends()
                    assert "max_seconds" in told.cause
                assert access.statistics().method("r", "by_k").mirrors[0].errors == 0

        run(main())


class TestMirrors:
    def test_what_one_may_not_be_asked_another_is(self) -> None:
        network = steady(0.1)
        told = asked(catalog(NORTH, SOUTH), network, lookups(*range(20)), at={"north": Ceilings(calls=3)})
        assert told.keys == list(range(20))
        assert network.sources.count("north") == 3

    def test_nothing_is_asked_when_neither_may_be(self) -> None:
        network = steady(0.1)
        at = {"north": Ceilings(calls=3), "south": Ceilings(calls=4)}
        told = asked(catalog(NORTH, SOUTH), network, lookups(*range(20)), at=at)
        assert len(network.sent) == 7
        assert len(told.exhausted) == 7
        assert {cause.split(":")[0] for cause in told.failed.values()} == {"ceiling"}

    def test_a_mirror_takes_over_when_the_time_is_up(self) -> None:
        async def reply(mirror: Mirror, request: Request) -> Reply:
            await asyncio.sleep(25.0 if mirror.source == "north" else 0.1)
            return rows_for(request)

        told = asked(
            catalog(NORTH, SOUTH), Scripted(reply), lookups(*range(8)), at={"north": Ceilings(seconds=1.0)}
        )
        assert told.keys == list(range(8))

    def test_a_mirror_that_fails_leaves_what_the_other_may_not_be_asked(self) -> None:
        async def reply(mirror: Mirror, request: Request) -> Reply:
            if mirror.source == "south":
                raise Unreachable("gone")
            return rows_for(request)

        at = {"north": Ceilings(calls=0)}
        told = asked(catalog(NORTH, SOUTH), Scripted(reply), lookups(1), at=at)
        assert not told.keys
        assert told.cause.startswith("ceiling: the query may send 0 requests to north")


class TestOtherQueries:
    def test_do_not_pay_and_are_not_paid_for(self) -> None:
        async def main() -> None:
            network = steady(1.0)
            async with Access(catalog(), transport=network) as access:
                poor, rich = Listener(), Listener()
                access.visit(poor, at={"site": Ceilings(calls=2)}).ask(lookups(1, 2, 3, 4))
                access.visit(rich).ask(lookups(3, 4, 5, 6))
                await rich.ends(4)
                await poor.ends(4)
                assert rich.keys == [3, 4, 5, 6]
                assert not rich.failed
                assert len(poor.failed) == 2
                assert len(network.sent) == 6

        run(main())

    def test_one_who_is_out_of_time_leaves_the_other_its_reply(self) -> None:
        async def main() -> None:
            network = steady(5.0)
            async with Access(catalog(), transport=network) as access:
                poor, rich = Listener(), Listener()
                access.visit(poor, at={"site": Ceilings(seconds=1.0)}).ask(lookups(1))
                access.visit(rich).ask(lookups(1))
                await poor.ends()
                assert asyncio.get_running_loop().time() == pytest.approx(1.0)
                await rich.ends()
                assert rich.keys == [1]
                assert len(network.sent) == 1

        run(main())

    def test_one_who_joined_late_pays_for_no_time_before(self) -> None:
        async def main() -> None:
            async with Access(catalog(), transport=steady(5.0)) as access:
                first, late = Listener(), Listener()
                access.visit(first).ask(lookups(1))
                await asyncio.sleep(4.0)
                access.visit(late, at={"site": Ceilings(seconds=2.0)}).ask(lookups(1))
                await late.ends()
                assert late.keys == [1]

        run(main())

    def test_one_who_leaves_early_pays_for_no_time_after(self) -> None:
        async def main() -> None:
            async with Access(catalog(), transport=steady(5.0)) as access:
                stays, leaves = Listener(), Listener()
                access.visit(stays).ask(lookups(1))
                visit = access.visit(leaves, at={"site": Ceilings(seconds=6.0)})
                visit.ask(lookups(1))
                await asyncio.sleep(0.5)
                visit.cancel(Cancel(1))
                await stays.ends()
                visit.ask(lookups(2, number=2))
                await leaves.ends()
                assert leaves.keys == [2]

        run(main())


@settings(max_examples=60)
@given(st.data())
def test_no_query_ever_sends_more_than_it_may(data: st.DataObject) -> None:
    """Whatever fails, whoever joins: what only one query wants stays under its ceilings, and every lookup ends."""
    # Not hypothesis' own kind: in what order the tasks ask it is not the test's to say.
    rng = Random(data.draw(st.integers(0, 2**32), "seed"))
    most = {name: data.draw(st.integers(0, 6), name) for name in ("north", "south")}
    whole = data.draw(st.one_of(st.none(), st.integers(0, 8)))

    async def reply(mirror: Mirror, request: Request) -> Reply:
        await asyncio.sleep(rng.uniform(0.0, 2.0))
        if rng.random() < 0.3:
            raise Unreachable("gone", again=rng.random() < 0.5)
        return rows_for(request)

    network = Scripted(reply)
    told = asked(
        catalog(NORTH, SOUTH, batch_size=rng.randint(1, 3)),
        network,
        lookups(*range(6)),
        lookups(*range(6, 12), number=2),
        ceilings=Ceilings(calls=whole),
        at={name: Ceilings(calls=calls) for name, calls in most.items()},
    )
    assert all(network.sources.count(name) <= calls for name, calls in most.items())
    assert whole is None or len(network.sent) <= whole
    assert sorted([*told.exhausted, *told.failed]) == [(key,) for key in range(12)]
