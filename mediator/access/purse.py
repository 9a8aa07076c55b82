"""What one query may spend at the sites, and what it has spent. A request is charged to all who wait for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mediator.errors import Cause, MediatorError


@dataclass(frozen=True, slots=True)
class Ceilings:
    """Hard limits of one query; none where there is none."""

    calls: int | None = None  # requests, each attempt of each page
    bytes: int | None = None  # of replies, unpacked; what is under way when it is reached is still read
    seconds: float | None = None  # from the query's start; kept by the driver

    def __post_init__(self) -> None:
        for name in self.__slots__:
            value = getattr(self, name)
            if value is not None and not value >= 0:
                raise MediatorError(f"max_{name} is {value}: say 0 or more, or leave it out for no limit")


class Purse:
    """One per query. `spent` is told once why nothing more can be paid."""

    def __init__(self, ceilings: Ceilings, spent: Callable[[], None]) -> None:
        self.calls = 0
        self.bytes = 0
        self.empty: Cause | None = None  # why nothing more can be paid
        self._ceilings = ceilings
        self._spent = spent

    @property
    def affords(self) -> bool:
        """Whether one more request can be paid for."""
        return self.empty is None and not self._called_enough

    def pay(self) -> bool:
        """Pays for one request that is about to be sent; false when there is nothing to pay it with."""
        if self._called_enough:
            self._close(f"the query may send {self._ceilings.calls:,} requests (max_calls), and needs more")
        if self.empty is not None:
            return False
        self.calls += 1
        return True

    def received(self, size: int) -> None:
        """A reply of so many bytes was read."""
        self.bytes += size
        most = self._ceilings.bytes
        if most is not None and self.bytes >= most:
            self._close(f"the query may read {most:,} bytes (max_bytes), and has read {self.bytes:,}")

    @property
    def _called_enough(self) -> bool:
        return self._ceilings.calls is not None and self.calls >= self._ceilings.calls

    def _close(self, why: str) -> None:
        if self.empty is None:
            self.empty = Cause("ceiling", why)
            self._spent()
