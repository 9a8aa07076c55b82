"""All that a query has told, in its order, for any number of readers, each at a place of its own.

Rows are kept as they travel, as Arrow messages: the newest in memory, and in a file when there are many of them. A
journal that is not `whole` forgets what all its readers have had, and has its writer wait for the slowest of them: so a
reader that stalls costs a bounded piece of memory, and nothing else. A whole one keeps everything up to a limit.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

Kind = Literal["rows", "partial", "withdrawn", "note", "end"]

PIECE = 1 << 17  # bytes of rows in one entry, about
_COLUMN = 256  # bytes of each column at least, where there are very many: each costs its time in every entry
MOST_ROWS = 4_096  # of one entry: encoding them must not hold up the loop
_WINDOW = 1 << 18  # bytes that the slowest reader of a journal that is not whole may be behind
_IN_MEMORY = 1 << 18  # bytes of a whole one before there is a file


class Gone(Exception):
    """What was asked for is not kept any more, or never was."""


class Full(Exception):
    """A whole journal has come to its limit."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing told. `body` is all of it but for the rows, which are `payload`: a record batch as an IPC message."""

    number: int  # from 1
    kind: Kind
    body: Mapping[str, Any]
    rows: int = 0
    before: int = 0  # answers told before it
    payload: pa.Buffer | None = None


@dataclass(slots=True)
class _Kept:
    """An entry as it is kept: its payload is in memory, or in the file at a place."""

    kind: Kind
    body: Mapping[str, Any]
    rows: int
    before: int
    payload: pa.Buffer | None
    size: int
    at: int = -1


class Reader:
    """How far one reader has come: the number of the entry that it had last."""

    __slots__ = ("at",)

    def __init__(self, at: int) -> None:
        self.at = at


class Journal:
    def __init__(self, schema: pa.Schema, *, whole: bool, most: int = 1 << 30) -> None:
        """`most` bytes are kept of a whole one: what would be more raises `Full`."""
        self.schema = schema
        self.whole = whole
        self.ended = False
        self.waits = False  # the writer, for the slowest reader
        self.rows = 0  # answers told
        self.size = 0  # bytes of all that is kept
        self._most = most
        self._entries: deque[_Kept] = deque()
        self._first = 1  # the number of the oldest that is kept
        self._readers: dict[Reader, None] = {}
        self._file: int | None = None
        self._written = 0
        self._abandoned = self._shut = False
        self._news = asyncio.Event()
        self._room = asyncio.Event()

    @property
    def last(self) -> int:
        """The number of the newest entry."""
        return self._first + len(self._entries) - 1

    @property
    def first(self) -> int:
        """The number of the oldest entry that is kept."""
        return self._first

    @property
    def readers(self) -> int:
        return len(self._readers)

    async def rows_came(self, batch: pa.RecordBatch, body: Callable[[int, int], Mapping[str, Any]]) -> bool:
        """Answers, in pieces; `body` says the rest of what is told of some of the batch's rows, from one on, up to
        another. Waits while the slowest reader is too far behind. Whether all of them were taken."""
        for piece, start in _pieces(batch):
            if self._shut:
                return False
            if self._forsaken:
                return True
            await self._put(
                _Kept("rows", body(start, start + piece.num_rows), piece.num_rows, self.rows, *_packed(piece))
            )
            self.rows += piece.num_rows
            await asyncio.sleep(0)  # whoever is to end it, and all others, come in between
        return True

    async def partial(self, batch: pa.RecordBatch, body: Callable[[int, int], Mapping[str, Any]]) -> None:
        """Partial answers, in the same way."""
        for piece, start in _pieces(batch):
            said = body(start, start + piece.num_rows)
            await self._put(_Kept("partial", said, piece.num_rows, self.rows, *_packed(piece)))

    async def tell(self, kind: Kind, body: Mapping[str, Any]) -> None:
        """Something that has no rows."""
        await self._put(_Kept(kind, body, 0, self.rows, None, 256))

    def end(self, body: Mapping[str, Any]) -> None:
        """The last entry, for which there is always room."""
        if not self.ended:
            self._add(_Kept("end", body, 0, self.rows, None, 0))
            self.ended = True
            self.stir()

    def stirred(self) -> asyncio.Event:
        """Set when there is anything new: to be taken before a look at what there is."""
        return self._news

    def stir(self) -> None:
        """Let the readers look again, whether or not anything was added."""
        self._news.set()
        self._news = asyncio.Event()

    def abandon(self) -> None:
        """Nobody waits for readers any more: what they have not had is kept, if this is whole, or lost."""
        self._abandoned = True
        self._room.set()

    def shut(self) -> None:
        """No more rows are taken, not even the rest of those that are being told."""
        self._shut = True
        self.abandon()

    @contextmanager
    def reading(self, after: int) -> Iterator[Reader]:
        """A reader who has had everything up to and with the entry `after`. Raises `Gone` where what follows is not
        kept."""
        if after > self.last or after < self._first - 1:
            raise Gone
        reader = Reader(after)
        self._readers[reader] = None
        try:
            yield reader
        finally:
            del self._readers[reader]
            self._room.set()

    def next(self, reader: Reader) -> Entry | None:
        """The reader's next entry, if there is one yet; it has had it then."""
        found = self.entry(reader.at + 1)
        if found is not None:
            reader.at += 1
            self._room.set()
        return found

    def entry(self, number: int) -> Entry | None:
        """None where it has not been told yet. Raises `Gone` where it is not kept any more."""
        if number > self.last:
            return None
        if number < self._first:
            raise Gone
        kept = self._entries[number - self._first]
        payload = kept.payload
        if kept.at >= 0:
            assert self._file is not None
            payload = pa.py_buffer(os.pread(self._file, kept.size, kept.at))
        return Entry(number, kept.kind, kept.body, kept.rows, kept.before, payload)

    def close(self) -> None:
        """Forget everything."""
        self.abandon()
        self._first += len(self._entries)
        self._entries.clear()
        self.size = 0
        if self._file is not None:
            os.close(self._file)
            self._file = None
        self.stir()

    @property
    def _forsaken(self) -> bool:
        """Nobody reads, and nobody will."""
        return self._abandoned and not self.whole and not self._readers

    async def _put(self, kept: _Kept) -> None:
        while not self._has_room(kept.size):
            self.waits = True
            self._room.clear()
            await self._room.wait()
        self.waits = False
        if self.whole and self.size + kept.size > self._most:
            raise Full
        self._add(kept)
        self.stir()

    def _has_room(self, size: int) -> bool:
        if self.whole or self._abandoned:
            return True
        self._forget(size)
        return not self._entries or self.size + size <= _WINDOW

    def _add(self, kept: _Kept) -> None:
        if self.whole and kept.payload is not None and self.size + kept.size > _IN_MEMORY:
            self._store(kept)
        self._entries.append(kept)
        self.size += kept.size

    def _store(self, kept: _Kept) -> None:
        """Into the file: in the page cache at first, so that nobody waits for a disk."""
        assert kept.payload is not None
        if self._file is None:
            self._file = _unnamed_file()
        view = memoryview(kept.payload)
        kept.at = self._written
        while view:
            count = os.pwrite(self._file, view, self._written)
            self._written += count
            view = view[count:]
        kept.payload = None

    def _forget(self, size: int) -> None:
        """Make room for so many bytes, of what all readers have had; nothing before there is a reader."""
        slowest = min((reader.at for reader in self._readers), default=0)
        while self._first <= slowest and self._entries and self.size + size > _WINDOW:
            self.size -= self._entries.popleft().size
            self._first += 1


def batch_of(entry: Entry, schema: pa.Schema) -> pa.RecordBatch:
    """The rows of an entry that has some."""
    return pa.ipc.read_record_batch(entry.payload, schema)


def _pieces(batch: pa.RecordBatch) -> Iterator[tuple[pa.RecordBatch, int]]:
    """The batch in pieces of a bounded size, each with the number of its first row."""
    if not batch.num_rows:
        return
    size = max(PIECE, _COLUMN * batch.num_columns)
    each = max(1, min(MOST_ROWS, size * batch.num_rows // max(1, batch.nbytes)))
    for start in range(0, batch.num_rows, each):
        yield batch.slice(start, each), start


def _packed(batch: pa.RecordBatch) -> tuple[pa.Buffer, int]:
    payload = batch.serialize()
    return payload, payload.size


def _unnamed_file() -> int:
    """A file that is gone when it is closed, whatever becomes of the process."""
    descriptor, path = tempfile.mkstemp(prefix="mediator-results-")
    os.unlink(path)
    return descriptor
