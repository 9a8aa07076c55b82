"""When to leave a mirror alone, and when to try it again. Pure: time is handed in.

closed ── so many failures in a row ──▶ open ── cool-down over, one attempt let in ──▶ probation
  ▲                                      ▲                                               │   │
  │                                      └── it failed: the cool-down doubles ───────────┘   │
  └────────────────────────── it succeeded ──────────────────────────────────────────────────┘
"""

from __future__ import annotations

import math
from enum import Enum

FAILURES = 5  # in a row, before a mirror is dropped
COOL_DOWN = 1.0
LONGEST = 30.0


class State(Enum):
    CLOSED = "closed"
    OPEN = "open"
    PROBATION = "probation"


class Breaker:
    """Counts what went wrong in a row. While it is not closed, at most one attempt at a time is let in."""

    def __init__(
        self, failures: int = FAILURES, cool_down: float = COOL_DOWN, longest: float = LONGEST
    ) -> None:
        self.state = State.CLOSED
        self._limit, self._first, self._longest = failures, cool_down, longest
        self._in_a_row = 0
        self._cool_down = cool_down
        self._until = -math.inf

    @property
    def ready_at(self) -> float:
        """From when on an attempt is let in; infinite while another one is on probation."""
        return math.inf if self.state is State.PROBATION else self._until

    @property
    def proven(self) -> bool:
        """Whether two on probation have failed one after the other: five in a row may have been bad luck."""
        return self._cool_down > 2 * self._first

    def enter(self) -> bool:
        """An attempt goes in, which `ready_at` allowed. Whether it is the one on probation."""
        if self.state is State.CLOSED:
            return False
        self.state = State.PROBATION
        return True

    def succeeded(self) -> None:
        self.state = State.CLOSED
        self._in_a_row = 0
        self._cool_down = self._first
        self._until = -math.inf

    def failed(self, now: float, on_probation: bool = False) -> None:
        self._in_a_row += 1
        if on_probation:
            self._cool_down = min(2 * self._cool_down, self._longest)
            self._open(now)
        elif self.state is State.CLOSED and self._in_a_row >= self._limit:
            self._open(now)

    def abandoned(self) -> None:
        """The attempt on probation was called back before it could tell: the next one may go at once."""
        if self.state is State.PROBATION:
            self.state = State.OPEN

    def _open(self, now: float) -> None:
        self.state = State.OPEN
        self._until = now + self._cool_down
