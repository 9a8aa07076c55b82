"""Where answers go: stdout or a file.

Writing may block for as long as the reader likes: whoever has an event loop does it in a thread.
"""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import BinaryIO, Protocol

import pyarrow as pa

from api.exits import Mistake, Unwritten
from api.formats import Encoder
from api.writing import STDOUT, named, raw_of, write_whole

MakeEncoder = Callable[[pa.Schema], Encoder]


class Receiver(Protocol):
    """Takes the answers of one query."""

    def open(self, schema: pa.Schema) -> None:
        """Before anything is asked."""
        ...

    def take(self, batch: pa.RecordBatch) -> None: ...

    def close(self) -> None:
        """After the last batch, whatever ended the query."""
        ...

    @property
    def forsaken(self) -> bool:
        """Whether nobody reads any more."""
        ...


class Parts:
    """A folder of Parquet files, which the engine itself writes."""

    forsaken = False

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def open(self, schema: pa.Schema) -> None: ...

    def take(self, batch: pa.RecordBatch) -> None:
        raise AssertionError("no batch comes this way")

    def close(self) -> None: ...


class Document:
    """Answers in one format, to stdout or to a file; each batch is there as soon as it is taken."""

    def __init__(self, make: MakeEncoder, path: Path | None) -> None:
        self._make = make
        self._path = path
        self._open = False
        self._full = False  # it takes no more

    def open(self, schema: pa.Schema) -> None:
        self._encoder = self._make(schema)
        begun = self._encoder.start()  # what was in the file stays there, where there is no writing this
        self._stream = self._opened()
        self._open = True
        self._write(begun)

    def take(self, batch: pa.RecordBatch) -> None:
        self._write(self._encoder.rows(batch))

    def close(self) -> None:
        if not self._open:
            return
        self._open = False
        try:
            if not self._full:
                self._write(self._encoder.end())
        finally:
            if self._path is not None:
                with self._named():
                    self._stream.close()

    @property
    def forsaken(self) -> bool:
        return self._path is None and _hung_up(self._stream)

    def _opened(self) -> BinaryIO:
        if self._path is None:
            with self._named():
                return raw_of(sys.stdout)
        try:
            return self._path.open("wb", buffering=0)
        except OSError as error:
            raise Mistake(f"{self._path}: cannot be written: {error.strerror}") from None

    def _write(self, data: bytes) -> None:
        try:
            with self._named():
                write_whole(self._stream, data)
        except Unwritten:
            self._full = True
            raise

    def _named(self) -> AbstractContextManager[None]:
        return named(STDOUT if self._path is None else str(self._path))


def _hung_up(stream: BinaryIO) -> bool:
    """Whether the other end of a pipe is closed: known before anything is written."""
    if not hasattr(select, "poll"):
        return False
    try:
        descriptor = stream.fileno()
    except (OSError, ValueError):
        return False
    asked = select.poll()
    asked.register(descriptor, 0)
    return any(events & select.POLLERR for _, events in asked.poll(0)) and not os.isatty(descriptor)
