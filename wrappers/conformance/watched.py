"""Whether code does I/O of its own: Python tells of it by audit events, which are listened to for a moment."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")

_IO = {
    "socket.connect": "connects to the network",
    "socket.getaddrinfo": "looks up a host",
    "socket.bind": "opens a port",
    "open": "opens a file",
    "os.system": "runs a program",
    "subprocess.Popen": "runs a program",
    "os.exec": "runs a program",
    "time.sleep": "sleeps",
}
_seen: ContextVar[list[str] | None] = ContextVar("seen", default=None)
_listening = False


def io_of(work: Callable[[], T]) -> list[str]:
    """What the work did that a wrapper must not do. What it raises is no matter here.

    It is done twice and watched the second time: Python opens files of its own when code is first used.
    """
    for _ in range(2):
        with _watch() as seen:
            try:
                work()
            except Exception:
                continue
    return seen


@contextmanager
def _watch() -> Iterator[list[str]]:
    global _listening
    if not _listening:
        sys.addaudithook(_hear)
        _listening = True
    seen: list[str] = []
    token = _seen.set(seen)
    try:
        yield seen
    finally:
        _seen.reset(token)


def _hear(event: str, arguments: tuple[object, ...]) -> None:
    if event in _IO and (seen := _seen.get()) is not None:
        seen.append(f"{_IO[event]}: {str(arguments[0])[:100]}" if event == "open" else _IO[event])
