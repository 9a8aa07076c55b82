"""Queries that are steered while they run: preferred, paused, resumed, boosted. The answers stay what they are."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from random import Random

import pyarrow as pa
import pytest

from fixtures import Behaviour, Fault, Fixed, Web, book_trade_web, papers, papers_web
from mediator.answering import Mediator
from mediator.assembly import Settings
from mediator.driver import Answers
from mediator.errors import QueryError, UnknownColumn
from mediator.output.report import Paused
from mediator.query.model import BlockStage
from mediator.query.understand import understand
from mediator.steering import CannotSteer, Steering
from sources import load_papers
from tests.answering.kit import (
    all_of,
    ask,
    check_same,
    in_virtual_time,
    mediating,
    of,
    rows,
    sources_with,
    truth,
)
from tests.answering.statements import BY_NAME, STATEMENTS, Statement

SQL = "select r.key, r.a from r, s where r.a = s.x"
LOOKUP = Behaviour(latency=Fixed(0.1), concurrency=2)


def slow_web() -> Web:
    """R comes at once, and each of S's 40 lookups takes its time."""
    return papers_web(200, behaviours={"s_x": LOOKUP}, page_size=200, distinct=40)


def narrow(web: Web) -> AbstractAsyncContextManager[Mediator]:
    """Where no more than two requests are under way at once, and the others wait in our own queue."""
    return mediating(web, catalog=sources_with(web.catalog, concurrency=2))


async def arrivals(answers: Answers) -> list[tuple[float, int]]:
    """When each answer came, and its value of `a`."""
    loop, began, found = asyncio.get_running_loop(), asyncio.get_running_loop().time(), []
    async for batch in answers:
        found += [(loop.time() - began, a) for a in batch.column("a").to_pylist()]
    return found


def last(found: list[tuple[float, int]], values: range) -> float:
    return max(at for at, a in found if a in values)


class TestPrefer:
    def test_what_is_preferred_comes_first(self) -> None:
        async def main() -> None:
            async with (
                narrow(slow_web()) as mediator,
                mediator.answering(SQL, prefer={"r.a >= 30": 10.0}) as answers,
            ):
                found = await arrivals(answers)
                assert len(found) == 200
                assert last(found, range(30, 40)) < min(at for at, a in found if a < 30) + 0.11

        in_virtual_time(main())

    def test_less_than_1_comes_last(self) -> None:
        async def main() -> None:
            async with (
                narrow(slow_web()) as mediator,
                mediator.answering(SQL, prefer={"r.a >= 30": 0.01}) as answers,
            ):
                found = await arrivals(answers)
                first = min(at for at, a in found if a >= 30)
                assert last(found, range(30)) <= first + 0.21

        in_virtual_time(main())

    def test_changed_in_mid_run(self) -> None:
        async def main() -> None:
            async with (
                narrow(slow_web()) as mediator,
                mediator.answering(SQL, prefer={"r.a >= 30": 10.0}) as answers,
            ):
                found, began = [], asyncio.get_running_loop().time()
                async for batch in answers:
                    now = asyncio.get_running_loop().time() - began
                    found += [(now, a) for a in batch.column("a").to_pylist()]
                    if not answers.steering.prefer.get("r.a < 10"):
                        steering = answers.steer(prefer={"r.a < 10": 10.0})
                        assert steering.prefer == {"r.a < 10": 10.0}
                assert last(found, range(10)) < 1.2
                assert last(found, range(30, 40)) > 1.2
                assert len(found) == 200

        in_virtual_time(main())

    @pytest.mark.parametrize("statement", STATEMENTS, ids=lambda s: s.name)
    def test_no_answer_changes(self, statement: Statement) -> None:
        """Whatever is preferred, at the start and from any moment on."""
        random = Random(statement.name)
        web = book_trade_web(60, book_page=10)
        query = understand(statement.sql, web.catalog)
        fields = [
            f"{a.name}.{f.name}"
            for s in query.stages
            if isinstance(s, BlockStage)
            for a in s.block.aliases
            if a.relation.name in web.catalog.relations
            for f in a.relation.fields
        ]

        def drawn() -> dict[str, float]:
            some = random.sample(fields, min(len(fields), random.randint(0, 3)))
            return {f"hash({f}) % 3 = {random.randrange(3)}": random.choice((0.1, 3.0, 50.0)) for f in some}

        async def main() -> None:
            async with (
                mediating(web) as mediator,
                mediator.answering(statement.sql, prefer=drawn()) as answers,
            ):
                batches = []
                async for batch in answers:
                    batches.append(batch)
                    answers.steer(prefer=drawn())
                found = pa.Table.from_batches(batches, answers.schema)
                check_same(found, truth(web.tables, statement.sql), statement.ordered)
                assert answers.report.complete

        in_virtual_time(main())

    def test_changed_while_the_query_starts(self) -> None:
        """It waits for another query's turn to end, say."""

        async def main() -> None:
            async with narrow(slow_web()) as mediator, asyncio.TaskGroup() as group:
                answers = mediator.answering(SQL)
                async with mediator._turns.taken():
                    starting = group.create_task(answers.__aenter__())
                    await asyncio.sleep(0.1)
                    assert answers.steer(prefer={"r.a >= 30": 10.0}).prefer == {"r.a >= 30": 10.0}
                await starting
                try:
                    found = await arrivals(answers)
                finally:
                    await answers.__aexit__(None, None, None)
                assert len(found) == 200
                assert last(found, range(30, 40)) < min(at for at, a in found if a < 30) + 0.11

        in_virtual_time(main())

    def test_a_value_that_a_plain_condition_fails_on_does_not_end_the_query(self) -> None:
        async def main() -> None:
            async with narrow(slow_web()) as mediator, mediator.answering(SQL) as answers:
                batch = await anext(answers)
                answers.steer(prefer={"r.a > 0.1234567890123456789012345678901234567": 5.0})
                assert batch.num_rows + (await all_of(answers)).num_rows == 200

        in_virtual_time(main())

    def test_what_goes_wrong_between_two_turns_ends_the_query_that_it_is_done_for(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fails(*_: object) -> None:
            raise ValueError("at fault")

        async def main() -> None:
            async with (
                narrow(slow_web()) as mediator,
                mediator.answering(SQL) as at_fault,
                mediator.answering(SQL) as other,
            ):
                assert at_fault._stages is not None
                monkeypatch.setattr(at_fault._stages, "prefer", fails)
                async with mediator._turns.taken():
                    at_fault.steer(prefer={"r.a > 3": 2.0})
                with pytest.raises(ValueError, match="at fault"):
                    await all_of(at_fault)
                assert (await all_of(other)).num_rows == 200
                assert at_fault.report.stopped == "failed: at fault"
                assert other.report.complete

        in_virtual_time(main())

    def test_a_bad_one_is_told_before_anything_is_asked(self) -> None:
        async def main() -> None:
            web = slow_web()
            async with mediating(web) as mediator:
                with pytest.raises(UnknownColumn, match=r"no column 'r\.b' in the query"):
                    mediator.answering(SQL, prefer={"r.b > 3": 10.0})
                with pytest.raises(QueryError, match="must be a number above 0"):
                    mediator.answering(SQL, prefer={"r.a > 3": 0.0})
                assert web.requests == 0

        in_virtual_time(main())

    def test_a_bad_one_in_mid_run_changes_nothing(self) -> None:
        async def main() -> None:
            async with (
                narrow(slow_web()) as mediator,
                mediator.answering(SQL, prefer={"r.a >= 30": 10.0}) as answers,
            ):
                with pytest.raises(UnknownColumn):
                    answers.steer(prefer={"r.b > 3": 1.0}, pause=["site_s"])
                assert answers.steering == Steering({"r.a >= 30": 10.0})
                assert (await all_of(answers)).num_rows == 200

        in_virtual_time(main())


TRADE = BY_NAME["packed mirrors"].sql


def trade(size: int = 60) -> Web:
    slow = Behaviour(latency=Fixed(0.2), concurrency=1)
    return book_trade_web(size, book_page=10, behaviours={"offers_north": slow, "offers_south": slow})


class TestPause:
    def test_a_query_that_waits_for_a_paused_source_says_so_until_it_is_resumed(self) -> None:
        async def main() -> None:
            web = trade()
            sql = "SELECT b.title, a.name FROM books b JOIN authors a ON a.id = b.author_id"
            async with (
                mediating(web) as mediator,
                mediator.answering(sql, pause=["who_is_who"]) as answers,
                asyncio.TaskGroup() as group,
            ):
                table = group.create_task(all_of(answers))
                await asyncio.sleep(1_000.0)
                assert not table.done()
                assert web.counters["authors"].requests == 0
                (paused,) = answers.report.paused
                assert paused.source == "who_is_who"
                assert paused.waiting == of(answers.report, "authors").asked > 0
                said = f"  paused: who_is_who, for which {paused.waiting} wait"
                assert said in answers.report.lines()
                assert answers.report.as_dict()["paused"] == [
                    {"source": "who_is_who", "waiting": paused.waiting}
                ]
                answers.steer(resume=["who_is_who"])
                check_same(await table, truth(web.tables, sql))
                assert answers.report.complete
                assert answers.report.paused == ()

        in_virtual_time(main())

    def test_in_mid_run_what_is_under_way_comes(self) -> None:
        async def main() -> None:
            web = slow_web()
            async with (
                mediating(web) as mediator,
                mediator.answering(SQL) as answers,
                asyncio.TaskGroup() as group,
            ):
                table = group.create_task(all_of(answers))
                await asyncio.sleep(0.55)
                under_way = mediator.statistics().method("s", "by_x").in_flight
                answered = of(answers.report, "s").answered
                assert under_way > 0
                answers.steer(pause={"site_s"})
                await asyncio.sleep(100.0)
                assert of(answers.report, "s").answered == answered + under_way
                answers.steer(resume=answers.steering.paused)
                assert (await table).num_rows == 200

        in_virtual_time(main())

    def test_the_time_that_the_query_may_take_goes_on(self) -> None:
        async def main() -> None:
            async with mediating(trade()) as mediator:
                sql = "SELECT b.title, a.name FROM books b JOIN authors a ON a.id = b.author_id"
                table, report = await ask(mediator, sql, pause=["who_is_who"], max_seconds=5.0)
                assert table.num_rows == 0
                assert not report.complete
                assert report.stopped == "the query may take 5 s (max_seconds), and needs more"
                (paused,) = report.paused
                assert paused.waiting > 0

        in_virtual_time(main())

    def test_it_can_be_stopped_and_left(self) -> None:
        async def main() -> None:
            async with mediating(trade()) as mediator:
                async with mediator.answering(TRADE, pause=["prices_north", "prices_south"]) as answers:
                    asyncio.get_running_loop().call_later(3.0, answers.stop, "enough of this")
                    assert (await all_of(answers)).num_rows == 0
                    assert answers.report.stopped == "enough of this"
                    assert {p.source for p in answers.report.paused} == {"prices_north", "prices_south"}
                async with mediator.answering(TRADE, pause=["prices_north", "prices_south"]) as answers:
                    await asyncio.sleep(3.0)
                assert answers.report.stopped == "cancelled"

        in_virtual_time(main())

    def test_the_other_mirror_answers_all(self) -> None:
        async def main() -> None:
            web = trade()
            async with mediating(web) as mediator:
                table, report = await ask(mediator, TRADE, pause=["prices_north"])
                check_same(table, truth(web.tables, TRADE))
                assert report.complete
                assert report.paused == (Paused("prices_north", 0),)
                assert report.lines()[-1] == "  paused: prices_north"
                assert web.counters["offers_north"].requests == 0
                assert web.counters["offers_south"].requests > 0

        in_virtual_time(main())

    def test_another_query_asks_the_same_source(self) -> None:
        async def main() -> None:
            web = trade()
            async with (
                mediating(web) as mediator,
                mediator.answering(TRADE, pause=["prices_north", "prices_south"]) as answers,
            ):
                async with asyncio.TaskGroup() as group:
                    paused = group.create_task(all_of(answers))
                    await asyncio.sleep(10.0)
                    table, report = await ask(mediator, TRADE)
                    check_same(table, truth(web.tables, TRADE))
                    assert report.complete
                    # What both wanted came to both, and nothing was asked twice for it.
                    check_same(await paused, truth(web.tables, TRADE))
                assert answers.report.complete

        in_virtual_time(main())


def _source(mediator: Mediator) -> str:
    return mediator.catalog.relations["s"].method("by_x").mirrors[0].source


class TestBoost:
    def test_a_boosted_mirror_gets_more_of_the_lookups(self) -> None:
        def shares(boost: dict[str, float]) -> tuple[int, int]:
            async def main() -> tuple[int, int]:
                web = trade(1_000)
                async with mediating(web) as mediator:
                    table, report = await ask(mediator, TRADE, boost=boost)
                    check_same(table, truth(web.tables, TRADE))
                    assert report.complete
                    return web.counters["offers_north"].requests, web.counters["offers_south"].requests

            return in_virtual_time(main())

        north, south = shares({"prices_north": 100.0})
        assert north > south

    def test_1_is_no_boost(self) -> None:
        async def main() -> None:
            async with (
                mediating(trade()) as mediator,
                mediator.answering(TRADE, boost={"prices_north": 5}) as answers,
            ):
                assert answers.steering.boost == {"prices_north": 5.0}
                answers.steer(boost={"prices_north": 1.0, "prices_south": 2.0})
                assert answers.steering.as_dict() == {
                    "prefer": {},
                    "paused": [],
                    "boost": {"prices_south": 2.0},
                }

        in_virtual_time(main())


class TestSaid:
    @pytest.mark.parametrize(
        ("said", "complaint"),
        [
            ({"pause": ["price_north"]}, "there is no source 'price_north': did you mean 'prices_north'?"),
            ({"resume": ["xyz"]}, "there is no source 'xyz': there are "),
            ({"boost": {"xyz": 2.0}}, "there is no source 'xyz': there are "),
            ({"boost": {"prices_north": 0}}, "the boost of 'prices_north' is 0: it must be a number above 0"),
            ({"boost": {"prices_north": "2"}}, "it must be a number above 0"),
            ({"boost": {"prices_north": True}}, "it must be a number above 0"),
            ({"boost": {"prices_north": float("nan")}}, "it must be a number above 0"),
            ({"pause": "prices_north"}, "sources are named in a collection, such as {'prices_north'}"),
            (
                {"pause": ["prices_north"], "resume": ["prices_north"]},
                "to be paused and to be resumed at once",
            ),
        ],
    )
    def test_what_makes_no_sense_changes_nothing(self, said: dict[str, object], complaint: str) -> None:
        async def main() -> None:
            async with mediating(trade()) as mediator:
                if "resume" not in said:
                    with pytest.raises(CannotSteer) as raised:
                        mediator.answering(TRADE, **said)
                    assert complaint in str(raised.value)
                async with mediator.answering(TRADE) as answers:
                    with pytest.raises(CannotSteer) as raised:
                        answers.steer(**said)  # type: ignore[arg-type]
                    assert complaint in str(raised.value)
                    assert answers.steering == Steering()

        in_virtual_time(main())

    def test_before_the_start_and_after_the_end(self) -> None:
        async def main() -> None:
            web = trade()
            async with mediating(web) as mediator:
                answers = mediator.answering(TRADE)
                answers.steer(pause=["prices_north"], prefer={"b.year > 1990": 5.0})
                async with answers:
                    check_same(await all_of(answers), truth(web.tables, TRADE))
                    answers.steer(resume=["prices_north"], prefer={})
                ended, report = answers.steering, answers.report
                assert answers.steer(pause=["prices_south"], prefer={"b.year > 1990": 5.0}) == ended
                assert answers.steering == ended
                assert answers.report.as_dict() == report.as_dict()
                assert web.counters["offers_north"].requests == 0
                assert answers.report.complete

        in_virtual_time(main())

    def test_said_once_in_the_settings_for_all_queries(self) -> None:
        async def main() -> None:
            web = trade()
            async with mediating(
                web, Settings(pause=("prices_south",), boost={"prices_north": 2.0})
            ) as mediator:
                table, _ = await ask(mediator, TRADE)
                check_same(table, truth(web.tables, TRADE))
                assert web.counters["offers_south"].requests == 0

        in_virtual_time(main())

    def test_faults_and_steering_together(self) -> None:
        """A mirror that fails now and then, and one that is paused and resumed all the time."""
        flaky = Behaviour(latency=Fixed(0.1), faults=(Fault("error", probability=0.3, status=503),))
        web = book_trade_web(60, book_page=10, behaviours={"offers_north": flaky, "offers_south": flaky})

        async def main() -> None:
            async with (
                mediating(web) as mediator,
                mediator.answering(TRADE) as answers,
                asyncio.TaskGroup() as group,
            ):
                table = group.create_task(all_of(answers))
                while not table.done():
                    answers.steer(pause=["prices_north"], resume=["prices_south"])
                    await asyncio.sleep(0.3)
                    answers.steer(pause=["prices_south"], resume=["prices_north"])
                    await asyncio.sleep(0.3)
                assert rows(table.result()) <= rows(truth(web.tables, TRADE))
                if answers.report.complete:
                    check_same(table.result(), truth(web.tables, TRADE))

        in_virtual_time(main())


async def _until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not true():
            await asyncio.sleep(0.01)


def test_from_another_thread_over_real_http() -> None:
    slow = Behaviour(latency=Fixed(0.02))

    async def main() -> None:
        with papers(100, behaviours={"s_x": slow}, page_size=100, distinct=50) as web:
            async with Mediator(load_papers(web.url), threads=1) as mediator:
                source = _source(mediator)
                async with mediator.answering(SQL, pause=[source]) as answers, asyncio.TaskGroup() as group:
                    table = group.create_task(all_of(answers))
                    await _until(lambda: answers.report.paused[0].waiting > 0)
                    assert web.counters["s_x"].requests == 0
                    steering = await asyncio.to_thread(
                        answers.steer, resume=[source], prefer={"r.a > 25": 3.0}
                    )
                    assert steering == Steering({"r.a > 25": 3.0})
                    assert (await table).num_rows == 100
                assert answers.report.complete
                assert web.counters["s_x"].requests == 50

    asyncio.run(main())
