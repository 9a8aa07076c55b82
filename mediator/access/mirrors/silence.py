"""How long a mirror has said nothing to anybody who waits for it. Pure: time is handed in.

One reply that is late says little of its mirror. Where all that is under way is late at once, the mirror has stalled:
that is known long before any request is given up. It is suspected then, until it answers anybody again.
"""

from __future__ import annotations

import math


class Silence:
    def __init__(self) -> None:
        self.suspected = False
        self.since = -math.inf  # when suspicion fell on it
        self.trial_at = -math.inf  # from when on one that is suspected may be asked again, by one request
        self._began: dict[int, float] = {}  # when each attempt under way was sent, the oldest first
        self._heard = -math.inf

    def sent(self, number: int, now: float) -> None:
        self._began[number] = now

    def over(self, number: int) -> None:
        """The attempt has ended, one way or another."""
        self._began.pop(number, None)

    def suspect(self, now: float) -> None:
        """It has stalled, as it seems."""
        if not self.suspected:
            self.suspected, self.since = True, now

    def heard(self, now: float) -> None:
        """A reply came, whatever it says."""
        self._heard = now
        self.suspected = False
        self.trial_at = -math.inf

    def seconds(self, now: float) -> float:
        """For so long no reply has come, and at least one was waited for all that time."""
        if not self._began:
            return 0.0
        return now - max(self._heard, next(iter(self._began.values())))
