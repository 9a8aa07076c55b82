"""What waits for its reader: in its order, as much as there is room for, and to its end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pyarrow as pa
import pytest

from fixtures import Behaviour, Fixed, book_trade_web
from mediator import driver
from mediator.alarm import Alarm
from mediator.output.records import Rows
from mediator.unread import Unread
from tests.answering.kit import in_virtual_time, mediating


def rows(count: int) -> Rows:
    return Rows(pa.record_batch({"n": list(range(count))}))


async def test_each_that_is_taken_makes_room_and_is_told_of() -> None:
    taken: list[int] = []
    unread = Unread(5, lambda: taken.append(unread.rows))
    first, second = rows(5), rows(2)
    unread.put(first)
    assert not unread.full
    unread.put(second)
    assert unread.full
    assert [batch.num_rows for batch in unread.answers()] == [5, 2]
    assert await unread.next() is first
    assert not unread.full
    assert await unread.next() is second
    assert taken == [2, 0]


async def test_who_waits_is_told_of_what_comes_and_of_the_end() -> None:
    unread = Unread(5, lambda: None)

    found: list[int] = []

    async def read() -> None:
        while (record := await unread.next()) is not None:
            assert isinstance(record, Rows)
            found.append(record.batch.num_rows)

    async with asyncio.TaskGroup() as group:
        group.create_task(read())
        for count in (3, 1):
            await asyncio.sleep(0)
            unread.put(rows(count))
        await asyncio.sleep(0)
        assert found == [3, 1]
        unread.end()
    assert found == [3, 1]
    assert await unread.next() is None


async def test_an_error_is_met_when_all_else_is_read_and_whenever_it_is_asked_again() -> None:
    unread = Unread(5, lambda: None)
    only = rows(1)
    unread.put(only)
    unread.end(ValueError("the disk is full"))
    assert await unread.next() is only
    for _ in range(2):
        with pytest.raises(ValueError, match="the disk is full"):
            await unread.next()


def test_a_query_whose_reader_is_behind_is_not_woken_for_what_it_would_not_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Partial answers are due as soon as a source is silent, and there is no room for any."""
    woken = 0

    class Counted(Alarm):
        def set(self, when: float, do: Callable[[], object]) -> None:
            nonlocal woken
            woken += 1
            assert woken < 100, "again and again, in the same moment"
            super().set(when, do)

    monkeypatch.setattr(driver, "Alarm", Counted)
    web = book_trade_web(60, book_page=10)
    web.behave("books", Behaviour(latency=Fixed(1.0)))

    async def main() -> None:
        sql = "SELECT b.isbn, r.stars FROM books b JOIN reviews r USING (isbn)"
        async with (
            mediating(web) as mediator,
            mediator.answering(sql, partials=True, stalled_after=0.3, buffered=0) as answers,
        ):
            records = answers.records()
            await asyncio.sleep(100.0)
            async for _ in records:
                pass
            assert answers.report.complete

    in_virtual_time(main())
