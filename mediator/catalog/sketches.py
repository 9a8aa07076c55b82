"""Small summaries of many values, which can be added to one another and grow old: what is measured is kept in them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import blake2b

_STEPS = 8  # buckets for a value and its double: a quantile is off by at most 5 %
_LEAST = 1e-6  # what is smaller is counted with it
_NOTHING = 1e-3  # a weight below which a bucket is forgotten
_KEPT = 64  # of the smallest hashes; the count of different values is off by 12 % or so


@dataclass(slots=True)
class Histogram:
    """How values are spread, in buckets whose bounds are powers of one number, the same in every histogram."""

    total: float = 0.0
    buckets: dict[int, float] = field(default_factory=dict)  # the weight of each

    def add(self, value: float) -> None:
        bucket = math.floor(math.log2(max(value, _LEAST)) * _STEPS)
        self.buckets[bucket] = self.buckets.get(bucket, 0.0) + 1.0
        self.total += value

    @property
    def weight(self) -> float:
        """How many values it stands for; old ones count less."""
        return sum(self.buckets.values())

    @property
    def mean(self) -> float:
        weight = self.weight
        return self.total / weight if weight else 0.0

    def quantile(self, q: float) -> float:
        """A value that about a share `q` does not exceed; 0 where there is none."""
        left = q * self.weight
        for bucket in sorted(self.buckets):
            left -= self.buckets[bucket]
            if left <= 1e-9:
                return float(2.0 ** ((bucket + 0.5) / _STEPS))
        return 0.0

    def plus(self, other: Histogram) -> Histogram:
        buckets = dict(self.buckets)
        for bucket, weight in other.buckets.items():
            buckets[bucket] = buckets.get(bucket, 0.0) + weight
        return Histogram(self.total + other.total, buckets)

    def aged(self, share: float) -> Histogram:
        """With so much of its weight."""
        buckets = {b: w * share for b, w in self.buckets.items() if w * share >= _NOTHING}
        return Histogram(self.total * share if buckets else 0.0, buckets)


@dataclass(slots=True)
class Moments:
    """Mean and spread of something per lookup, where several lookups that share a request can't be told apart."""

    weight: float = 0.0  # lookups
    groups: float = 0.0  # of lookups: requests with their pages
    total: float = 0.0
    squares: float = 0.0  # of the groups' means, each as often as the group has lookups

    def add(self, lookups: int, total: float) -> None:
        """One more group."""
        self.weight += lookups
        self.groups += 1.0
        self.total += total
        self.squares += total * total / lookups

    @property
    def mean(self) -> float:
        return self.total / self.weight if self.weight else 0.0

    @property
    def spread(self) -> float:
        """The standard deviation of one lookup."""
        if self.groups <= 0.0:
            return 0.0
        return math.sqrt(max(0.0, self.squares - self.total * self.total / self.weight) / self.groups)

    def plus(self, other: Moments) -> Moments:
        return Moments(
            self.weight + other.weight,
            self.groups + other.groups,
            self.total + other.total,
            self.squares + other.squares,
        )

    def aged(self, share: float) -> Moments:
        if self.weight * share < _NOTHING:
            return Moments()
        return Moments(self.weight * share, self.groups * share, self.total * share, self.squares * share)


@dataclass(slots=True)
class Distinct:
    """How many different values there were, told by the smallest of their hashes. It does not grow old."""

    smallest: tuple[int, ...] = ()  # in their order, of 48 bits each

    def add(self, values: Iterable[object]) -> None:
        most = self.smallest[-1] if len(self.smallest) == _KEPT else 1 << 48
        new = {h for value in values if (h := _hash(value)) < most}
        if new and not new.issubset(self.smallest):
            self.smallest = self._of({*self.smallest, *new}).smallest

    @property
    def count(self) -> float:
        if len(self.smallest) < _KEPT:
            return float(len(self.smallest))
        return (_KEPT - 1) / (self.smallest[-1] + 1) * 2**48

    def plus(self, other: Distinct) -> Distinct:
        return self._of({*self.smallest, *other.smallest})

    @staticmethod
    def _of(hashes: set[int]) -> Distinct:
        return Distinct(tuple(sorted(hashes)[:_KEPT]))


def _hash(value: object) -> int:
    return int.from_bytes(blake2b(repr(value).encode(), digest_size=6).digest(), "big")
