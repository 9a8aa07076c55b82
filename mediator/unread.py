"""What a query has found, until its reader takes it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

import pyarrow as pa

from mediator.output.records import Partial, Record, Rows


class Unread:
    """Records in their order. There is room for about so many rows: whoever puts some here looks whether it is `full`
    first, and is told of each that was taken."""

    def __init__(self, room: int, taken: Callable[[], object]) -> None:
        self.room = room
        self._taken = taken
        self._records: deque[Record] = deque()
        self.rows = 0  # that wait
        self._ended = False
        self._error: BaseException | None = None
        self._readable = asyncio.Event()

    @property
    def full(self) -> bool:
        return self.rows > self.room

    def put(self, record: Record) -> None:
        self._records.append(record)
        self.rows += _rows_of(record)
        self._readable.set()

    def end(self, error: BaseException | None = None) -> None:
        """There will be no more; the reader meets the error when all else is read."""
        self._ended, self._error = True, error
        self._readable.set()

    async def next(self) -> Record | None:
        """What comes next, as soon as there is anything; none after the end."""
        while not self._records:
            if self._error is not None:
                raise self._error
            if self._ended:
                return None
            self._readable.clear()
            await self._readable.wait()
        record = self._records.popleft()
        self.rows -= _rows_of(record)
        self._taken()
        return record

    def answers(self) -> list[pa.RecordBatch]:
        """The answers among them."""
        return [record.batch for record in self._records if isinstance(record, Rows)]


def _rows_of(record: Record) -> int:
    """How much it is to keep."""
    return record.batch.num_rows if isinstance(record, Rows | Partial) else 0
