"""So many requests in a day, of all queries and of all processes that share a store."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from access_kit import Listener, Scripted, answered, catalog, in_turn, lookups, rows_for, scan, status, steady
from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures.virtual import run
from mediator.access import Access
from mediator.access.limits.daily import Daily
from mediator.catalog.measured import Measurements
from mediator.catalog.model import Catalog, Mirror, Source
from mediator.catalog.wrapper import Reply, Request
from mediator.errors import SpentToday
from mediator.preflight import left_today
from mediator.store.ledger import FILE, Ledger, sent_on

NOON = datetime(2030, 3, 31, 12, tzinfo=UTC)


class Today:
    """A calendar that a test turns."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        return self.now


def limited(daily: int, **source: object) -> Catalog:
    return catalog(Source("site", daily=daily, **source))  # type: ignore[arg-type]


def opened(
    known: Catalog, network: Scripted, today: Callable[[], datetime], folder: Path | None = None
) -> Access:
    access = Access(known, transport=network, today=today)
    if folder is not None:
        access.recall(Measurements(), Ledger(folder, today().date()))
    return access


class TestOneProcess:
    @pytest.mark.parametrize("daily", [1, 3, 9])
    def test_so_many_are_sent_and_the_rest_fails_and_says_until_when(self, daily: int) -> None:
        async def main() -> Listener:
            async with opened(limited(daily), network, Today()) as access:
                return await answered(access, lookups(*range(10)))

        network = steady(0.1)
        told = run(main())
        assert len(network.sent) == daily
        assert told.cause == (
            f"daily budget: site takes {daily} requests a day, and has had them: its daily budget is renewed at "
            "2030-04-01 00:00 UTC"
        )

    def test_all_queries_share_it_and_all_attempts_count(self) -> None:
        async def main() -> None:
            async with opened(limited(4), network, Today()) as access:
                first = await answered(access, lookups(1))
                second = await answered(access, lookups(2, 3))
                assert not first.failed
                assert len(second.exhausted) == len(second.failed) == 1

        network = in_turn(status(500), rows_for(Request("/at", (("k", "1"),))), status(500), _echo)
        run(main())
        assert len(network.sent) == 4

    def test_it_is_renewed_at_midnight(self) -> None:
        async def main() -> None:
            today = Today()
            async with opened(limited(2), steady(), today) as access:
                assert len((await answered(access, lookups(1, 2, 3))).failed) == 1
                today.now = NOON.replace(hour=23, minute=59)
                assert len((await answered(access, lookups(4))).failed) == 1
                today.now = NOON + timedelta(hours=12)
                assert len((await answered(access, lookups(5, 6, 7))).failed) == 1

        run(main())

    def test_a_clock_that_is_set_back_renews_nothing(self) -> None:
        async def main() -> None:
            today = Today()
            async with opened(limited(2), steady(), today) as access:
                assert not (await answered(access, lookups(1, 2))).failed
                for days in (-1, -400, 0):
                    today.now = NOON + timedelta(days=days)
                    told = await answered(access, lookups(3))
                    assert "renewed at 2030-04-01 00:00 UTC" in told.cause

        run(main())

    def test_who_waits_is_told_at_once(self) -> None:
        async def main() -> float:
            async with opened(limited(2, rate=1.0), steady(), Today()) as access:
                assert len((await answered(access, lookups(*range(1_000)))).failed) == 998
                return asyncio.get_running_loop().time()

        assert run(main()) < 5.0

    def test_a_further_page_that_waits_is_told_at_once_too(self) -> None:
        async def main() -> float:
            network = in_turn(*(_page(n) for n in range(3)))
            async with opened(limited(2, rate=0.1), network, Today()) as access:
                told = await answered(access, scan())
                assert "daily budget" in told.cause
                assert told.keys == [0, 1]
                return asyncio.get_running_loop().time()

        assert run(main()) < 15.0

    def test_a_mirror_that_is_not_spent_takes_over(self) -> None:
        async def main() -> None:
            network = steady(0.1)
            sites = catalog(Source("north", daily=3), Source("south"))
            async with opened(sites, network, Today()) as access:
                told = await answered(access, lookups(*range(20)))
                assert told.keys == list(range(20))
                assert network.sources.count("north") == 3

        run(main())

    def test_a_sick_mirror_does_not_hide_that_the_other_is_spent(self) -> None:
        async def reply(mirror: Mirror, request: Request) -> Reply:
            return rows_for(request) if mirror.source == "north" else status(403)

        async def main() -> None:
            sites = catalog(Source("north", daily=1), Source("south"))
            async with opened(sites, Scripted(reply), Today()) as access:
                told = await answered(access, lookups(*range(5)))
                assert len(told.exhausted) + len(told.failed) == 5
                assert len(told.failed) == 4

        run(main())


async def _daily(today: Today, book: Ledger | None, most: int) -> int:
    """Requests that a source takes from one process."""
    daily, sent = Daily("site", most, today, book), 0
    while daily.left:
        await daily.ready()
        daily.take()
        sent += 1
    with pytest.raises(SpentToday):
        await daily.ready()
    return sent


class TestProcesses:
    def test_what_one_has_sent_the_next_may_not(self, tmp_path: Path) -> None:
        async def main() -> None:
            today, network = Today(), steady()
            async with opened(limited(100), network, today, tmp_path) as access:
                await answered(access, lookups(*range(37)))
            assert sent_on(tmp_path, date(2030, 3, 31)) == {"site": 37}
            async with opened(limited(100), network, today, tmp_path) as access:
                assert len((await answered(access, lookups(*range(100)))).failed) == 37
            assert len(network.sent) == 100
            today.now += timedelta(days=1)
            async with opened(limited(100), network, today, tmp_path) as access:
                assert not (await answered(access, lookups(*range(100)))).failed

        run(main())

    def test_a_clock_that_is_set_back_between_them_renews_nothing(self, tmp_path: Path) -> None:
        async def main() -> None:
            today = Today()
            assert await _daily(today, Ledger(tmp_path, today().date()), 10) == 10
            today.now -= timedelta(days=3)
            assert await _daily(today, Ledger(tmp_path, today().date()), 10) == 0

        asyncio.run(main())

    def test_a_process_that_is_killed_costs_a_block_at_most_and_gives_none_away(self, tmp_path: Path) -> None:
        async def main() -> None:
            today = Today()
            daily = Daily("site", 200, today, Ledger(tmp_path, today().date()))
            for _ in range(23):
                await daily.ready()
                daily.take()
            # Nobody settles: it was killed.
            left = await _daily(today, Ledger(tmp_path, today().date()), 200)
            assert 200 - 23 - 10 <= left <= 200 - 23

        asyncio.run(main())

    def test_many_at_once_wait_for_one_note(self, tmp_path: Path) -> None:
        async def main() -> None:
            today = Today()
            daily = Daily("site", 1_000, today, ledger := _Counting(tmp_path, today().date()))
            for _ in range(3):
                await asyncio.gather(*(daily.ready() for _ in range(40)))
            assert ledger.notes == 1

        asyncio.run(main())

    @settings(max_examples=25)
    @given(st.lists(st.tuples(st.integers(0, 40), st.booleans(), st.integers(-1, 1)), max_size=8))
    def test_however_they_end_no_day_gets_more(self, runs: list[tuple[int, bool, int]]) -> None:
        """Each run sends some, then is killed or not; days pass, and now and then the clock is set back."""

        async def main(folder: Path) -> None:
            today, sent = Today(), dict[date, int]()
            latest = date.min  # day on which anything was sent
            for requests, killed, days in runs:
                today.now += timedelta(days=days)
                daily = Daily("site", 50, today, Ledger(folder, today().date()))
                for _ in range(min(requests, daily.left)):
                    await daily.ready()
                    daily.take()
                    latest = max(latest, today.now.date())
                    sent[latest] = sent.get(latest, 0) + 1
                if not killed:
                    daily.settle()
            assert all(count <= 50 for count in sent.values())

        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(main(Path(folder)))


class TestTheLedger:
    @pytest.mark.parametrize(
        "damage",
        [
            b"",
            b"{",
            b"[]",
            b"\xff\xfe",
            b'{"version": NaN}',
            b'{"version": 2, "lost": null, "sources": {}}',
            b'{"version": 1, "lost": null, "sources": {"site": {"day": "2030-03-31", "count": -5}}}',
        ],
    )
    def test_one_that_is_damaged_has_lost_the_count_of_its_day_and_no_other(
        self, tmp_path: Path, damage: bytes, caplog: pytest.LogCaptureFixture
    ) -> None:
        (tmp_path / FILE).write_bytes(damage)

        async def main() -> None:
            today = Today()
            assert await _daily(today, Ledger(tmp_path, today().date()), 10) == 0
            assert "How many requests were sent today is not known" in caplog.text
            assert await _daily(today, Ledger(tmp_path, today().date()), 10) == 0, "nor by another process"
            assert left_today(limited(10), tmp_path, today().timestamp()) == {"site": 0}
            today.now += timedelta(days=1)
            assert await _daily(today, Ledger(tmp_path, today().date()), 10) == 10

        asyncio.run(main())

    def test_one_that_cannot_be_written_stops_what_it_should_count(self, tmp_path: Path) -> None:
        async def main() -> None:
            today, network = Today(), steady()
            ledger = _Full(tmp_path, today().date())
            access = Access(limited(10), transport=network, today=today)
            access.recall(Measurements(), ledger)
            async with access:
                told = await answered(access, lookups(1))
            assert told.cause.startswith("daily budget: what is sent to site cannot be noted, so nothing is")
            assert not network.sent

        run(main())


class _Counting(Ledger):
    notes = 0

    def note(self, source: str, day: date, count: int) -> None:
        self.notes += 1
        super().note(source, day, count)


class _Full(Ledger):
    def note(self, source: str, day: date, count: int) -> None:
        raise OSError(28, "No space left on device")


_echo = Reply(200, {}, b'{"rows": [[2, "v2"]]}')


def _page(number: int) -> Reply:
    return Reply(200, {}, f'{{"rows": [[{number}, "x"]], "then": ["/{number + 1}"]}}'.encode())
