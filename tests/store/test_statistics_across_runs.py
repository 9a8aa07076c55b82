"""What one process measured is where the next one starts from: which mirror, and when a request is late."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fixtures import Behaviour, Fixed, Web, book_trade_web
from mediator import noting
from mediator.catalog.measured import Place
from mediator.store import statistics
from mediator.store.statistics import FILE
from tests.answering.kit import GONE, all_of, ask, in_virtual_time
from tests.store.kit import NOON, Wall, keeping

OFFERS = "SELECT o.price FROM books b JOIN offers o ON o.isbn = b.isbn"
NORTH, SOUTH = (Place("offers", "by_isbn", f"prices_{side}") for side in ("north", "south"))


def trade(slow: str, fast: str) -> Web:
    return book_trade_web(
        200,
        behaviours={slow: Behaviour(latency=Fixed(0.8)), fast: Behaviour(latency=Fixed(0.02))},
        book_page=20,
    )


@pytest.mark.parametrize(
    ("slow", "fast"), [("offers_north", "offers_south"), ("offers_south", "offers_north")]
)
def test_the_next_process_asks_the_faster_mirror_first(tmp_path: Path, slow: str, fast: str) -> None:
    async def main() -> tuple[int, int]:
        web = trade(slow, fast)
        async with keeping(web, tmp_path) as mediator:
            await ask(mediator, OFFERS)
        web.reset()
        async with keeping(web, tmp_path) as mediator:
            await ask(mediator, OFFERS, max_age=0.0)
        return web.counters[slow].requests, web.counters[fast].requests

    asked_slow, asked_fast = in_virtual_time(main())
    assert asked_slow == 0
    assert asked_fast >= 10


def test_a_stranger_has_to_find_out(tmp_path: Path) -> None:
    async def main() -> int:
        web = trade("offers_north", "offers_south")
        async with keeping(web, tmp_path) as mediator:
            await ask(mediator, OFFERS)
        return web.counters["offers_north"].requests

    assert in_virtual_time(main()) > 0


def test_the_first_late_request_is_noticed_by_what_was_usual(tmp_path: Path) -> None:
    """Without anything measured it would take a second."""

    async def main() -> float:
        web = trade("offers_north", "offers_south")
        async with keeping(web, tmp_path) as mediator:
            for _ in range(3):
                await ask(mediator, OFFERS, max_age=0.0)
        web.behave("offers_south", Behaviour(latency=Fixed(60.0)))
        web.behave("offers_north", Behaviour(latency=Fixed(0.02)))
        web.reset()
        async with keeping(web, tmp_path) as mediator:
            began = asyncio.get_running_loop().time()
            await ask(mediator, "SELECT price FROM offers WHERE isbn = 'none'", max_age=0.0)
            return asyncio.get_running_loop().time() - began

    assert in_virtual_time(main()) < 0.3


def test_a_site_that_has_changed_is_believed_again_soon(tmp_path: Path) -> None:
    """What was the fast mirror has become the slow one."""

    async def main() -> tuple[int, int]:
        async with keeping(trade("offers_north", "offers_south"), tmp_path) as mediator:
            await ask(mediator, OFFERS)
        web = trade("offers_south", "offers_north")
        async with keeping(web, tmp_path) as mediator:
            for _ in range(10):
                await ask(mediator, OFFERS, max_age=0.0)
        return web.counters["offers_south"].requests, web.counters["offers_north"].requests

    now_slow, now_fast = in_virtual_time(main())
    assert now_fast > 3 * now_slow


def test_what_is_kept_is_what_happened(tmp_path: Path) -> None:
    async def main() -> tuple[Web, int]:
        web = trade("offers_north", "offers_south")
        async with keeping(web, tmp_path) as mediator:
            found, _ = await ask(mediator, "SELECT r.stars FROM books b JOIN reviews r ON r.isbn = b.isbn")
        return web, found.num_rows

    web, found = in_virtual_time(main())
    kept = statistics.load(tmp_path, NOON)
    reviews, books = kept.of("reviews", "by_isbn"), kept.of("books", "all")
    assert reviews.requests == web.counters["reviews"].requests
    assert reviews.lookups == 200
    assert reviews.rows.mean == pytest.approx(found / 200)
    assert 150 < reviews.bindings.count < 260
    assert books.lookups == 1
    assert books.rows.mean == 200
    assert books.pages.mean == 10
    assert books.error_rate == 0.0


def test_errors_are_kept_by_their_cause(tmp_path: Path) -> None:
    async def main() -> None:
        web = book_trade_web(20)
        web.behave("authors", GONE)
        async with keeping(web, tmp_path) as mediator:
            await ask(mediator, "SELECT name FROM authors WHERE id IN (1001, 1002)")

    in_virtual_time(main())
    authors = statistics.load(tmp_path, NOON).of("authors", "by_id")
    assert authors.errors == {"refused": 2.0}
    assert authors.error_rate == 1.0


def test_it_is_written_while_the_process_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a thread, which a virtual clock does not wait for: so after a moment of real time."""
    monkeypatch.setattr(noting, "_GATHERING", 0.05)

    async def main() -> None:
        async with keeping(book_trade_web(40), tmp_path) as mediator:
            await ask(mediator, OFFERS)
            async with asyncio.timeout(20):
                while not (tmp_path / FILE).exists():  # nobody says when a thread is done
                    await asyncio.sleep(0.01)
            kept = statistics.read(tmp_path, NOON)
            assert kept.at(NORTH).requests + kept.at(SOUTH).requests > 0

    asyncio.run(main())


def test_a_folder_that_cannot_be_written_fails_no_query(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(folder: Path, measured: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(statistics, "save", full)

    async def main() -> None:
        async with keeping(book_trade_web(20), tmp_path) as mediator, mediator.answering(OFFERS) as answers:
            assert (await all_of(answers)).num_rows
            assert answers.report.complete

    in_virtual_time(main())
    assert "What was measured cannot be kept" in caplog.text


def test_what_was_measured_grows_old_between_processes(tmp_path: Path) -> None:
    wall = Wall()

    async def main() -> float:
        web = book_trade_web(20)
        async with keeping(web, tmp_path, wall) as mediator:
            await ask(mediator, "SELECT title FROM books")
        wall.now += 7 * 86_400.0
        async with keeping(web, tmp_path, wall) as mediator:
            assert mediator._house is not None
            return mediator._house.measured.of("books", "all").requests

    assert in_virtual_time(main()) == pytest.approx(0.5)


_CHILD = """
import asyncio, sys
from pathlib import Path
from fixtures import book_trade_web
from fixtures.virtual import VirtualTransport
from mediator.answering import Mediator
from mediator.catalog.model import Catalog
from dataclasses import replace

async def main():
    web = book_trade_web(100)
    sites = {n: replace(s, daily=40) for n, s in web.catalog.sources.items()}
    catalog = Catalog(web.catalog.relations, sites)
    async with Mediator(catalog, threads=1, transport=VirtualTransport(web), store=Path(sys.argv[1])) as mediator:
        while True:
            async with mediator.answering("SELECT isbn FROM books", max_age=0.0) as answers:
                async for _ in answers:
                    pass
            print(web.counters["books"].requests, flush=True)

asyncio.run(main())
"""


def test_a_daily_budget_holds_across_kills(tmp_path: Path) -> None:
    """Five processes, each killed when it has asked a few times: together they never ask more than the budget."""
    sent, renewed = 0, False
    day = time.gmtime().tm_yday
    for kill_after in (1, 4, 9, 15, 60):
        child = subprocess.Popen(
            [sys.executable, "-c", _CHILD, str(tmp_path / "store")],
            stdout=subprocess.PIPE,
            cwd=Path(__file__).parents[2],
        )
        assert child.stdout is not None
        count = last = 0
        for _ in range(kill_after):
            last, count = count, int(child.stdout.readline())
            if count == last:
                break
        os.kill(child.pid, signal.SIGKILL)
        rest = child.stdout.read().split()
        child.wait()
        child.stdout.close()
        sent += int(rest[-1]) if rest else count
        renewed = renewed or time.gmtime().tm_yday != day
    assert sent <= (80 if renewed else 40)
    assert sent >= 20, "what a kill costs is a block at most"
