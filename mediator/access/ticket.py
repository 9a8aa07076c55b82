"""Who waits: one ask of one visit, and what is still open of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from mediator.access.limits.purse import Purse
from mediator.access.wishes import Wishes
from mediator.catalog.wrapper import Binding
from mediator.errors import Cause
from mediator.flow.events import Arrived, Event, Exhausted, Failed, Landing

if TYPE_CHECKING:
    from mediator.access.lane import Flight

Deliver = Callable[[Event], None]


class Ticket:
    """One ask of one query. Each of its bindings is settled once."""

    __slots__ = ("_deliver", "number", "open", "purse", "wishes")

    def __init__(self, number: int, deliver: Deliver, purse: Purse, wishes: Wishes) -> None:
        self.number = number
        self.purse = purse
        self.wishes = wishes
        self.open: dict[Binding, Flight] = {}
        self._deliver = deliver

    def arrived(self, landing: Landing) -> None:
        self._deliver(Arrived(self.number, landing))

    def exhausted(
        self, bindings: list[Binding], at: float, until: float, landings: Sequence[Landing]
    ) -> None:
        if settled := self._settled(bindings):
            self._deliver(Exhausted(self.number, settled, at, until, landings=landings))

    def failed(self, bindings: list[Binding], cause: Cause) -> None:
        if settled := self._settled(bindings):
            self._deliver(Failed(self.number, settled, cause))

    def _settled(self, bindings: list[Binding]) -> tuple[Binding, ...]:
        return tuple(b for b in bindings if self.open.pop(b, None) is not None)
