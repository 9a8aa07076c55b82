"""A stay: a page is being fetched at a source, with all attempts at it. Ceilings of time are kept on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mediator.access.limits.fares import Fares


class Stay:
    """Its time is charged to every query aboard the trip; `stop`, told why, ends it with nothing more sent."""

    __slots__ = ("_fares", "source", "stop")

    def __init__(self, fares: Fares, source: str, stop: Callable[[str], None]) -> None:
        self._fares = fares
        self.source = source
        self.stop = stop

    def out_of_time(self) -> None:
        """A query aboard may not have requests to this source under way any longer."""
        self._fares.out_of_time(self)
