"""Arrays that grow by doubling, and by far more once they are large: memory that was never touched costs nothing."""

from __future__ import annotations

from typing import Generic, TypeVar, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from mediator.state.memory import LARGE, empty

T = TypeVar("T", bound=np.generic)

_LEAST = 64
_AHEAD = 16


class Growable(Generic[T]):
    """An array whose first `n` entries are in use."""

    __slots__ = ("_fill", "data", "n")

    def __init__(self, dtype: DTypeLike, fill: int = 0) -> None:
        self.data: NDArray[T] = np.empty(0, dtype)
        self._fill = fill
        self.n = 0

    @classmethod
    def of(cls, values: NDArray[T]) -> Growable[T]:
        """These values, which are not copied unless more come."""
        growable = cls(values.dtype)
        growable.data, growable.n = values, len(values)
        return growable

    def reserve(self, total: int) -> None:
        """Make room for `total` entries in all."""
        if total <= len(self.data):
            return
        room = max(total, 2 * len(self.data), _LEAST)
        dtype = self.data.dtype
        try:
            data = empty(room if room * dtype.itemsize < LARGE else _AHEAD * room, dtype)
        except MemoryError:  # the system lends no memory that it does not have
            data = empty(room, dtype)
        data[: self.n] = self.data[: self.n]
        self.data = cast("NDArray[T]", data)

    def extend(self, values: NDArray[T]) -> None:
        stop = self.n + len(values)
        self.reserve(stop)
        self.data[self.n : stop] = values
        self.n = stop

    def claim(self, total: int) -> None:
        """Take `total` entries into use; those not written yet are the caller's to write."""
        self.reserve(total)
        self.n = total

    def grow(self, total: int) -> None:
        """Take `total` entries into use; those not written yet hold the fill."""
        if total > self.n:
            self.reserve(total)
            self.data[self.n : total] = self._fill
            self.n = total

    @property
    def size(self) -> int:
        """Bytes in use."""
        return self.n * self.data.dtype.itemsize

    @property
    def used(self) -> NDArray[T]:
        return self.data[: self.n]
