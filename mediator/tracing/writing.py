"""Lines on their way to a file, in a thread of their own: whoever notes one never waits for the disk."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import BinaryIO

from mediator.errors import MediatorError

_WORTH = 1 << 16  # bytes that are written at once, unless nothing more comes for a while
_PAUSE = 0.25  # seconds
MOST = 1 << 24  # bytes that may wait; whoever is told `behind` is to rest


def check_writable(path: Path) -> None:
    """Raises `MediatorError` where no trace can be written. What the file has stays there for now."""
    if not path.is_fifo():  # whose reader would take this for all that comes
        try:
            path.open("ab").close()
        except OSError as error:
            raise _unwritable(path, error) from None


class Writer:
    """`error` says why the file is not whole, where it is not: no more is written then."""

    def __init__(self, path: Path) -> None:
        """Raises `MediatorError` where the file cannot be written."""
        self.error = ""
        try:
            self._file: BinaryIO = path.open("wb")
        except OSError as error:
            raise _unwritable(path, error) from None
        self._lines: list[bytes] = []
        self._size = 0
        self._closed = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="trace", daemon=True)
        self._thread.start()

    @property
    def behind(self) -> bool:
        """Whether so much waits that no more should be noted until `caught_up`."""
        return self._size > MOST

    def put(self, line: bytes) -> None:
        """Any thread may."""
        with self._changed:
            if self.error or self._closed:
                return
            self._lines.append(line)
            self._size += len(line)
            if self._size >= _WORTH:
                self._changed.notify_all()

    def caught_up(self) -> None:
        """Wait for the disk."""
        with self._changed:
            self._changed.wait_for(lambda: not self.behind or bool(self.error))

    def close(self) -> None:
        """All that was put is in the file afterwards, if it could be."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join()

    def _run(self) -> None:
        over = False
        while not over:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or self._size >= _WORTH, timeout=_PAUSE)
                lines, self._lines, over = self._lines, [], self._closed
            self._write(lines)
            with self._changed:
                self._size -= sum(map(len, lines))
                self._changed.notify_all()
        try:
            self._file.close()
        except OSError as error:
            self.error = self.error or error.strerror or str(error)

    def _write(self, lines: list[bytes]) -> None:
        if self.error or not lines:
            return
        try:
            self._file.write(b"".join(lines))
            self._file.flush()
        except OSError as error:
            self.error = error.strerror or str(error)


def _unwritable(path: Path, error: OSError) -> MediatorError:
    return MediatorError(f"{path}: the trace cannot be written: {error.strerror}")
