"""Queries of one mediator share what they ask, and nothing else."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pytest

from fixtures import Behaviour, Fault, Fixed, book_trade_web
from mediator.catalog.functions import Function
from mediator.catalog.model import Catalog
from mediator.driver import Answers
from mediator.output.report import Report
from tests.answering.kit import (
    all_of,
    ask,
    asked_again,
    becomes,
    changed,
    check_same,
    in_virtual_time,
    mediating,
    of,
    rows,
    truth,
)
from tests.answering.statements import BY_NAME, STATEMENTS, Statement

LOOKED_UP = ("authors", "holdings", "reviews", "libraries")
SLOW = Behaviour(latency=Fixed(1.0), concurrency=1)


@pytest.mark.parametrize("behaviours", ["calm", "demo"])
def test_every_statement_at_once(behaviours: str) -> None:
    web = book_trade_web(100, behaviours="demo" if behaviours == "demo" else "calm", book_page=20)

    async def main() -> None:
        async with mediating(web) as mediator:
            async with asyncio.TaskGroup() as group:
                tasks = {s: group.create_task(ask(mediator, s.sql)) for s in STATEMENTS}
            for statement, task in tasks.items():
                found, report = task.result()
                check_same(found, truth(web.tables, statement.sql), statement.ordered)
                assert report.complete, (statement.name, report.lines())
        if behaviours == "calm":
            assert not asked_again(web, "books", "prizes", *LOOKED_UP)

    in_virtual_time(main())


def test_the_same_query_three_times_at_once() -> None:
    web = book_trade_web(100, book_page=20)
    statement = BY_NAME["five relations"]

    async def main() -> None:
        async with mediating(web) as mediator:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(ask(mediator, statement.sql)) for _ in range(3)]
            for task in tasks:
                found, report = task.result()
                check_same(found, truth(web.tables, statement.sql))
                assert report.complete
        assert not asked_again(web, "books", "prizes", *LOOKED_UP)
        # The packed source may be asked by a hedge as well, but one mirror is asked for a book once.
        assert not asked_again(web, "offers_north")

    in_virtual_time(main())


@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda s: s.name)
def test_the_same_query_again_asks_nothing_again(statement: Statement) -> None:
    """Where rows are looked up in several relations, another route may need a lookup that the first one ruled out."""
    web = book_trade_web(60, book_page=20)
    looked_up = [name for name in (*LOOKED_UP, "offers") if f" {name}" in statement.sql]

    async def main() -> None:
        async with mediating(web) as mediator:
            first, _ = await ask(mediator, statement.sql)
            asked = web.requests
            again, report = await ask(mediator, statement.sql)
            if len(looked_up) < 2:
                assert web.requests == asked
                assert not any(r.asked for r in report.relations)
            assert not asked_again(web, "books", "prizes", *LOOKED_UP)
            assert report.complete
            assert rows(again) == rows(first)

    in_virtual_time(main())


def test_what_one_query_asks_another_need_not() -> None:
    web = book_trade_web(100)

    async def main() -> None:
        async with mediating(web) as mediator:
            await ask(mediator, "SELECT name FROM authors WHERE id IN (1001, 1002, 1003)")
            found, report = await ask(
                mediator, "SELECT name FROM authors WHERE id IN (1002, 1003, 1004, 1005)"
            )
            assert found.num_rows == 4
            assert (of(report, "authors").asked, of(report, "authors").served) == (2, 2)
            await ask(mediator, "SELECT name FROM libraries WHERE city = 'Aldermoor'")
            # Covered by the city, whatever else is said.
            _, report = await ask(
                mediator, "SELECT name FROM libraries WHERE city = 'Aldermoor' AND zip = '10000'"
            )
            assert of(report, "libraries").asked == 0

    in_virtual_time(main())


@pytest.mark.parametrize("moment", [0.0, 0.5, 2.5, 4.5])
@pytest.mark.parametrize("name", ["scan", "index", "pages", "same author"])
def test_who_leaves_does_not_hurt_who_stays(name: str, moment: float) -> None:
    web = book_trade_web(60, book_page=10)
    web.behave("books", SLOW)
    web.behave("reviews", Behaviour(latency=Fixed(0.3)))
    sql = BY_NAME[name].sql

    async def main() -> None:
        async with mediating(web) as mediator:
            async with asyncio.TaskGroup() as group:
                staying = group.create_task(ask(mediator, sql))
                async with mediator.answering(sql):
                    await asyncio.sleep(moment)
            found, report = staying.result()
            check_same(found, truth(web.tables, sql))
            assert report.complete
            assert not asked_again(web, "books", *LOOKED_UP)

    in_virtual_time(main())


@pytest.mark.parametrize("moment", [0.5, 1.5, 3.5])
def test_who_started_it_leaves(moment: float) -> None:
    """The scan goes on for the one who joined it."""
    web = book_trade_web(60, book_page=10)
    web.behave("books", SLOW)
    sql = "SELECT isbn FROM books"

    async def main() -> None:
        async with mediating(web) as mediator, asyncio.TaskGroup() as group:
            async with mediator.answering(sql):
                await asyncio.sleep(moment)
                joined = group.create_task(ask(mediator, sql))
                await asyncio.sleep(0.1)
            found, report = await joined
            check_same(found, truth(web.tables, sql))
            assert report.complete
            assert not asked_again(web, "books")

    in_virtual_time(main())


@pytest.mark.parametrize("cut", ["left", "failed", "stopped"])
@pytest.mark.parametrize("name", ["scan", "same author", "band", "count"])
def test_a_bag_whose_scan_was_cut_short_is_scanned_anew(name: str, cut: str) -> None:
    web = book_trade_web(60, book_page=10)
    statement = BY_NAME[name]
    broken = Fault("error", status=404, lookups=("page 4",)) if cut == "failed" else None

    async def main() -> None:
        async with mediating(web) as mediator:
            behaviour = Behaviour(latency=Fixed(1.0), concurrency=1, faults=(broken,) if broken else ())
            with changed(web, "books", behaviour):
                async with mediator.answering(statement.sql) as answers:
                    await asyncio.sleep(2.5)
                    if cut == "stopped":
                        answers.stop("enough")
                    if cut != "left":
                        await all_of(answers)
                        assert not answers.report.complete
            for _ in range(3):
                found, report = await ask(mediator, statement.sql)
                check_same(found, truth(web.tables, statement.sql))
                assert report.complete
            assert of(report, "books").asked == 0

    in_virtual_time(main())


async def _rest(answers: Answers) -> None:
    await asyncio.sleep(100)
    assert answers._unread.rows > 200_000


def test_a_scan_that_failed_while_its_query_rested() -> None:
    """Whoever comes next must not add to what is left of it, for whoever comes after that."""
    web = book_trade_web(1_200, book_page=100)
    sql = "SELECT isbn FROM books"

    async def main() -> None:
        async with mediating(web) as mediator:
            faults = (Fault("error", status=404, lookups=("page 11",)),)
            with changed(web, "books", Behaviour(latency=Fixed(1.0), concurrency=1, faults=faults)):
                resting = mediator.answering("SELECT a.isbn, b.isbn FROM books a, books b")
                async with resting:
                    await _rest(resting)
                    web.behave("books", Behaviour())
                    for _ in range(3):
                        found, report = await ask(mediator, sql)
                        check_same(found, truth(web.tables, sql))
                        assert report.complete

    in_virtual_time(main())


@pytest.mark.parametrize("meanwhile", ["left", "answered", "left and asked anew"])
def test_a_bag_whose_scan_ends_while_a_query_begins_with_sql(meanwhile: str) -> None:
    """The query has its SteM by then, and has asked for nothing yet."""
    web = book_trade_web(60, book_page=10)
    begun, may_end = threading.Event(), threading.Event()

    def slow(number: int) -> int:
        begun.set()
        may_end.wait()
        return number

    slowly = Function("slowly", (pa.int64(),), pa.int64(), slow, by_row=True, steady=False)
    sql = "SELECT isbn FROM books"
    # In the one the books' block has begun before the slow SQL, in the other not.
    late_sql = f"{sql} UNION ALL SELECT isbn FROM prizes" if meanwhile != "left and asked anew" else sql

    async def main() -> None:
        catalog = web.catalog.knowing([slowly])
        async with mediating(web, catalog=catalog) as mediator, asyncio.TaskGroup() as group:
            with changed(web, "books", SLOW if meanwhile != "answered" else Behaviour()):
                early = mediator.answering(sql)
                if meanwhile != "answered":
                    await early.__aenter__()
                    await asyncio.sleep(2.5)
                late = group.create_task(ask(mediator, f"{late_sql}, (SELECT slowly(1)) t"))
                await asyncio.to_thread(begun.wait)
                if meanwhile != "answered":
                    await early.leave()
                other = group.create_task(ask(mediator, sql)) if meanwhile != "left" else None
                if other is not None:
                    await asyncio.wait([other], timeout=0.0 if meanwhile != "answered" else None)
                may_end.set()
                found, report = await late
            check_same(found, truth(web.tables, late_sql))
            assert report.complete
            assert meanwhile != "answered" or of(report, "books").served == 1
            for _ in range(2):
                found, report = await ask(mediator, sql)
                check_same(found, truth(web.tables, sql))
                assert report.complete
                assert of(report, "books").asked == 0
            assert other is None or other.result()[0].num_rows == 60

    in_virtual_time(main())


# Closing


def test_closing_with_queries_open() -> None:
    web = book_trade_web(400, behaviours="demo", book_page=20)

    async def read(answers: Answers, seen: list[Report]) -> None:
        async with answers:
            await all_of(answers)
            seen.append(answers.report)

    async def main() -> None:
        seen: list[Report] = []
        async with asyncio.TaskGroup() as group:
            async with mediating(web) as mediator:
                for name in ("scan", "pages", "five relations", "count", "top"):
                    group.create_task(read(mediator.answering(BY_NAME[name].sql), seen))
                await asyncio.sleep(0.15)
            before = asyncio.get_running_loop().time()
            asked = web.requests
        assert asyncio.get_running_loop().time() == before
        assert web.requests == asked
        assert len(seen) == 5
        assert all(report.stopped == "the mediator was closed" for report in seen)
        assert not any(c.open for c in web.counters.values())

    in_virtual_time(main())


def test_closing_while_a_query_rests() -> None:
    web = book_trade_web(3_000, book_page=500)

    async def main() -> None:
        async with mediating(web) as mediator:
            answers = mediator.answering("SELECT a.isbn FROM books a, books b")
            await answers.__aenter__()
            await asyncio.sleep(100)
        found = await all_of(answers)
        assert 200_000 < found.num_rows < 9_000_000
        assert answers.report.stopped == "the mediator was closed"
        await answers.__aexit__(None, None, None)

    in_virtual_time(main())


# Freshness


def _ageing(catalog: Catalog, seconds: float) -> Catalog:
    relations = {
        name: replace(r, methods=tuple(replace(m, fresh_for=seconds) for m in r.methods))
        for name, r in catalog.relations.items()
    }
    return replace(catalog, relations=relations)


CHANGING: Sequence[tuple[str, str]] = (
    ("prizes", "SELECT prize, year, isbn FROM prizes"),
    ("prizes", "SELECT count(*) FROM prizes"),
    ("books", "SELECT isbn, title, year FROM books"),
    ("books", "SELECT x.isbn, y.isbn FROM books x JOIN books y ON x.year = y.year AND x.title < y.title"),
    ("authors", "SELECT id, name FROM authors WHERE id IN (1001, 1002, 1003, 1010, 1019)"),
    ("libraries", "SELECT library_id, name FROM libraries WHERE city IN ('Aldermoor', 'Gorseby')"),
    ("reviews", "SELECT isbn, reviewer, stars FROM books JOIN reviews USING (isbn)"),
    ("authors", "SELECT b.title, a.name FROM books b JOIN authors a ON a.id = b.author_id"),
)


@pytest.mark.parametrize("how", ["max_age", "fresh_for"])
@pytest.mark.parametrize("size", [100, 40], ids=["other rows", "fewer rows"])
@pytest.mark.parametrize(("name", "sql"), CHANGING)
def test_what_is_too_old_is_asked_again(name: str, sql: str, size: int, how: str) -> None:
    """The second answer is what the sites hold then, and nothing of what they held before."""
    web, other = book_trade_web(100, book_page=10), book_trade_web(size, seed=2, book_page=10)
    now = {**{n: web.tables[n] for n in web.tables}, name: other.tables[name]}
    said = {"max_age": 60.0} if how == "max_age" else {}
    catalog = _ageing(web.catalog, 60.0) if how == "fresh_for" else web.catalog

    async def main() -> None:
        async with mediating(web, catalog=catalog) as mediator:
            found, _ = await ask(mediator, sql, **said)
            check_same(found, truth(web.tables, sql))
            becomes(web, name, other)
            await asyncio.sleep(30)
            asked = web.requests
            found, _ = await ask(mediator, sql, **said)
            check_same(found, truth(web.tables, sql))
            assert web.requests == asked
            await asyncio.sleep(31)
            for _ in range(2):
                found, report = await ask(mediator, sql, **said)
                check_same(found, truth(now, sql))
                assert report.complete
            assert not any(r.asked for r in report.relations)

    in_virtual_time(main())


def test_an_old_view_stays_while_a_new_one_is_fetched() -> None:
    """A query that is under way keeps what it was given, and what it has not asked yet it asks."""
    web, other = book_trade_web(100, book_page=10), book_trade_web(100, seed=2, book_page=10)
    sql = "SELECT isbn, title FROM books"

    async def main() -> None:
        async with mediating(web) as mediator:
            with changed(web, "authors", Behaviour(latency=Fixed(3.0))):
                joined = "SELECT b.isbn, b.title, a.name FROM books b JOIN authors a ON a.id = b.author_id"
                async with asyncio.TaskGroup() as group:
                    slow = group.create_task(ask(mediator, joined))
                    await asyncio.sleep(1)
                    becomes(web, "books", other)
                    found, _ = await ask(mediator, sql, max_age=0.5)
                    check_same(found, truth(other.tables, sql))
            found, report = slow.result()
            check_same(found, truth(web.tables, joined))
            assert report.complete

    in_virtual_time(main())


def test_max_age_of_one_query_is_not_another_one_s() -> None:
    web, other = book_trade_web(100), book_trade_web(100, seed=2)
    sql = "SELECT id, name FROM authors WHERE id IN (1001, 1002, 1003)"

    async def main() -> None:
        async with mediating(web) as mediator:
            await ask(mediator, sql)
            becomes(web, "authors", other)
            await asyncio.sleep(10)
            old, _ = await ask(mediator, sql)
            check_same(old, truth(web.tables, sql))
            new, _ = await ask(mediator, sql, max_age=5)
            check_same(new, truth(other.tables, sql))
            new, report = await ask(mediator, sql)
            check_same(new, truth(other.tables, sql))
            assert of(report, "authors").served == 3

    in_virtual_time(main())
