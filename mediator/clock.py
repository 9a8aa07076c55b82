"""Time is handed in, never looked up, so that a simulator can own it."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime

# Seconds that never run backwards. Any callable will do: a loop's `time`, a simulator's own.
Clock = Callable[[], float]

monotonic: Clock = time.monotonic

# Seconds that the calling thread has worked. What others do at the same time, or a wait for the GIL, is not in it.
effort: Clock = time.thread_time


def wall() -> float:
    """Seconds since 1970: for what outlives the process, whose own clock starts anew each time."""
    return datetime.now(UTC).timestamp()
