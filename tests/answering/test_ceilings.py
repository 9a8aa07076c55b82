"""Hard ceilings of one query: what it cannot pay for is missing, and the report says which ceiling it was."""

from __future__ import annotations

import asyncio

import pytest

from fixtures import Behaviour, Fixed, Web, papers_web
from fixtures.virtual import run
from mediator.errors import MediatorError
from mediator.output.report import Report
from tests.answering.kit import all_of, ask, mediating

SQL = "select * from r, s where r.a = s.x"


def slow_web() -> Web:
    """R comes in five pages of its own time, and each of S's 20 lookups takes 0.1 s."""
    slow = Behaviour(latency=Fixed(0.1))
    return papers_web(100, behaviours={"r": slow, "s_x": slow}, page_size=20, distinct=20)


def causes(report: Report) -> set[tuple[str, str]]:
    return {(f.cause.kind, f.cause.message) for r in report.relations for f in r.failures}


class TestCalls:
    @pytest.mark.parametrize("most", [0, 1, 4, 7, 12])
    def test_no_request_more_is_sent_and_the_rest_is_missing(self, most: int) -> None:
        async def main() -> None:
            web = slow_web()
            async with mediating(web) as mediator:
                table, report = await ask(mediator, SQL, max_calls=most)
                assert web.requests == most
                assert not report.complete
                assert not report.stopped
                assert (
                    "ceiling",
                    f"the query may send {most} requests (max_calls), and needs more",
                ) in causes(report)
                if most >= 12:
                    assert 0 < table.num_rows < 100

        run(main())

    def test_as_many_as_are_needed_are_enough(self) -> None:
        async def main() -> None:
            web = slow_web()
            async with mediating(web) as mediator:
                whole, report = await ask(mediator, SQL)
                assert report.complete
                needed = web.requests
            async with mediating(slow_web()) as mediator:
                table, report = await ask(mediator, SQL, max_calls=needed)
                assert report.complete
                assert table.num_rows == whole.num_rows

        run(main())

    def test_what_is_stored_costs_nothing_and_the_missing_can_be_asked_again(self) -> None:
        async def main() -> None:
            web = slow_web()
            async with mediating(web) as mediator:
                assert not (await ask(mediator, SQL, max_calls=12))[1].complete
                whole, report = await ask(mediator, SQL)
                assert report.complete
                again, report = await ask(mediator, SQL, max_calls=0)
                assert report.complete
                assert again.num_rows == whole.num_rows

        run(main())

    def test_one_query_s_ceiling_is_not_another_s(self) -> None:
        async def main() -> None:
            web = slow_web()
            async with (
                mediating(web) as mediator,
                mediator.answering(SQL, max_calls=8) as poor,
                mediator.answering(SQL) as rich,
            ):
                tables = await asyncio.gather(all_of(poor), all_of(rich))
                assert rich.report.complete
                assert tables[1].num_rows == 100

        run(main())


class TestBytes:
    def test_after_so_many_nothing_more_is_asked(self) -> None:
        async def main() -> None:
            async with mediating(slow_web()) as mediator:
                _, report = await ask(mediator, SQL, max_bytes=2_000)
                assert not report.complete
                (cause,) = causes(report)
                assert cause[0] == "ceiling"
                assert cause[1].startswith("the query may read 2,000 bytes (max_bytes), and has read ")

        run(main())


class TestSeconds:
    def test_the_answer_is_what_was_found_by_then(self) -> None:
        async def main() -> None:
            async with mediating(slow_web()) as mediator:
                table, report = await ask(mediator, SQL, max_seconds=0.35)
                assert report.stopped == "the query may take 0.35 s (max_seconds), and needs more"
                assert 0 < table.num_rows < 100
                assert asyncio.get_running_loop().time() == pytest.approx(0.35, abs=0.01)
                whole, report = await ask(mediator, SQL, max_seconds=60)
                assert report.complete
                assert whole.num_rows == 100

        run(main())


def test_a_ceiling_below_zero_is_refused() -> None:
    async def main() -> None:
        async with mediating(slow_web()) as mediator:
            with pytest.raises(MediatorError, match="max_calls is -1: say 0 or more"):
                mediator.answering(SQL, max_calls=-1)

    run(main())
