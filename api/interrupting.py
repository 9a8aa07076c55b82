"""Ctrl-C and `kill`, told to what runs in the event loop."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pyarrow as pa


@contextmanager
def interrupting(interrupt: Callable[[], None]) -> Iterator[None]:
    """Ctrl-C, and the polite `kill`, end the run with what it has found."""
    # While it reads CSV in the main thread, Arrow takes these signals for itself: it then gives up the page
    # that it reads, or loses a signal that comes as it ends.
    pa.enable_signal_handlers(False)
    loop = asyncio.get_running_loop()
    try:
        for sign in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(sign, interrupt)
    except (NotImplementedError, RuntimeError, ValueError):
        # Not the main thread, or not Unix: Ctrl-C then ends the run as it ends any program.
        yield
        return
    try:
        yield
    finally:
        for sign in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(sign)
