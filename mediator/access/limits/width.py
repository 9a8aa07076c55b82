"""How many requests a source bears at once, as it shows when it is asked. Pure: neither waits nor looks at a clock.

A site that is asked too much at once says so (429, 503), or takes longer and answers no more. In the first case there
are fewer from now on; then one more for every round that is answered, but slowly where the last no was said. In the
second a smaller number is tried: where each reply then takes less time it was a queue, and the number stays small;
where it does not, that is how long the site takes now.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

_REFUSED = 0.9  # of the width, after a no
_SLOWLY = 0.1  # of the usual growth, where it may be too much again
_TRIED = 0.75  # of the width, where replies take long
_LONG = 2.0  # times the usual
_QUEUED = 1.15  # a queue's wait shrinks as its length does, within so much
_ROUNDS = 2  # of requests that a median is taken over
_FEW = 8  # requests, at least


@dataclass(frozen=True, slots=True)
class _Trial:
    """What it was like before the width was made smaller."""

    width: float
    took: float


class Width:
    """Starts from what the source declares, and never goes above it. Never below one either."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._width = float(most)
        self._too_much = float("inf")  # places at which it last said no
        self._entered = 0
        self._changed_at = 0  # requests that had entered by then
        self._usual = float("inf")  # seconds that a reply takes when the site is not asked too much
        self._took: list[float] = []
        self._trial: _Trial | None = None

    @property
    def places(self) -> int:
        return int(self._width)

    def enter(self) -> int:
        """One more is about to be sent. Its number."""
        self._entered += 1
        return self._entered

    def refused(self, number: int) -> None:
        """Too much, said the site. To a request that entered before the last change, that is no news."""
        if number > self._changed_at:
            self._trial = None
            self._too_much = self.places
            self._change(min(self._width * _REFUSED, self._too_much - 1.0))

    def answered(self, number: int, seconds: float) -> None:
        """A reply came, to a request that entered when there was no place left but its own."""
        if number <= self._changed_at:
            return
        if self._trial is None and seconds <= _LONG * self._usual:
            self._grow()
        self._took.append(seconds)
        if len(self._took) >= max(_FEW, _ROUNDS * self.places):
            took = median(self._took)
            self._took.clear()
            self._consider(took)

    def _grow(self) -> None:
        slowly = self._too_much - 1.0 <= self._width < self._too_much + 1.0
        self._width = min(self._most, self._width + (_SLOWLY if slowly else 1.0) / self._width)

    def _consider(self, took: float) -> None:
        trial, self._trial = self._trial, None
        if trial is not None and took > trial.took * self._width / trial.width * _QUEUED:
            self._usual = took
            self._change(trial.width)
        elif trial is None and took > _LONG * self._usual and self._width > 1.0:
            self._trial = _Trial(self._width, took)
            self._change(self._width * _TRIED)
        self._usual = min(self._usual, took)

    def _change(self, width: float) -> None:
        self._width = max(1.0, width)
        self._changed_at = self._entered
        self._took.clear()
