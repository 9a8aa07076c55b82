"""Time is handed in, never looked up, so that a simulator can own it."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime

# Seconds that never run backwards. Any callable will do: a loop's `time`, a simulator's own.
Clock = Callable[[], float]

monotonic: Clock = time.monotonic


def wall() -> float:
    """Seconds since 1970: for what outlives the process, whose own clock starts anew each time."""
    return datetime.now(UTC).timestamp()
