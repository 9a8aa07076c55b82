"""Mirrors that stall: known by their silence, tried again now and then, and stood in for, also in mid-walk."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from random import Random
from typing import Any

import pytest
from access_kit import Scripted, answered, asked_for, catalog, lookups, page, rows_for, scan, status

from fixtures.virtual import run
from mediator.access import Access
from mediator.access.mirrors.silence import Silence
from mediator.catalog.model import Catalog, Mirror, Source
from mediator.catalog.wrapper import Reply, Request

A, B = Source("a", concurrency=4), Source("b", concurrency=4)
PAGES = 40


class Web:
    """Two mirrors, of which `a` is silent from a moment on until another."""

    def __init__(
        self, stall: tuple[float, float], show: Callable[[str, int], Sequence[Any]] | None = None
    ) -> None:
        self.stall = stall
        self.show = show or (lambda mirror, number: [[number, "v"]])
        self.pages = self.linked
        self.whole: Counter[str] = Counter()  # replies that were sent, by what was asked

    def linked(self, mirror: str, request: Request) -> Reply:
        """A page; the first names all others, which may be asked side by side."""
        number = 0 if request.path == "/scan" else int(request.path.rpartition("/")[2])
        then = [f"/pages/{n}" for n in range(1, PAGES)] if number == 0 else []
        return page(self.show(mirror, number), then)

    async def __call__(self, mirror: Mirror, request: Request) -> Reply:
        now = asyncio.get_running_loop().time()
        ends = now + {"a": 0.05, "b": 0.1}[mirror.source]
        begins, over = self.stall
        if mirror.source == "a" and now < over and ends > begins:
            ends = over + 0.05
        await asyncio.sleep(ends - now)
        if request.path == "/at":
            self.whole.update(str(k) for k in asked_for(request))
            return rows_for(request)
        self.whole[request.path] += 1
        return self.pages(mirror.source, request)

    @property
    def twice(self) -> int:
        return sum(count - 1 for count in self.whole.values())


def played(
    web: Web, declared: Catalog, play: Callable[[Access, Scripted], Coroutine[Any, Any, None]]
) -> None:
    network = Scripted(web)

    async def main() -> None:
        async with Access(declared, transport=network, random=Random(1)) as access:
            await play(access, network)
        assert not +network.inside

    run(main())


class TestSilence:
    def test_it_counts_from_the_last_reply_or_from_the_oldest_request(self) -> None:
        silence = Silence()
        assert silence.seconds(9.0) == 0.0, "nobody waits"
        silence.sent(1, 10.0)
        silence.sent(2, 11.0)
        assert silence.seconds(12.0) == 2.0
        silence.over(1)
        assert silence.seconds(12.0) == 1.0
        silence.heard(11.5)
        assert silence.seconds(12.0) == 0.5
        silence.over(2)
        assert silence.seconds(20.0) == 0.0

    def test_a_reply_ends_suspicion(self) -> None:
        silence = Silence()
        silence.suspected, silence.trial_at = True, 30.0
        silence.heard(12.0)
        assert not silence.suspected
        assert silence.trial_at < 12.0


class TestLookups:
    def test_a_mirror_that_stalls_gets_a_trial_now_and_then_and_no_more(self) -> None:
        async def play(access: Access, network: Scripted) -> None:
            told = await answered(access, lookups(*range(400)))
            assert told.keys == list(range(400))
            silent = [at for at, source, _ in network.sent if source == "a" and 1.5 < at < 8.0]
            assert 1 <= len(silent) <= 6.5 / (4 * 0.05), "one at a time, and not one after another"
            assert web.twice == 0

        web = Web(stall=(1.0, 8.0))
        played(web, catalog(A, B), play)

    def test_it_is_used_again_when_it_answers_again(self) -> None:
        async def play(access: Access, network: Scripted) -> None:
            await answered(access, lookups(*range(400)))
            after = Counter(source for at, source, _ in network.sent if at > 3.5)
            assert after["a"] > after["b"] > 0

        played(Web(stall=(1.0, 3.0)), catalog(A, B), play)

    def test_what_the_stall_caught_is_asked_elsewhere_though_no_hedge_is_left(self) -> None:
        async def play(access: Access, network: Scripted) -> None:
            loop = asyncio.get_running_loop()
            await answered(access, lookups(*range(100)))
            access._methods["r", "by_k"].race._hedges = 0.0
            web.stall = (loop.time(), loop.time() + 60.0)
            began = loop.time()
            told = await answered(access, lookups(*range(100, 130)))
            assert len(told.keys) == 30
            assert loop.time() - began < 2.0, "nobody waits for the stall to end"

        web = Web(stall=(0.0, 0.0))
        played(web, catalog(A, B), play)

    def test_where_all_stall_each_is_tried_and_the_rest_waits(self) -> None:
        async def play(access: Access, network: Scripted) -> None:
            told = await answered(access, lookups(*range(60)))
            assert told.keys == list(range(60))

        class Both(Web):
            async def __call__(self, mirror: Mirror, request: Request) -> Reply:
                now = asyncio.get_running_loop().time()
                if 0.3 <= now < 2.0:
                    await asyncio.sleep(2.0 - now)
                return await super().__call__(mirror, request)

        played(Both(stall=(0.0, 0.0)), catalog(A, B), play)

    def test_one_late_reply_among_others_is_no_stall(self) -> None:
        async def play(access: Access, network: Scripted) -> None:
            await answered(access, lookups(*range(200)))
            runners = access._methods["r", "by_k"].race.runners
            assert not any(runner.silence.suspected for runner in runners)

        late = iter(range(10_000))

        class Now(Web):
            async def __call__(self, mirror: Mirror, request: Request) -> Reply:
                if mirror.source == "a" and next(late) % 40 == 39:
                    await asyncio.sleep(0.4)
                return await super().__call__(mirror, request)

        played(Now(stall=(0.0, 0.0)), catalog(A, B), play)


class TestWalks:
    def test_a_scan_goes_on_where_the_other_mirror_shows_the_same_pages(self) -> None:
        async def play(access: Access, network: Scripted) -> None:
            loop = asyncio.get_running_loop()
            told = await answered(access, scan())
            assert told.keys == list(range(PAGES))
            assert not told.failed
            assert loop.time() < 5.0, "it does not wait for the stall to end"
            assert web.twice == 1, "the page that shows whether they are alike"
            assert Counter(network.sources)["b"] > PAGES // 2

        web = Web(stall=(0.2, 60.0))
        played(web, catalog(A, B), play)

    def test_it_comes_back_when_the_first_is_well_again(self) -> None:
        async def play(access: Access, network: Scripted) -> None:
            await answered(access, scan())
            assert set(network.sources[-4:]) == {"a"}

        played(Web(stall=(0.15, 0.5)), catalog(A, B), play)

    @pytest.mark.parametrize(
        "show", [lambda m, n: [[n if m == "a" else PAGES - 1 - n, "v"]], lambda m, n: [[n, m]]]
    )
    def test_another_order_or_other_rows_are_not_put_together(
        self, show: Callable[[str, int], Sequence[Any]]
    ) -> None:
        async def play(access: Access, network: Scripted) -> None:
            told = await answered(access, scan())
            assert sorted(set(told.keys)) == list(range(PAGES))
            asked = [r.path for _, source, r in network.sent if source == "b"]
            assert told.exhausted
            landed = [(row, landing) for landing in told.landings for row in landing.rows.to_pylist()]
            assert len(landed) == PAGES, "none of the other's pages was taken"
            assert asked, "it was looked at"

        played(Web(stall=(0.2, 3.0), show=show), catalog(A, B), play)

    def test_whole_addresses_belong_to_the_mirror_that_gave_them(self) -> None:
        async def play(access: Access, network: Scripted) -> None:
            told = await answered(access, scan())
            assert told.keys == list(range(PAGES))
            later = [(source, r.path) for _, source, r in network.sent if r.path != "/scan"]
            assert {source for source, _ in later} == {"a"}

        web = Web(stall=(0.2, 1.0))

        def whole(mirror: str, request: Request) -> Reply:
            number = 0 if request.path == "/scan" else int(request.path.rpartition("/")[2])
            then = [f"http://{mirror}.test/pages/{n}" for n in range(1, PAGES)] if number == 0 else []
            return page([[number, "v"]], then)

        web.pages = whole
        played(web, catalog(A, B), play)

    def test_a_mirror_that_fails_in_the_middle_is_followed_by_its_twin(self) -> None:
        async def play(access: Access, network: Scripted) -> None:
            told = await answered(access, scan())
            assert told.keys == list(range(PAGES))
            assert not told.failed
            assert web.twice == 1

        web = Web(stall=(0.0, 0.0))
        linked = web.linked

        def failing(mirror: str, request: Request) -> Reply:
            if (
                mirror == "a"
                and request.path.startswith("/pages/")
                and int(request.path.rpartition("/")[2]) >= 20
            ):
                web.whole[request.path] -= 1
                return status(403)
            return linked(mirror, request)

        web.pages = failing
        played(web, catalog(A, B), play)
