"""However a query ends, it ends soon, cleanly, and saying so."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import suppress

import pyarrow as pa
import pytest

from fixtures import Behaviour, Fault, Fixed, Web, book_trade, book_trade_web, papers_web, virtual
from mediator.answering import Mediator, answer, answering
from mediator.catalog.functions import function
from mediator.driver import Answers
from mediator.errors import FunctionFailed, MediatorError, TypeMismatch
from mediator.output.report import Report
from mediator.statements.patience import Interrupted
from tests.answering.kit import all_of, ask, check_same, in_virtual_time, listed, mediating, of, rows, truth

BUFFERED = 200_000
PAIRS = "SELECT a.isbn, b.title FROM books a, books b"


def _quiet(web: Web) -> bool:
    return not any(c.open for c in web.counters.values())


# LIMIT


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT title FROM books LIMIT 5",
        "SELECT title FROM books WHERE year > 1960 LIMIT 5",
        "SELECT upper(title) FROM books LIMIT 3 OFFSET 2",
        "SELECT DISTINCT publisher FROM books LIMIT 3",
        "SELECT isbn FROM books UNION ALL SELECT isbn FROM books LIMIT 5",
        "SELECT * FROM (SELECT title FROM books LIMIT 5) t",
        "SELECT count(*) FROM (SELECT title FROM books LIMIT 5) t",
    ],
)
def test_ten_million_rows_for_limit(sql: str) -> None:
    web = book_trade_web(10_000_000, book_page=5_000)
    web.behave("books", Behaviour(latency=Fixed(0.05)))

    async def main() -> tuple[pa.Table, Report]:
        async with mediating(web) as mediator:
            return await ask(mediator, sql)

    found, report = in_virtual_time(main())
    assert found.num_rows in (1, 3, 5)
    assert report.complete
    assert web.counters["books"].requests <= 20
    assert _quiet(web)


@pytest.mark.parametrize("size", [500, 10_000_000])
def test_more_pages_than_allowed_for_limit(size: int) -> None:
    """A catalogue without end, or with a hundred thousand pages: the first one is enough."""
    web = book_trade_web(size)
    endless = (Fault("endless", probability=1.0),) if size == 500 else ()
    web.behave("books", Behaviour(latency=Fixed(0.05), faults=endless))

    async def main() -> tuple[pa.Table, Report]:
        async with mediating(web) as mediator:
            return await ask(mediator, "SELECT title FROM books LIMIT 5")

    found, report = in_virtual_time(main())
    assert found.num_rows == 5
    assert report.complete
    assert report.enough
    assert web.counters["books"].requests <= 20


def test_limit_stops_lookups() -> None:
    web = book_trade_web(1_000)
    web.behave("authors", Behaviour(latency=Fixed(0.1)))

    async def main() -> tuple[pa.Table, Report]:
        async with mediating(web) as mediator:
            sql = "SELECT b.title, a.name FROM books b JOIN authors a ON a.id = b.author_id LIMIT 5"
            return await ask(mediator, sql)

    found, report = in_virtual_time(main())
    assert found.num_rows == 5
    assert report.complete
    assert web.counters["authors"].requests <= 32
    assert _quiet(web)


def test_limit_inside_stops_only_what_it_cuts() -> None:
    web = book_trade_web(1_000)
    web.behave("authors", Behaviour(latency=Fixed(0.1)))
    web.behave("prizes", Behaviour(latency=Fixed(10.0)))

    async def main() -> tuple[pa.Table, Report]:
        async with mediating(web) as mediator:
            some = "(SELECT b.isbn, a.name FROM books b JOIN authors a ON a.id = b.author_id LIMIT 5) t"
            return await ask(
                mediator, f"SELECT t.isbn, p.prize FROM {some} LEFT JOIN prizes p ON p.isbn = t.isbn"
            )

    found, report = in_virtual_time(main())
    assert len(set(found["isbn"].to_pylist())) == 5
    assert report.complete
    assert web.counters["authors"].requests <= 32


def test_limit_0_asks_nothing() -> None:
    web = book_trade_web(50)

    async def main() -> tuple[pa.Table, Report]:
        async with mediating(web) as mediator:
            return await ask(mediator, "SELECT title FROM books LIMIT 0")

    found, report = in_virtual_time(main())
    assert found.num_rows == 0
    assert found.column_names == ["title"]
    assert report.complete
    assert web.requests == 0


def test_what_is_never_true_asks_nothing() -> None:
    web = book_trade_web(50)

    async def main() -> tuple[pa.Table, Report]:
        async with mediating(web) as mediator:
            return await ask(
                mediator,
                "WITH t AS (SELECT author_id, count(*) AS n FROM books GROUP BY author_id) "
                "SELECT a.name FROM t JOIN authors a ON a.id = t.author_id WHERE 1 = 0",
            )

    found, report = in_virtual_time(main())
    assert found.num_rows == 0
    assert report.complete
    assert web.requests == 0


# A reader who does not keep up


def test_a_query_rests_when_nobody_reads() -> None:
    web = book_trade_web(3_000, book_page=500)

    async def main() -> None:
        async with mediating(web) as mediator, mediator.answering(PAIRS) as answers:
            await asyncio.sleep(100)
            # What one turn may add to a full buffer is bounded too.
            assert BUFFERED < answers._unread.rows < 20 * BUFFERED
            before = answers._unread.rows
            await asyncio.sleep(100)
            assert answers._unread.rows == before
            found = sum([batch.num_rows async for batch in answers])
            assert found == 9_000_000
            assert answers.report.complete

    in_virtual_time(main())


def test_what_waits_for_a_resting_query_serves_the_others() -> None:
    web = book_trade_web(3_000, book_page=500)
    web.behave("prizes", Behaviour(latency=Fixed(5.0)))

    async def main() -> None:
        async with (
            mediating(web) as mediator,
            mediator.answering(
                "SELECT a.isbn FROM books a, books b UNION ALL SELECT isbn FROM prizes"
            ) as resting,
        ):
            await asyncio.sleep(100)
            assert resting._unread.rows > BUFFERED
            found, report = await ask(mediator, "SELECT prize FROM prizes")
            check_same(found, truth(web.tables, "SELECT prize FROM prizes"))
            assert report.complete
            assert of(report, "prizes").served == 1
            assert web.counters["prizes"].requests == 1

    in_virtual_time(main())


def test_an_impatient_reader_loses_nothing() -> None:
    web = book_trade_web(200, book_page=20)
    web.behave("books", Behaviour(latency=Fixed(1.0), concurrency=1))

    async def main() -> None:
        found, waited = 0, 0
        async with mediating(web) as mediator, mediator.answering("SELECT isbn FROM books") as answers:
            while True:
                try:
                    async with asyncio.timeout(0.3):
                        found += (await anext(answers)).num_rows
                except TimeoutError:
                    waited += 1
                except StopAsyncIteration:
                    break
            assert answers.report.complete
        assert found == 200
        assert waited > 20

    in_virtual_time(main())


def test_two_readers_share_the_answers() -> None:
    web = book_trade_web(200, book_page=20)
    web.behave("books", Behaviour(latency=Fixed(1.0), concurrency=1))

    async def main() -> None:
        async with mediating(web) as mediator, mediator.answering("SELECT isbn FROM books") as answers:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(all_of(answers)) for _ in range(2)]
            found = pa.concat_tables(task.result() for task in tasks)
            check_same(found, truth(web.tables, "SELECT isbn FROM books"))

    in_virtual_time(main())


# Stopped


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT isbn FROM books",
        "SELECT count(*) AS n FROM books",
        "SELECT isbn FROM books ORDER BY isbn",
        "SELECT isbn FROM books ORDER BY isbn LIMIT 400",
        "SELECT b.isbn, p.prize FROM books b LEFT JOIN prizes p USING (isbn)",
    ],
)
def test_stop_gives_what_was_found(sql: str) -> None:
    web = book_trade_web(1_000, book_page=10)
    web.behave("books", Behaviour(latency=Fixed(1.0), concurrency=1))

    async def main() -> None:
        async with mediating(web) as mediator, mediator.answering(sql) as answers:
            await asyncio.sleep(20.5)
            answers.stop("enough seen")
            found = await all_of(answers)
            now = asyncio.get_running_loop().time()
            assert now < 21
            report = answers.report
        assert not report.complete
        assert report.stopped == "enough seen"
        if found.column_names == ["n"]:
            assert 0 < found["n"][0].as_py() < 1_000
        else:
            assert 0 < found.num_rows < 1_000
            assert set(found["isbn"].to_pylist()) <= set(web.tables["books"]["isbn"].to_pylist())
        assert _quiet(web)

    in_virtual_time(main())


def test_stop_while_the_query_rests() -> None:
    web = book_trade_web(3_000, book_page=500)

    async def main() -> None:
        async with mediating(web) as mediator, mediator.answering(PAIRS) as answers:
            await asyncio.sleep(100)
            answers.stop("enough")
            found = await all_of(answers)
            assert BUFFERED < found.num_rows < 9_000_000
            assert answers.report.stopped == "enough"

    in_virtual_time(main())


def test_stop_twice_and_after_the_end() -> None:
    web = book_trade_web(50)

    async def main() -> None:
        async with mediating(web) as mediator:
            async with mediator.answering("SELECT isbn FROM books") as answers:
                found = await all_of(answers)
                answers.stop("too late")
                answers.stop("much too late")
            assert found.num_rows == 50
            assert answers.report.complete

    in_virtual_time(main())


def test_a_snapshot_meanwhile() -> None:
    web = book_trade_web(1_000, book_page=10)
    web.behave("books", Behaviour(latency=Fixed(1.0), concurrency=1))

    async def main() -> None:
        sql = "SELECT count(*) AS n FROM books"
        async with mediating(web) as mediator, mediator.answering(sql) as answers:
            seen = []
            for _ in range(3):
                await asyncio.sleep(20.2)
                snapshot = await answers.snapshot()
                assert snapshot is not None
                seen.append(snapshot["n"][0].as_py())
            assert seen == sorted(seen)
            assert seen[0] < seen[2] < 1_000
            assert listed(await all_of(answers)) == [(1_000,)]
            assert answers.report.complete
            assert await answers.snapshot() is None

    in_virtual_time(main())


@pytest.mark.parametrize("fails", [True, False])
async def test_the_end_does_not_wait_for_a_snapshot(fails: bool) -> None:
    """The statement of the snapshot would take minutes; the query fails, or comes to its end, in the middle of it."""
    begun, failing, snapshots = threading.Event(), threading.Event(), set[int]()

    @function([str], str, seconds=1e-9, nulls=True, steady=False)
    def slowly(titles: pa.Array) -> pa.Array:
        if not begun.is_set():
            snapshots.add(threading.get_ident())
            begun.set()
        time.sleep(1.0 if threading.get_ident() in snapshots else 0.0)
        return titles

    @function([str], bool, by_row=True, apart=True)
    def sound(_title: str) -> bool:
        assert not failing.is_set()
        return True

    sql = "SELECT max(slowly(title)) AS t FROM books, range(2000) WHERE sound(title)"
    with book_trade(300, book_page=10) as web:
        web.behave("books", Behaviour(latency=Fixed(0.1), concurrency=1))
        async with (
            Mediator(web.catalog, functions=[slowly, sound]) as mediator,
            asyncio.timeout(60.0),
            mediator.answering(sql) as answers,
            asyncio.TaskGroup() as group,
        ):
            snapshot = group.create_task(_interrupted(answers))
            await asyncio.to_thread(begun.wait)
            if fails:
                failing.set()
                with pytest.raises(FunctionFailed):
                    await all_of(answers)
            else:
                assert (await all_of(answers)).num_rows == 1
                assert answers.report.complete
            assert await snapshot


async def _interrupted(answers: Answers) -> bool:
    """Whether one of the snapshots that are taken of a query while it runs is not taken to its end."""
    with suppress(Interrupted):
        while await answers.snapshot() is not None:
            await asyncio.sleep(0.01)
        return False
    return True


# Left


@pytest.mark.parametrize("after", [0, 1, 3])
def test_leaving_early_calls_everything_back(after: int) -> None:
    web = book_trade_web(1_000, behaviours="demo", book_page=20)

    async def main() -> None:
        async with mediating(web) as mediator:
            sql = "SELECT b.isbn, r.stars FROM books b JOIN reviews r USING (isbn)"
            async with mediator.answering(sql) as answers:
                for _ in range(after):
                    await anext(answers)
            await asyncio.sleep(0.001)
            assert _quiet(web)
            assert answers.report.stopped == "cancelled"
            asked = web.requests
            await asyncio.sleep(60)
            assert web.requests == asked
            with pytest.raises(MediatorError, match="left"):
                await all_of(answers)

    in_virtual_time(main())


class Mine(Exception):
    pass


def test_the_readers_own_error_goes_on_unchanged() -> None:
    web = book_trade_web(1_000, behaviours="demo")
    mine = Mine("my own")

    async def main() -> None:
        async with mediating(web) as mediator, mediator.answering("SELECT isbn FROM books") as answers:
            await anext(answers)
            raise mine

    with pytest.raises(Mine) as caught:
        virtual.run(main())
    assert caught.value is mine
    assert _quiet(web)


@pytest.mark.parametrize("seconds", [0.0, 0.01, 0.1, 0.7, 2.0])
def test_a_timeout_around_it(seconds: float) -> None:
    web = book_trade_web(1_000, behaviours="demo", book_page=20)

    async def main() -> None:
        async with mediating(web) as mediator:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(seconds):
                    await ask(mediator, "SELECT b.isbn, r.stars FROM books b JOIN reviews r USING (isbn)")
            await asyncio.sleep(0.001)
            assert _quiet(web)
            web.behave("books", Behaviour())
            found, report = await ask(mediator, "SELECT isbn FROM books")
            assert report.complete
            check_same(found, truth(web.tables, "SELECT isbn FROM books"))

    in_virtual_time(main())


def test_cancelled_while_a_thread_takes_its_turn() -> None:
    """The thread works on what others share: nobody else may turn before it is done."""
    web = book_trade_web(3_000, book_page=3_000)

    async def main() -> None:
        async with mediating(web) as mediator:
            cancelled = 0
            for seconds in (0.0, 0.001, 0.01, 0.03, 0.1):
                async with asyncio.TaskGroup() as group:
                    task = group.create_task(ask(mediator, PAIRS.replace("title", "year")))
                    other = group.create_task(
                        ask(mediator, "SELECT a.isbn FROM books a, books b WHERE a.year = b.year")
                    )
                    await asyncio.get_running_loop().run_in_executor(None, _busy, seconds)
                    over = task.done()  # on a fast machine it may be
                    task.cancel()
                    await asyncio.sleep(0)
                    task.cancel()
                found, report = other.result()
                assert task.cancelled() != over
                cancelled += not over
                assert report.complete
                sql = "SELECT a.isbn FROM books a, books b WHERE a.year = b.year"
                assert rows(found) == rows(truth(web.tables, sql))
            assert cancelled, "it is over at once"

    in_virtual_time(main())


def _busy(seconds: float) -> None:
    """Other threads get some of their work done."""
    for _ in range(int(seconds * 1_000)):
        sum(range(1_000))


def test_the_report_can_be_read_while_a_thread_takes_a_turn() -> None:
    web = book_trade_web(3_000, book_page=100)

    async def main() -> None:
        async with mediating(web) as mediator:
            sql = "SELECT b.isbn, o.shop FROM books b JOIN offers o USING (isbn), prizes p WHERE p.year < b.year"
            async with mediator.answering(sql) as answers:
                asked, apart = [], 0
                async for _ in answers:
                    for _ in range(20):
                        apart += answers._standing.lent
                        report = answers.report
                        asked.append(sum(r.asked for r in report.relations))
                        assert not report.stopped
                        await asyncio.sleep(0)
                assert apart
                assert asked == sorted(asked)
                assert answers.report.complete
                assert of(answers.report, "offers").asked > 1_000

    in_virtual_time(main())


# Broken


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT CAST(title AS INT) FROM books",
        "SELECT isbn FROM books WHERE CAST(title AS INT) = 3",
        "SELECT b.isbn, p.prize FROM books b JOIN prizes p ON p.year = CAST(b.title AS INT)",
        "SELECT sum(CAST(title AS INT)) FROM books",
        "SELECT isbn FROM books ORDER BY CAST(title AS INT)",
    ],
)
def test_an_expression_that_fails_ends_the_query(sql: str) -> None:
    web = book_trade_web(1_000, book_page=20)
    web.behave("books", Behaviour(latency=Fixed(1.0), concurrency=2))

    async def main() -> None:
        async with mediating(web) as mediator:
            async with mediator.answering(sql) as answers:
                with pytest.raises(TypeMismatch, match="Could not convert string") as caught:
                    await all_of(answers)
                assert "\n" not in caught.value.message
                await asyncio.sleep(0.001)
                assert _quiet(web)
                assert not answers.report.complete
                assert answers.report.stopped.startswith("failed: ")
                with pytest.raises(TypeMismatch):
                    await anext(answers)
            web.behave("books", Behaviour())
            found, report = await ask(mediator, "SELECT isbn FROM books")
            assert report.complete
            check_same(found, truth(web.tables, "SELECT isbn FROM books"))

    in_virtual_time(main())


def test_what_was_found_before_an_error_is_not_lost() -> None:
    web = book_trade_web(200, book_page=20)
    web.behave("books", Behaviour(latency=Fixed(1.0), concurrency=1))
    last = web.tables["books"]["isbn"][199].as_py()

    async def main() -> int:
        found = 0
        async with mediating(web) as mediator:
            sql = f"SELECT CAST(CASE WHEN isbn = '{last}' THEN title ELSE '1' END AS INT) FROM books"
            async with mediator.answering(sql) as answers:
                await asyncio.sleep(100)
                try:
                    async for batch in answers:
                        found += batch.num_rows
                except TypeMismatch:
                    return found
        raise AssertionError("it did not fail")

    assert in_virtual_time(main()) >= 160


def test_an_abandoned_sort_is_not_done() -> None:
    """Leaving does not compute what nobody will read, and so can't fail over it either."""
    web = book_trade_web(200, book_page=20)
    web.behave("books", Behaviour(latency=Fixed(1.0), concurrency=1))

    async def main() -> None:
        sql = "SELECT isbn FROM books ORDER BY CAST(title AS INT)"
        async with mediating(web) as mediator, mediator.answering(sql):
            await asyncio.sleep(3)

    in_virtual_time(main())
    assert web.counters["books"].requests > 1, "there was something to sort"
    assert _quiet(web)


# Misused


async def _unread(mediator: Mediator) -> None:
    await anext(mediator.answering("SELECT isbn FROM books"))


async def _entered_twice(mediator: Mediator) -> None:
    answers = mediator.answering("SELECT isbn FROM books")
    async with answers, answers:
        pass


@pytest.mark.parametrize("misuse", [_unread, _entered_twice])
def test_misuse_is_told(misuse: Callable[[Mediator], asyncio.Future[None]]) -> None:
    web = book_trade_web(20)

    async def main() -> None:
        async with mediating(web) as mediator:
            with pytest.raises(RuntimeError, match=r"async with|once"):
                await misuse(mediator)

    in_virtual_time(main())


def test_a_mediator_that_is_not_open() -> None:
    web = book_trade_web(20)

    async def main() -> None:
        async with mediating(web) as mediator:
            pass
        with pytest.raises(MediatorError, match="closed"):
            await ask(mediator, "SELECT isbn FROM books")
        with pytest.raises(MediatorError, match="is not open"):
            await ask(Mediator(web.catalog), "SELECT isbn FROM books")

    in_virtual_time(main())


# From outside


def test_answer_from_a_script() -> None:
    with book_trade(60) as web:
        found, report = answer("SELECT isbn, title FROM books WHERE year > $1", web.catalog, [1980])
        check_same(found, truth(web.tables, "SELECT isbn, title FROM books WHERE year > 1980"))
        assert report.complete


async def test_answer_in_a_notebook() -> None:
    """Where an event loop is running already."""
    with book_trade(60) as web:
        found, report = answer("SELECT isbn FROM books", web.catalog)
        assert found.num_rows == 60
        assert report.complete
        with pytest.raises(TypeMismatch):
            answer("SELECT CAST(title AS INT) FROM books", web.catalog)


async def test_answering_with_a_mediator_of_its_own() -> None:
    async with book_trade(60) as web:
        async with answering("SELECT isbn FROM books", web.catalog) as answers:
            assert isinstance(answers, Answers)
            assert (await all_of(answers)).num_rows == 60
        with pytest.raises(Mine):
            async with answering("SELECT isbn FROM books", web.catalog):
                raise Mine


def test_papers_limit() -> None:
    """A bag, and an index that answers in its own time."""
    web = papers_web(1_000, behaviours="demo")

    async def main() -> tuple[pa.Table, Report]:
        async with mediating(web) as mediator:
            return await ask(mediator, "SELECT r.key, t.key FROM r JOIN t ON t.key = r.key LIMIT 20")

    found, report = in_virtual_time(main())
    assert found.num_rows == 20
    assert report.complete
