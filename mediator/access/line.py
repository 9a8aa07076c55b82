"""Single-flight and packing: every binding of one way of asking that waits or is under way."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import count, islice
from typing import TYPE_CHECKING

from mediator.access.lane import Flight, Group, Lane
from mediator.access.method import Method
from mediator.access.mirrors.runner import Runner, Slot
from mediator.access.queue import Rank
from mediator.access.ticket import Ticket
from mediator.access.wishes import Way, Wishes, together
from mediator.catalog.model import BindSet
from mediator.catalog.wrapper import Binding
from mediator.errors import Cause

if TYPE_CHECKING:
    from mediator.access.trip import Trip

_FAIR = 8  # departures of which one is for a query that the most urgent lookups are not for, if there is one
_LOOKED_AT = 1_000  # flights that have waited longest, among which one of that query is looked for

# Sends flights off, in one request, to the mirror whose place has been taken.
Depart = Callable[["Line", Runner, Slot, list[Flight], Rank], None]


class Line:
    """Flights of one relation, method and bind set: joined while they wait or fly, packed when they leave.

    Who waits stands in a lane, of which there is one for each way in which queries want to be answered: mostly one.
    """

    def __init__(self, method: Method, bind_set: BindSet, order: count[int], depart: Depart) -> None:
        self.method = method
        self.bind_set = bind_set
        self.flights: dict[Binding, Flight] = {}
        self.waiting = 0
        self._lanes: dict[Way, Lane] = {}
        self._queries: dict[Wishes, None] = {}  # that have asked since nobody waited
        self._departures = 0
        self._order = order
        self._depart = depart

    def admit(self, ticket: Ticket, bindings: Sequence[Binding], urgency: float) -> list[Trip]:
        """The ticket now waits for these bindings. Returns the trips under way that it has joined."""
        if not self.waiting:
            self._queries.clear()
        self._queries[ticket.wishes] = None
        joined: dict[Trip, None] = {}
        queued: list[Flight] = []
        for binding in bindings:
            flight = self.flights.get(binding)
            if flight is None:
                flight = self.flights[binding] = Flight(binding)
                self.waiting += 1
            else:
                self.method.counts.joined += ticket not in flight.tickets
            flight.tickets[ticket] = urgency
            ticket.open[binding] = flight
            if flight.trip is None:
                queued.append(flight)
            else:
                flight.trip.join(ticket)
                joined[flight.trip] = None
        self._place(queued)
        return list(joined)

    def urge(self, ticket: Ticket, urgencies: Mapping[Binding, float]) -> None:
        """So urgent these are to the ticket from now on: those that wait change their places, and so do further pages
        of those under way."""
        moved: list[Flight] = []
        hurried: dict[Trip, None] = {}
        for binding, urgency in urgencies.items():
            flight = ticket.open.get(binding)
            if flight is not None:
                flight.tickets[ticket] = urgency
                if flight.trip is not None:
                    hurried[flight.trip] = None
                else:
                    moved.append(flight)
        self._place(moved)
        for trip in hurried:
            trip.hurry()

    def steered(self, ticket: Ticket) -> None:
        """The ticket's query wishes otherwise than before."""
        self._place([flight for flight in ticket.open.values() if flight.waits])
        for trip in {flight.trip: None for flight in ticket.open.values() if flight.trip is not None}:
            trip.stir()
            trip.hurry()

    def forget(self, wishes: Wishes) -> None:
        """A query has ended."""
        self._queries.pop(wishes, None)

    def forsake(self, ticket: Ticket, flight: Flight) -> None:
        """The ticket no longer wants it. When nobody does, it is not asked, or called back."""
        flight.tickets.pop(ticket, None)
        if flight.trip is not None:
            flight.trip.left(ticket)
        elif not flight.tickets:
            self._withdraw(flight)
            self.method.counts.cancelled += 1
        elif flight.waits:
            self._place([flight])

    def put_apart(self, flights: Sequence[Flight]) -> None:
        """Back in line, to be asked without the company that they were in."""
        for flight in flights:
            flight.trip = None
        self.waiting += len(flights)
        self._stand_apart(flights)

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
        """The most urgent one's: what it is worth to those who wait, for the time that it takes."""
        ranks = [head.rank for _, head in self._open()]
        if not ranks:
            return None
        urgency, order, waiting = min(ranks)
        return urgency / self.method.race.seconds, order, waiting

    def serve(self) -> bool:
        if (shut := self.method.race.shut) is not None:
            self.fail_waiting(Cause.of(shut))
            return True
        heads = sorted([head for _, head in self._open()], key=lambda head: head.rank)
        neglected = self._neglected(heads[0]) if heads else None
        if neglected is not None and self._go(neglected, heads[0].rank, alone=True):
            self._departures = 0
            return True
        return any(self._go(head.flights[0], head.rank) for head in heads)

    def ready_at(self) -> float:
        return self.method.race.ready_at()

    def _go(self, flight: Flight, rank: Rank, alone: bool = False) -> bool:
        """Sends it off, with those that stand behind it unless it goes alone, where a mirror can be asked that all of
        them let be asked. Whether it could go."""
        assert flight.group is not None
        lane, size = flight.group.lane, self.method.declared.batch_size
        barred = {*lane.way.barred, *self._unpaid(flight, lane)}
        runner = self.method.race.choose(-(-lane.waiting // size), barred, dict(lane.way.boosts))
        if runner is None:
            return False
        if alone:
            lane.leave(flight)
        packed = [flight] if alone else lane.packed(size)
        self.waiting -= len(packed)
        self._departures += 1
        self._depart(self, runner, runner.enter(), packed, rank)
        return True

    def _neglected(self, head: Group) -> Flight | None:
        """Now and then, one that has waited longer than others for a query that wants nothing of what is most urgent:
        however much some wait for, and however they would be asked, no other query waits for ever."""
        if len(self._queries) < 2:
            self._departures = 0
        if self._departures < _FAIR - 1:
            return None
        served = {ticket.wishes for ticket in head.flights[0].tickets}
        places = self.method.places
        for flight in islice(self.flights.values(), _LOOKED_AT):
            group = flight.group
            standing = group is not None and not group.apart and not group.lane.closed(places)
            if standing and not any(ticket.wishes in served for ticket in flight.tickets):
                return flight
        self._departures = 0
        return None

    def _open(self) -> list[tuple[Lane, Group]]:
        """The lanes that may go somewhere, and who is first in each."""
        places = self.method.places
        return [
            (lane, head)
            for lane in self._lanes.values()
            if not lane.closed(places) and (head := lane.head) is not None
        ]

    def _unpaid(self, flight: Flight, lane: Lane) -> Collection[str]:
        """Mirrors that nobody who wants it can pay for, where there is one that somebody can."""
        places = [place for place in self.method.places if place not in lane.way.barred]
        if len(places) == 1:
            return ()
        purses = {ticket.purse for ticket in flight.tickets}
        unpaid = {place for place in places if not any(purse.affords(place) for purse in purses)}
        return unpaid if len(unpaid) < len(set(places)) else ()

    def _place(self, flights: Iterable[Flight]) -> None:
        """Each stands where its urgency, and the way in which it is wanted, put it: behind its equals."""
        places = self.method.places
        moving: dict[tuple[Way, float], deque[Flight]] = {}
        for flight in flights:
            way, urgency, group = flight.way(places), flight.urgency(places), flight.group
            if group is not None and group.apart:
                self._stand_apart([other for other in group.flights if group.holds(other)])
            elif group is None or group.lane.way != way or group.urgency != urgency:
                if group is not None:
                    group.lane.leave(flight)
                moving.setdefault((way, urgency), deque()).append(flight)
        for (way, urgency), together_ in moving.items():
            self._lane(way).stand(urgency, next(self._order), together_, apart=False)

    def _stand_apart(self, flights: Sequence[Flight]) -> None:
        """As one company, as urgent as the most urgent one."""
        places = self.method.places
        way = together([flight.way(places) for flight in flights])
        urgency = max(flight.urgency(places) for flight in flights)
        for flight in flights:
            if (group := flight.group) is not None:
                if group.lane.way == way and group.urgency == urgency:
                    return  # as they stand already
                group.lane.leave(flight)
        self._lane(way).stand(urgency, next(self._order), deque(flights), apart=True)

    def _lane(self, way: Way) -> Lane:
        """Those that nobody stands in any more are given up."""
        if way not in self._lanes:
            self._lanes = {w: lane for w, lane in self._lanes.items() if lane.waiting}
            self._lanes[way] = Lane(way)
        return self._lanes[way]

    def _withdraw(self, flight: Flight) -> None:
        if flight.group is not None:
            flight.group.lane.leave(flight)
        self.waiting -= 1
        del self.flights[flight.binding]
