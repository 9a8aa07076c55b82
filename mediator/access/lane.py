"""A lane of a line: lookups that may go to the same sources, the most urgent first."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mediator.access.queue import Rank
from mediator.access.ticket import Ticket
from mediator.access.wishes import OPEN, Way, together
from mediator.catalog.wrapper import Binding

if TYPE_CHECKING:
    from mediator.access.trip import Trip

_STALE = 4  # times as many places as there are flights that wait: then those that were left are cleared away
_FEW = 64


class Flight:
    """A binding that somebody wants and that is asked only once, however many want it."""

    __slots__ = ("binding", "group", "tickets", "trip")

    def __init__(self, binding: Binding) -> None:
        self.binding = binding
        self.tickets: dict[Ticket, float] = {}  # who wants it, and how urgently
        self.trip: Trip | None = None  # the requests that carry it, once it has left the line
        self.group: Group | None = None  # where it stands in line

    @property
    def waits(self) -> bool:
        """Whether it stands in line."""
        return self.group is not None

    def urgency(self, places: Sequence[str]) -> float:
        """To all who want it, where these sources answer it. Who would rather have it late does not hold up others."""
        worth = [urgency * ticket.wishes.favour(places) for ticket, urgency in self.tickets.items()]
        return sum([u for u in worth if u > 0.0]) or max(worth, default=0.0)

    def way(self, places: Sequence[str]) -> Way:
        return together([ticket.wishes.way(places) for ticket in self.tickets]) if self.tickets else OPEN


@dataclass(order=True, slots=True)
class Group:
    """Flights that stand together. Those that stand `apart` share their request with no others.

    A flight that has moved on is still listed, and belongs to another group.
    """

    rank: Rank
    flights: deque[Flight] = field(compare=False)
    lane: Lane = field(compare=False)
    apart: bool = field(default=False, compare=False)

    @property
    def urgency(self) -> float:
        return -self.rank[0]

    def holds(self, flight: Flight) -> bool:
        return flight.group is self


class Lane:
    def __init__(self, way: Way) -> None:
        self.way = way
        self.waiting = 0
        self._groups: list[Group] = []
        self._places = 0  # of flights, those that have moved on counted too

    def closed(self, places: Collection[str]) -> bool:
        """Whether nobody who waits here may be asked of any of these sources."""
        return bool(self.way.barred) and self.way.barred.issuperset(places)

    def stand(self, urgency: float, order: int, flights: deque[Flight], apart: bool) -> None:
        """Flights that stand nowhere stand here from now on."""
        group = Group((-urgency, order, True), flights, self, apart)
        for flight in flights:
            flight.group = group
        self.waiting += len(flights)
        self._places += len(flights)
        heapq.heappush(self._groups, group)
        if self._places > _STALE * self.waiting + _FEW:
            self._clear()

    def leave(self, flight: Flight) -> None:
        """Out of the line, or to another place in it."""
        flight.group = None
        self.waiting -= 1

    @property
    def head(self) -> Group | None:
        """Whose turn it is."""
        while self._groups:
            group = self._groups[0]
            while group.flights and not group.holds(group.flights[0]):
                group.flights.popleft()
                self._places -= 1
            if group.flights:
                return group
            heapq.heappop(self._groups)
        return None

    def packed(self, size: int) -> list[Flight]:
        """The next flights, as many as one request can carry. They leave."""
        packed: list[Flight] = []
        while len(packed) < size and (group := self.head) is not None:
            if packed and group.apart:
                break
            while group.flights and len(packed) < size:
                flight = group.flights.popleft()
                self._places -= 1
                if group.holds(flight):
                    self.leave(flight)
                    packed.append(flight)
            if group.apart:
                break
        return packed

    def _clear(self) -> None:
        for group in self._groups:
            group.flights = deque([flight for flight in group.flights if group.holds(flight)])
        self._groups = [group for group in self._groups if group.flights]
        heapq.heapify(self._groups)
        self._places = self.waiting
