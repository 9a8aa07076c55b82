"""What a command writes is written whole, at once, and past the buffers of Python.

A raw file takes as much as there is room for, and says how much that was; one that does not block may take nothing.
And what a buffer still held when a write failed, Python would try again as it ends, and complain about.
"""

from __future__ import annotations

import io
import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, BinaryIO, TextIO, cast

from api.exits import Unwritten

STDOUT = "standard output"


def write_whole(stream: BinaryIO, data: bytes) -> None:
    """Waits where the stream is one that does not."""
    left = memoryview(data)
    while left:
        taken = cast(int | None, stream.write(left))
        if taken is None:
            select.select([], [stream], [])
        else:
            left = left[taken:]


@contextmanager
def named(place: str) -> Iterator[None]:
    """What cannot be written there is told with its name. A reader that left is no fault, and stays what it is."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise Unwritten(f"{place}: {error.strerror or error}") from None


def raw_of(stream: TextIO) -> BinaryIO:
    """What is below its buffers, once they are empty."""
    stream.flush()
    return cast(BinaryIO, getattr(stream.buffer, "raw", stream.buffer))


class Answers(io.TextIOBase):
    """stdout for text that is the answer: where it cannot be written, the command ends."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream = stream

    @property
    def encoding(self) -> str:  # type: ignore[override]  # a property here, as it is somebody else's
        return self._stream.encoding

    def isatty(self) -> bool:
        return self._stream.isatty()

    def fileno(self) -> int:
        return self._stream.fileno()

    def write(self, text: str) -> int:
        with named(STDOUT):
            self._write(text)
        return len(text)

    def _write(self, text: str) -> None:
        if not hasattr(self._stream, "buffer"):  # one that is not of this process, as in a notebook
            self._stream.write(text)
            self._stream.flush()
            return
        write_whole(raw_of(self._stream), text.encode(self.encoding, self._stream.errors or "strict"))


class Asides(Answers):
    """stderr: where nobody can read it, nothing is said, and the command goes on as if it were."""

    def write(self, text: str) -> int:
        try:
            self._write(text)
        except OSError:
            return len(text)
        return len(text)


def answers() -> IO[str] | None:
    """None where it is closed."""
    stream = cast(TextIO | None, sys.stdout)
    return None if stream is None else cast(IO[str], Answers(stream))


def asides() -> IO[str] | None:
    stream = cast(TextIO | None, sys.stderr)
    return None if stream is None else cast(IO[str], Asides(stream))


def let_go() -> None:
    """What Python still holds and cannot write goes nowhere, without complaint: at the end of the process."""
    for stream in (sys.__stdout__, sys.__stderr__):
        if stream is None:
            continue
        try:
            stream.flush()
        except (OSError, ValueError):
            _to_nowhere(stream)


def _to_nowhere(stream: TextIO) -> None:
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    except (OSError, ValueError):
        return
