"""Hard limits of one query, as data: of all that it sends, or of what it sends to one source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from mediator.errors import MediatorError

Limit = TypeVar("Limit", int, float)


@dataclass(frozen=True, slots=True)
class Ceilings:
    """None where there is none."""

    calls: int | None = None  # requests, each attempt of each page
    bytes: int | None = None  # of replies, unpacked; what is under way when it is reached is still read
    # Of all that it sends: from the query's start. Of one source: while a request to it is under way, or waits to be
    # sent again; several at once count once.
    seconds: float | None = None

    def __post_init__(self) -> None:
        for name in self.__slots__:
            value = getattr(self, name)
            if value is not None and not value >= 0:
                raise MediatorError(f"max_{name} is {value}: say 0 or more, or leave it out for no limit")

    def lesser(self, other: Ceilings) -> Ceilings:
        """Of each limit the lower one: whoever says more than another allows gets what is allowed."""
        return Ceilings(
            _lesser(self.calls, other.calls),
            _lesser(self.bytes, other.bytes),
            _lesser(self.seconds, other.seconds),
        )

    def less(self, calls: int, bytes: int) -> Ceilings:
        """What is left where so much was spent; time is not counted here."""
        return Ceilings(_less(self.calls, calls), _less(self.bytes, bytes), self.seconds)


NO_CEILINGS = Ceilings()


def _less(most: int | None, spent: int) -> int | None:
    return None if most is None else max(0, most - spent)


def _lesser(one: Limit | None, other: Limit | None) -> Limit | None:
    said = [limit for limit in (one, other) if limit is not None]
    return min(said, default=None)
