"""From so many to so many: what is known of a number beforehand."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Range:
    low: float
    high: float

    @classmethod
    def of(cls, number: float) -> Range:
        """Exactly so many."""
        return cls(number, number)

    def __add__(self, other: Range) -> Range:
        return Range(self.low + other.low, self.high + other.high)

    def __mul__(self, other: Range) -> Range:
        return Range(self.low * other.low, self.high * other.high)

    def at_most(self, other: Range) -> Range:
        """Neither bound above the other's."""
        return Range(min(self.low, other.low), min(self.high, other.high))

    def whole(self) -> Range:
        """In whole numbers, wide enough."""
        return Range(math.floor(self.low + 1e-9), math.ceil(self.high - 1e-9))

    def to_dict(self) -> dict[str, float]:
        return {"low": self.low, "high": self.high}


NONE = Range(0.0, 0.0)
ONE = Range(1.0, 1.0)
PART = Range(0.0, 1.0)  # of something, and nobody knows how much
