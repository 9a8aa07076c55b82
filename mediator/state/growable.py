"""Arrays that grow by doubling, and by more once they are large: memory that was never touched costs nothing."""

from __future__ import annotations

from typing import Generic, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

T = TypeVar("T", bound=np.generic)

_LEAST = 64
_LARGE = 1 << 20


class Growable(Generic[T]):
    """A one- or two-dimensional array whose first `n` entries are in use."""

    __slots__ = ("data", "fill", "n")

    def __init__(self, dtype: DTypeLike, width: int = 0, fill: int | None = None) -> None:
        shape = (0, width) if width else (0,)
        self.data: NDArray[T] = np.empty(shape, dtype)
        self.fill = fill
        self.n = 0

    def reserve(self, total: int) -> None:
        """Make room for `total` entries in all; new room holds `fill`, if there is one."""
        if total <= len(self.data):
            return
        factor = 4 if self.fill is None and self.data.nbytes > _LARGE else 2
        room = max(total, factor * len(self.data), _LEAST)
        data = np.empty((room, *self.data.shape[1:]), self.data.dtype)
        data[: self.n] = self.data[: self.n]
        if self.fill is not None:
            data[self.n :] = self.fill
        self.data = data

    def extend(self, values: NDArray[T]) -> None:
        stop = self.n + len(values)
        self.reserve(stop)
        self.data[self.n : stop] = values
        self.n = stop

    def grow(self, total: int) -> None:
        """Take `total` entries into use; those not written yet hold `fill`."""
        self.reserve(total)
        self.n = max(self.n, total)

    @property
    def used(self) -> NDArray[T]:
        return self.data[: self.n]
