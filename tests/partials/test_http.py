"""Partial answers over real HTTP: a source that stalls, comes back, or fails for good; a query that is left."""

from __future__ import annotations

import asyncio
import threading

import pytest

from mediator import stages
from mediator.catalog.functions import function
from mediator.output.records import Rows
from mediator.partials.running import LIMIT_REACHED, NEVER_FOUND, News, PartialRun
from tests.partials.kit import ANSWERS, CYCLE, DATA, Heard, heard, site

AT_ONCE = 0.01  # seconds of silence


@pytest.mark.parametrize(
    ("stalled", "joined"),
    [
        # What joins two of them is known of the third as well.
        ("r", {(1, 100, 10), (2, 200, 20), (2, 201, 20), (3, 300, 99)}),
        ("s", {(1, 100, 10), (2, 200, 20), (2, 201, 20), (4, 100, 10)}),
        ("t", {(1, 100, 10), (2, 200, 20), (2, 201, 20), (3, 300, 30)}),
    ],
)
async def test_whichever_source_stalls_the_others_are_joined(
    stalled: str, joined: set[tuple[int, int, int]]
) -> None:
    async with site() as (here, mediator):
        here.stall(stalled)
        async with mediator.answering(CYCLE, partials=True, stalled_after=AT_ONCE) as answers:
            told, found = Heard(), set[object]()
            while len(found) < 4:
                told = await heard(answers, partials=len(told.partial) + 1, into=told)
                found = {
                    (p["a"], p["b"], p["c"]) for p in told.partial.values() if p["missing"] == (stalled,)
                }
            assert found == joined
            assert not told.rows
            here.go_on(stalled)
            told = await heard(answers, into=told)
        assert set(told.rows) == ANSWERS
        assert len(told.rows) == len(ANSWERS)
        assert told.completed.keys() | told.withdrawn.keys() == told.partial.keys()
        assert not told.completed.keys() & told.withdrawn.keys()
        report = answers.report
        assert report.complete
        assert report.partials is not None
        assert report.partials.given == len(told.partial)
        assert report.partials.left == 0


async def test_an_answer_names_what_it_completes_and_agrees_with_it() -> None:
    async with site() as (here, mediator):
        here.stall("s")
        sql = "SELECT r.a, s.b, r.c FROM r, s WHERE r.a = s.a"
        async with mediator.answering(sql, partials=True, stalled_after=AT_ONCE) as answers:
            told = await heard(answers, partials=4)
            here.go_on("s")
            told = await heard(answers, into=told)
    two = next(i for i, p in told.partial.items() if p["a"] == 2)
    assert sorted(row["b"] for row in told.completed[two]) == [200, 201]
    for id_, rows in told.completed.items():
        for row in rows:
            partial = told.partial[id_]
            assert partial["unknown"] == ("b",)
            assert (row["a"], row["c"]) == (partial["a"], partial["c"])
    four = next(i for i, p in told.partial.items() if p["a"] == 4)
    assert told.withdrawn == {four: NEVER_FOUND}


async def test_what_is_equal_in_every_answer_is_known() -> None:
    async with site() as (here, mediator):
        here.stall("s")
        sql = "SELECT s.a, s.a + 1 AS more, s.b, coalesce(s.b, 0) AS b0, r.c * 2 AS twice FROM r, s WHERE r.a = s.a"
        async with mediator.answering(sql, partials=True, stalled_after=AT_ONCE) as answers:
            told = await heard(answers, partials=4)
            one = next(p for p in told.partial.values() if p["a"] == 1)
            assert (one["more"], one["b"], one["b0"], one["twice"]) == (2, None, None, 20)
            assert one["unknown"] == ("b", "b0")
            here.go_on("s")
            told = await heard(answers, into=told)
    assert sorted(r[0] for r in told.rows) == [1, 2, 2, 3]
    assert sorted(told.completed) == sorted(i for i, p in told.partial.items() if p["a"] != 4)


async def test_a_source_that_fails_leaves_partial_answers() -> None:
    async with site() as (here, mediator):
        here.stall("s")
        async with mediator.answering(CYCLE, partials=True, stalled_after=AT_ONCE) as answers:
            told = await heard(answers, partials=4)
            here.fail("s")
            told = await heard(answers, into=told)
        assert not told.rows
        assert not told.completed
        report = answers.report
        assert not report.complete
        assert report.partials is not None
        assert report.partials.left == report.partials.given - len(told.withdrawn)
        assert {(p["a"], p["b"]) for p in told.partial.values() if p["missing"] == ("s",)} == {
            (1, 100),
            (2, 200),
            (2, 201),
            (4, 100),
        }
        assert "s" in report.partials.missing
        assert any("left without s" in line for line in report.lines())


async def test_what_is_looked_for_at_the_end_is_looked_for_in_a_thread_where_it_is_much(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    threads: list[threading.Thread] = []

    class Noting(PartialRun):
        def end(self, complete: bool, enough: bool, stopped: bool) -> News:
            threads.append(threading.current_thread())
            return super().end(complete, enough, stopped)

    monkeypatch.setattr(stages, "PartialRun", Noting)
    many = [(n, n) for n in range(3_000)]
    async with site(data={**DATA, "r": many, "s": many}) as (here, mediator):
        here.stall("t")
        async with mediator.answering(CYCLE, partials=True, stalled_after=100.0) as answers:
            async with asyncio.timeout(60):
                while sum(r.rows for r in answers.report.relations) < 6_000:
                    await asyncio.sleep(0.01)
            here.fail("t")
            told = await heard(answers)
        assert len(told.partial) == 3_000
        assert threading.main_thread() not in threads


async def test_a_source_that_fails_at_once_leaves_partial_answers_too() -> None:
    async with site() as (here, mediator):
        here.fail("s")
        async with mediator.answering(CYCLE, partials=True) as answers:
            told = await heard(answers)
        whole = [(p["a"], p["c"]) for p in told.partial.values() if p["missing"] == ("s",)]
        assert sorted(whole) == [(1, 10), (2, 20), (2, 20), (4, 10)]
        assert not answers.report.complete
        assert answers.report.partials is not None
        assert answers.report.partials.left >= 4


async def test_one_lookup_that_fails_leaves_its_rows_and_no_others() -> None:
    sql = "SELECT r.a, t.b FROM r, t WHERE r.c = t.c AND r.a < 4"
    async with site(indexed={"t": "c"}) as (here, mediator):
        here.stall("t")
        async with mediator.answering(sql, partials=True, stalled_after=AT_ONCE) as answers:
            told = await heard(answers, partials=3)
            here.fail("t")
            told = await heard(answers, into=told)
        assert answers.report.partials is not None
        assert answers.report.partials.left == 3
        assert not answers.report.complete


async def test_what_waits_at_one_index_is_looked_up_at_the_others() -> None:
    """`s` is asked by what `r` has, and stalls; so is `t`, before anybody knows whether `s` has a match."""
    sql = "SELECT r.a, s.b, t.b AS tb FROM r, s, t WHERE r.a = s.a AND r.c = t.c"
    async with site(indexed={"s": "a", "t": "c"}) as (here, mediator):
        here.stall("s")
        async with mediator.answering(sql, partials=True, stalled_after=AT_ONCE) as answers:
            told = await heard(answers, partials=4)
            known = {p["a"]: p["tb"] for p in told.partial.values() if p["missing"] == ("s",)}
            while len(known) < 3:
                told = await heard(answers, partials=len(told.partial) + 1, into=told)
                known = {p["a"]: p["tb"] for p in told.partial.values() if p["missing"] == ("s",)}
            assert known.items() <= {(1, 100), (4, 100), (2, 201), (2, 200)}
            here.go_on("s")
            told = await heard(answers, into=told)
        assert sorted(told.rows) == [
            (1, 100, 100),
            (2, 200, 200),
            (2, 200, 201),
            (2, 201, 200),
            (2, 201, 201),
        ]
        assert here.asked["t"] <= len({c for _, c in DATA["r"]}), "a lookup was sent twice"
        assert answers.report.complete
        assert told.completed.keys() | told.withdrawn.keys() == told.partial.keys()


async def test_where_calls_are_counted_nothing_is_asked_for_partial_answers() -> None:
    sql = "SELECT r.a, s.b, t.b AS tb FROM r, s, t WHERE r.a = s.a AND s.b = t.b"
    async with site(indexed={"s": "a", "t": "b"}) as (here, mediator):
        here.stall("s")
        async with mediator.answering(sql, partials=True, stalled_after=AT_ONCE, max_calls=50) as answers:
            told = await heard(answers, partials=4)
            assert here.asked["t"] == 0
            here.go_on("s")
            told = await heard(answers, into=told)
        assert answers.report.partials is not None
        assert answers.report.partials.lookups == 0
        assert len(told.rows) == 4


async def test_a_query_that_is_stopped_leaves_what_is_open() -> None:
    async with site() as (here, mediator):
        here.stall("s")
        async with mediator.answering(CYCLE, partials=True, stalled_after=AT_ONCE) as answers:
            told = await heard(answers, partials=4)
            answers.stop("enough of it")
            told = await heard(answers, into=told)
        assert answers.report.stopped == "enough of it"
        assert answers.report.partials is not None
        assert answers.report.partials.left == len(told.partial) - len(told.withdrawn) >= 4


async def test_a_query_that_is_left_leaves_nothing_behind() -> None:
    async with site(indexed={"s": "a", "t": "c"}) as (here, mediator):
        here.stall("s", "t")
        sql = "SELECT r.a, s.b, t.b AS tb FROM r, s, t WHERE r.a = s.a AND r.c = t.c"
        async with mediator.answering(sql, partials=True, stalled_after=AT_ONCE) as answers:
            await heard(answers, partials=1)
        async with asyncio.timeout(60):
            while here.under_way["s"] or here.under_way["t"]:
                await asyncio.sleep(0.01)
        assert answers.report.stopped


async def test_a_limit_that_is_reached_withdraws_what_is_open() -> None:
    async with site() as (here, mediator):
        here.stall("s")
        async with mediator.answering(f"{CYCLE} LIMIT 1", partials=True, stalled_after=AT_ONCE) as answers:
            told = await heard(answers, partials=4)
            here.go_on("s")
            told = await heard(answers, into=told)
        assert len(told.rows) == 1
        assert len(told.completed) >= 1
        assert answers.report.complete
        assert told.completed.keys() | told.withdrawn.keys() == told.partial.keys()
        assert LIMIT_REACHED in told.withdrawn.values()


async def test_distinct_answers_complete_once_and_the_others_are_withdrawn() -> None:
    sql = "SELECT DISTINCT r.c, s.b FROM r, s WHERE r.a = s.a"
    data = {**DATA, "r": [(1, 10), (1, 10), (2, 20)]}
    async with site(data=data) as (here, mediator):
        here.stall("s")
        async with mediator.answering(sql, partials=True, stalled_after=AT_ONCE) as answers:
            told = await heard(answers, partials=3)
            here.go_on("s")
            told = await heard(answers, into=told)
    assert sorted(told.rows) == [(10, 100), (20, 200), (20, 201)]
    assert len(told.completed) == 2
    assert len(told.withdrawn) == 1


async def test_equal_rows_of_a_bag_are_told_apart() -> None:
    data = {**DATA, "r": [(1, 10), (1, 10), (1, 10)], "s": [(1, 100)]}
    async with site(data=data) as (here, mediator):
        here.stall("s")
        sql = "SELECT r.a, s.b FROM r, s WHERE r.a = s.a"
        async with mediator.answering(sql, partials=True, stalled_after=AT_ONCE) as answers:
            told = await heard(answers, partials=3)
            here.go_on("s")
            told = await heard(answers, into=told)
    assert told.rows == [(1, 100)] * 3
    assert sorted(told.completed) == [1, 2, 3]
    assert all(len(rows) == 1 for rows in told.completed.values())


async def test_no_more_are_open_than_may_be() -> None:
    data = {**DATA, "r": [(n, 10) for n in range(100)]}
    async with site(data=data) as (here, mediator):
        here.stall("s")
        sql = "SELECT r.a, s.b FROM r, s WHERE r.a = s.a"
        async with mediator.answering(sql, partials=True, stalled_after=AT_ONCE, most_partials=7) as answers:
            told = await heard(answers, partials=7)
            here.go_on("s")
            told = await heard(answers, into=told)
        assert len(told.rows) == 4
        report = answers.report.partials
        assert report is not None
        assert report.left_out > 0
        assert "because 7 were open" in report.line()


@function([int, int], bool, by_row=True, seconds=1.0, name="picky")
def picky(a: int, c: int) -> bool:
    """Worth a module of its own, and fails on a row that no answer has."""
    if a == 4:
        raise ValueError("no 4")
    return True


@pytest.mark.parametrize(
    "condition",
    [
        "picky(r.a, t.c)",
        "CAST(CASE WHEN r.a = 4 AND t.c = 10 THEN 'none' ELSE '1' END AS INT) = 1",
    ],
)
async def test_a_condition_that_fails_on_what_no_answer_has_does_not_end_the_query(condition: str) -> None:
    async with site(indexed={"t": "c"}, functions=[picky]) as (here, mediator):
        here.stall("s")
        sql = f"{CYCLE} AND {condition}"
        async with (
            mediator.answering(sql, partials=True, stalled_after=AT_ONCE) as answers,
            asyncio.TaskGroup() as group,
        ):
            reading = group.create_task(heard(answers))
            async with asyncio.timeout(60):
                while not answers.report.remarks and not reading.done():
                    await asyncio.sleep(0.01)
            answers.stop("enough")
            told = await reading
        assert not told.rows
        (remark,) = answers.report.remarks
        assert remark.startswith("some partial answers could not be shown: ")


async def test_whoever_reads_batches_gets_full_answers_only() -> None:
    async with site() as (here, mediator):
        here.stall("s")
        async with mediator.answering(CYCLE, partials=True, stalled_after=AT_ONCE) as answers:
            loop = asyncio.get_running_loop()
            loop.call_later(0.1, here.go_on, "s")
            rows = [tuple(row.values()) for batch in [b async for b in answers] for row in batch.to_pylist()]
        assert set(rows) == ANSWERS


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("SELECT count(*) FROM r, s WHERE r.a = s.a", "known only when all rows are"),
        ("SELECT r.a, s.b FROM r, s WHERE r.a = s.a ORDER BY 1 LIMIT 2", "known only when all rows are"),
        ("SELECT r.a FROM r UNION ALL SELECT s.a FROM s", "several blocks"),
        ("SELECT r.a, s.b FROM r LEFT JOIN s ON r.a = s.a", "several blocks"),
        ("SELECT a FROM r", "joins nothing"),
        ("SELECT r.a, unnest([1, 2]) AS n FROM r, s WHERE r.a = s.a", "several answers"),
    ],
)
async def test_a_query_without_partial_answers_says_why(sql: str, why: str) -> None:
    async with site() as (_, mediator):
        async with mediator.answering(sql, partials=True) as answers:
            told = await heard(answers)
        assert told.records
        assert all(isinstance(record, Rows) for record in told.records)
        assert any("no partial answers: " in remark and why in remark for remark in answers.report.remarks)


async def test_nothing_is_partial_unless_it_is_asked_for() -> None:
    async with site() as (here, mediator):
        here.stall("s")
        async with mediator.answering(CYCLE, stalled_after=AT_ONCE) as answers:
            asyncio.get_running_loop().call_later(0.1, here.go_on, "s")
            told = await heard(answers)
        assert not told.partial
        assert set(told.rows) == ANSWERS
        assert answers.report.partials is None
        assert "partials" not in answers.report.as_dict()
