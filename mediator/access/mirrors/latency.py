"""How long something takes, as measured: a moving mean and the percentiles of the latest samples."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mediator.catalog.sketches import Histogram

_WINDOW = (
    128  # samples that percentiles are taken over: old enough to be steady, young enough to follow the site
)
_NEWEST = 0.2  # weight of the newest sample in the moving mean, at least
_FIRST = 0.5  # of the first sample, where something was measured earlier
FEW = 20  # samples below which a percentile says little
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

    def __init__(self, prior: Histogram | None = None) -> None:
        self.count = 0
        self._prior = Histogram() if prior is None else prior.aged(1.0)  # what earlier processes measured
        self.mean = self._prior.mean
        self._at = 0.0
        self._latest: deque[float] = deque(maxlen=_WINDOW)
        self._ordered: list[float] | None = []

    @property
    def known(self) -> bool:
        """Whether anything was measured, now or earlier."""
        return bool(self.count or self._prior.buckets)

    @property
    def weight(self) -> float:
        """How many samples `quantile` rests on."""
        return max(self.count, self._prior.weight)

    def add(self, seconds: float, now: float) -> None:
        weight = max(_NEWEST, -math.expm1((self._at - now) / _MEMORY)) if self.count else self._first_weight
        self.mean += weight * (seconds - self.mean)
        self.count += 1
        self._at = now
        self._latest.append(seconds)
        self._ordered = None

    def at_least(self, seconds: float, now: float) -> bool:
        """Something was given up after so long. That is news only when it is longer than usual; whether it is."""
        if news := (not self.known or seconds > self.mean):
            self.add(seconds, now)
        return news

    def quantile(self, q: float) -> float:
        """The smallest recent sample that a share `q` of them does not exceed; 0 without samples.

        While they are fewer than what was measured earlier, and say little, it is as it was then.
        """
        if self.count < min(FEW, self._prior.weight):
            return self._prior.quantile(q)
        if self._ordered is None:
            self._ordered = sorted(self._latest)
        return nearest_rank(self._ordered, q)

    def distribution(self) -> Distribution:
        """The percentiles are of what was measured now, not earlier."""
        if not self.count:
            return Distribution()
        ordered = sorted(self._latest)
        return Distribution(self.count, self.mean, nearest_rank(ordered, 0.5), nearest_rank(ordered, 0.95))

    @property
    def _first_weight(self) -> float:
        return _FIRST if self._prior.buckets else 1.0

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
