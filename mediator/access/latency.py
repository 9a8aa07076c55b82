"""How long something takes, as measured: a moving mean and the percentiles of the latest samples."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_WINDOW = (
    128  # samples that percentiles are taken over: old enough to be steady, young enough to follow the site
)
_NEWEST = 0.2  # weight of the newest sample in the moving mean, at least
_MEMORY = 10.0  # seconds after which older samples weigh 1/e: what was measured long ago says little


@dataclass(frozen=True, slots=True)
class Distribution:
    """A summary in seconds. All zero when nothing has been measured."""

    count: int = 0
    mean: float = 0.0
    p50: float = 0.0
    p95: float = 0.0


class Latency:
    """Takes durations one by one, and tells what is usual."""

    def __init__(self) -> None:
        self.count = 0
        self.mean = 0.0
        self._at = 0.0
        self._latest: deque[float] = deque(maxlen=_WINDOW)
        self._ordered: list[float] | None = []

    def add(self, seconds: float, now: float) -> None:
        weight = max(_NEWEST, -math.expm1((self._at - now) / _MEMORY)) if self.count else 1.0
        self.mean += weight * (seconds - self.mean)
        self.count += 1
        self._at = now
        self._latest.append(seconds)
        self._ordered = None

    def at_least(self, seconds: float, now: float) -> None:
        """Something was given up after so long. That is news only when it is longer than usual."""
        if self.count == 0 or seconds > self.mean:
            self.add(seconds, now)

    def quantile(self, q: float) -> float:
        """The smallest recent sample that a share `q` of them does not exceed; 0 without samples."""
        if self._ordered is None:
            self._ordered = sorted(self._latest)
        return nearest_rank(self._ordered, q)

    def distribution(self) -> Distribution:
        return Distribution(self.count, self.mean, self.quantile(0.5), self.quantile(0.95))

    @staticmethod
    def together(several: Iterable[Latency]) -> Distribution:
        """One distribution over the samples of several."""
        measured = [latency for latency in several if latency.count]
        if not measured:
            return Distribution()
        samples = sorted(s for latency in measured for s in latency._latest)
        count = sum(latency.count for latency in measured)
        mean = sum(latency.mean * latency.count for latency in measured) / count
        return Distribution(count, mean, nearest_rank(samples, 0.5), nearest_rank(samples, 0.95))


def nearest_rank(ordered: Sequence[float], q: float) -> float:
    """The quantile that is itself one of the values."""
    return ordered[max(0, math.ceil(q * len(ordered)) - 1)] if ordered else 0.0
