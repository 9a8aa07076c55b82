"""Several askers over real HTTP, without Spark: together they ask what one would ask, within the same limits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fixtures import Web, book_trade
from fixtures.behaviour import Behaviour, Fault, Fixed
from mediator.answering import verdicts_of
from mediator.assembly import Settings
from mediator.query.understand import understand
from pipeline.cells.envelopes import Broken, Came, Lookup, Over
from pipeline.cells.packing import unpacked
from pipeline.spread.asker import Asker
from pipeline.spread.asks import put_asks, table
from pipeline.spread.folder import Folder
from pipeline.spread.pieces import numbered
from pipeline.spread.plan import Plan, planned
from pipeline.spread.reporting import report
from pipeline.spread.strands import entries, total
from pipeline.spread.watching import watched

SQL = "SELECT b.title, o.price FROM books b JOIN offers o ON o.isbn = b.isbn"
ASKERS, PAGES = 3, 12
SCAN = Lookup("books", "all", (), ())
_LOOK = 0.02


@pytest.fixture
def web() -> Iterator[Web]:
    with book_trade(60, book_page=5, behaviours={"books": Behaviour(latency=Fixed(0.05))}) as web:
        yield web


def plan_of(web: Web, **said: Any) -> Plan:
    query = understand(SQL, web.catalog)
    return planned(
        web.catalog,
        query,
        verdicts_of(query, web.catalog),
        Settings(**said),
        lambda *_: 60.0,
        slots=1,
        askers=ASKERS,
    )


def begun(plan: Plan, folder: Folder, lookups: Iterable[Lookup]) -> None:
    """Two cells ask for the same."""
    folder.begin(plan)
    for number in (0, 1):
        asked = [(number, lookup) for lookup in lookups]
        put_asks(numbered(folder.asks, number, "arrow"), [table(asked, plan.relations)])


def log(plan: Plan, folder: Folder) -> list[Came | Over | Broken]:
    strands = sorted((folder.path / "log").iterdir())
    return [unpacked(entry.envelope, plan.relations) for strand in strands for entry in entries(strand)]


class Asking:
    """Askers that are there until all has ended."""

    def __init__(self, web: Web, plan: Plan, folder: Folder, lookups: Iterable[Lookup]) -> None:
        self._web, self._plan, self._folder, self._wanted = web, plan, folder, set(lookups)
        self._tasks: dict[int, asyncio.Task[None]] = {}

    async def go(self, killed: int | None = None, told: Callable[[], bool] = lambda: True) -> None:
        """One of them may be killed when some pages have come, and is begun anew. They also wait for something else."""
        async with asyncio.TaskGroup() as group:
            for number in range(self._plan.askers):
                self._begin(group, number)
            if killed is not None:
                await self._until(lambda: self._web.counters["books"].requests > PAGES // 2)
                self._tasks[killed].cancel()
                await asyncio.wait([self._tasks[killed]])
                self._begin(group, killed)
            await self._until(lambda: self._wanted <= {e.lookup for e in self._ends()})
            await self._until(told)
            self._folder.end = {"given": 0, "stopped": ""}

    def _begin(self, group: asyncio.TaskGroup, number: int) -> None:
        self._tasks[number] = group.create_task(Asker(self._plan, self._folder, number).run())

    async def _until(self, reached: Callable[[], bool]) -> None:
        while not reached():
            await asyncio.sleep(_LOOK)

    def _ends(self) -> list[Over | Broken]:
        return [e for e in log(self._plan, self._folder) if isinstance(e, Over | Broken)]


def offers(web: Web) -> list[Lookup]:
    return [
        Lookup("offers", "by_isbn", ("isbn",), (isbn,)) for isbn in web.tables["books"]["isbn"].to_pylist()
    ]


def scanned(plan: Plan, folder: Folder) -> list[str]:
    """The books of the replies that the scan's end names."""
    there = log(plan, folder)
    landings = {number for e in there if isinstance(e, Over) and e.lookup == SCAN for number in e.landings}
    came = [e.rows for e in there if isinstance(e, Came) and e.landing in landings]
    return sorted(isbn for rows in came for isbn in rows.column(0).to_pylist())


async def test_together_they_ask_what_one_would(web: Web, tmp_path: Path) -> None:
    plan, folder, lookups = plan_of(web), Folder(tmp_path / "c"), [SCAN, *offers(web)]
    begun(plan, folder, lookups)

    def told() -> bool:
        return PAGES in {source.requests for source in watched(folder) if source.source == "catalogue"}

    await Asking(web, plan, folder, lookups).go(told=told)
    assert web.counters["books"].requests == PAGES, "every page once"
    assert web.counters["books"].peak <= 8, "as many at once as the source declares"
    assert scanned(plan, folder) == sorted(web.tables["books"]["isbn"].to_pylist())
    counts = total(sorted((folder.path / "log").iterdir()))
    assert counts["books"] == {"asked": 1, "answered": 1, "failed": 0, "rows": 60}
    assert counts["offers"]["asked"] == counts["offers"]["answered"] == 60
    strands = {path.name for path in (folder.path / "log").iterdir() if any(path.glob("*.arrow"))}
    assert strands == {f"asker-{number:04d}" for number in range(ASKERS)}
    source = next(s for s in watched(folder) if s.source == "catalogue")
    assert (source.asked, source.answered, source.requests, source.width) == (1, 1, PAGES, 8)


@pytest.mark.parametrize("killed", range(ASKERS))
async def test_one_of_them_that_is_killed_takes_nothing_along(killed: int, web: Web, tmp_path: Path) -> None:
    plan, folder = plan_of(web), Folder(tmp_path / "c")
    begun(plan, folder, [SCAN])
    await Asking(web, plan, folder, [SCAN]).go(killed)
    assert scanned(plan, folder) == sorted(web.tables["books"]["isbn"].to_pylist())
    assert web.counters["books"].requests <= PAGES + 8
    counts = total(sorted((folder.path / "log").iterdir()))
    assert counts["books"] == {"asked": 1, "answered": 1, "failed": 0, "rows": 60}


async def test_what_may_be_spent_is_in_one_purse(web: Web, tmp_path: Path) -> None:
    plan, folder, lookups = plan_of(web, max_calls=5), Folder(tmp_path / "c"), [SCAN, *offers(web)]
    begun(plan, folder, lookups)
    await Asking(web, plan, folder, lookups).go()
    assert web.requests == 5


async def test_what_one_of_them_cannot_get_is_missing_once(web: Web, tmp_path: Path) -> None:
    """The first page comes, and from then on the site is down for all of them."""
    refused = Fault("error", requests=tuple(range(2, 200)), status=403)
    web.behave("books", Behaviour(faults=(refused,)))
    plan, folder = plan_of(web), Folder(tmp_path / "c")
    begun(plan, folder, [SCAN])
    await Asking(web, plan, folder, [SCAN]).go()
    books = next(r for r in report(plan, folder, (), "it was stopped").relations if r.relation == "books")
    assert (books.asked, books.answered, books.failed, books.cancelled) == (1, 0, 1, 0)
    assert [failure.bindings for failure in books.failures] == [((),)]
    (end,) = [e for e in log(plan, folder) if isinstance(e, Broken)]
    assert "403" in end.cause.message
