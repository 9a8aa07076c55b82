"""Time is handed in, never looked up, so that a simulator can own it."""

from __future__ import annotations

import time
from collections.abc import Callable

# Seconds that never run backwards. Any callable will do: a loop's `time`, a simulator's own.
Clock = Callable[[], float]

monotonic: Clock = time.monotonic
