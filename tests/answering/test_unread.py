"""What waits for its reader: in its order, as much as there is room for, and to its end."""

from __future__ import annotations

import asyncio

import pyarrow as pa
import pytest

from mediator.output.records import Rows
from mediator.unread import Unread


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
