"""Open slots that grow: what `kernels/hashed.py` and `kernels/numbers.py` find their way in."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mediator.state.kernels.hashed import spread_out
from mediator.state.memory import zeros

Slots = NDArray[np.uint64]

_FEWEST = 8  # bits of the number of slots
_LEAP = 20  # up to here tables grow fourfold, from here on twofold


class OpenSlots:
    def __init__(self, entries: int = 0) -> None:
        """With room for so many entries at first."""
        self.bits = max(_FEWEST, int(2 * entries - 1).bit_length())
        self.data = self._empty()
        self.used = 0

    @property
    def shift(self) -> np.uint64:
        """By which the upper half of a hash becomes its home."""
        return np.uint64(32 - self.bits)

    def lacks_room(self, entries: int) -> bool:
        """Whether so many new entries would leave less than three eighths of the slots empty."""
        return 8 * (self.used + entries) > 5 << self.bits

    def widen(self, entries: int) -> None:
        """Make room for so many new entries."""
        before = self.bits
        while self.lacks_room(entries):
            self.bits += 2 if self.bits < _LEAP else 1
        if self.bits > before:
            old, self.data = self.data, self._empty()
            spread_out(old, self.data, self.shift)

    def _empty(self) -> Slots:
        slots: Slots = zeros(1 << self.bits, np.uint64)
        return slots
