"""Single-flight and packing: every binding of one way of asking that waits or is under way."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING

from mediator.access.method import Method
from mediator.access.mirrors.runner import Runner, Slot
from mediator.access.queue import Rank
from mediator.access.ticket import Ticket
from mediator.catalog.model import BindSet
from mediator.catalog.wrapper import Binding
from mediator.errors import Cause

if TYPE_CHECKING:
    from mediator.access.trip import Trip


class Flight:
    """A binding that somebody wants and that is asked only once, however many want it."""

    __slots__ = ("binding", "tickets", "trip", "waits")

    def __init__(self, binding: Binding) -> None:
        self.binding = binding
        self.tickets: dict[Ticket, None] = {}
        self.trip: Trip | None = None  # the requests that carry it, once it has left the line
        self.waits = True


@dataclass(order=True, slots=True)
class _Group:
    """Flights that came together. Those that stand `apart` share their request with no others."""

    rank: Rank
    flights: deque[Flight] = field(compare=False)
    apart: bool = field(default=False, compare=False)


# Sends flights off, in one request, to the mirror whose place has been taken.
Depart = Callable[["Line", Runner, Slot, list[Flight], Rank], None]


class Line:
    """Flights of one relation, method and bind set: joined while they wait or fly, packed when they leave."""

    def __init__(self, method: Method, bind_set: BindSet, order: count[int], depart: Depart) -> None:
        self.method = method
        self.bind_set = bind_set
        self.flights: dict[Binding, Flight] = {}
        self.waiting = 0
        self._groups: list[_Group] = []
        self._order = order
        self._depart = depart

    def admit(self, ticket: Ticket, bindings: Sequence[Binding], urgency: float) -> list[Trip]:
        """The ticket now waits for these bindings. Returns the trips under way that it has joined."""
        joined: dict[Trip, None] = {}
        queued: deque[Flight] = deque()
        for binding in bindings:
            flight = self.flights.get(binding)
            if flight is None:
                flight = self.flights[binding] = Flight(binding)
                self.waiting += 1
            else:
                self.method.counts.joined += ticket not in flight.tickets
            flight.tickets[ticket] = None
            ticket.open[binding] = flight
            if flight.trip is None:
                queued.append(flight)
            else:
                flight.trip.join(ticket)
                joined[flight.trip] = None
        if queued:
            # Those that waited already stand in line twice, at the better of their ranks: the first one
            # counts.
            heapq.heappush(self._groups, _Group((-urgency, next(self._order), True), queued))
        return list(joined)

    def forsake(self, ticket: Ticket, flight: Flight) -> None:
        """The ticket no longer wants it. When nobody does, it is not asked, or called back."""
        flight.tickets.pop(ticket, None)
        if flight.trip is not None:
            flight.trip.left(ticket)
        elif not flight.tickets:
            self._withdraw(flight)
            self.method.counts.cancelled += 1

    def put_apart(self, flights: Sequence[Flight], rank: Rank) -> None:
        """Back in line, to be asked without the company that they were in."""
        for flight in flights:
            flight.trip, flight.waits = None, True
        self.waiting += len(flights)
        heapq.heappush(self._groups, _Group((rank[0], next(self._order), True), deque(flights), apart=True))

    def fail_waiting(self, cause: Cause) -> None:
        """No mirror answers: whoever waits for one is told so."""
        told: dict[Ticket, list[Binding]] = {}
        for flight in [f for f in self.flights.values() if f.waits]:
            self._withdraw(flight)
            self.method.counts.failed += 1
            for ticket in flight.tickets:
                told.setdefault(ticket, []).append(flight.binding)
        for ticket, bindings in told.items():
            ticket.failed(bindings, cause)

    def rank(self) -> Rank | None:
        while self._groups and not _pruned(self._groups[0].flights):
            heapq.heappop(self._groups)
        return self._groups[0].rank if self._groups else None

    def serve(self) -> bool:
        size = self.method.declared.batch_size
        rank = self.rank()
        if (spent := self.method.race.spent) is not None:
            self.fail_waiting(Cause.of(spent))
            return True
        runner = self.method.race.choose(-(-self.waiting // size), self._unpaid())
        if runner is None or rank is None:
            return False
        self._depart(self, runner, runner.enter(), self._packed(size), rank)
        return True

    def ready_at(self) -> float:
        return self.method.race.ready_at()

    def _unpaid(self) -> Collection[str]:
        """Mirrors that nobody who wants the first in line can pay for, where there is one that somebody can."""
        places = self.method.places
        if len(places) == 1 or self.rank() is None:
            return ()
        purses = {ticket.purse for ticket in self._groups[0].flights[0].tickets}
        unpaid = {place for place in places if not any(purse.affords(place) for purse in purses)}
        return unpaid if len(unpaid) < len(set(places)) else ()

    def _packed(self, size: int) -> list[Flight]:
        """The next flights in line, as many as one request can carry."""
        packed: list[Flight] = []
        while len(packed) < size and self.rank() is not None:
            group = self._groups[0]
            if packed and group.apart:
                break
            while group.flights and len(packed) < size:
                flight = group.flights.popleft()
                if flight.waits:
                    flight.waits = False
                    packed.append(flight)
            if group.apart:
                break
        self.waiting -= len(packed)
        return packed

    def _withdraw(self, flight: Flight) -> None:
        flight.waits = False
        self.waiting -= 1
        del self.flights[flight.binding]


def _pruned(flights: deque[Flight]) -> bool:
    """Whether anybody in the group still waits; those at its head that do not are dropped."""
    while flights and not flights[0].waits:
        flights.popleft()
    return bool(flights)
