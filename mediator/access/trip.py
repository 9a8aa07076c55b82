"""A trip: the flights that one request carries, the rows it has brought so far, and who waits for them."""

from __future__ import annotations

from asyncio import Task
from collections.abc import Callable

from mediator.access.line import Flight, Line
from mediator.access.queue import Rank
from mediator.access.ticket import Ticket
from mediator.catalog.wrapper import Binding
from mediator.errors import Cause
from mediator.flow.events import Landing


class Trip:
    """Delivers each landing once to every ticket aboard, and ends once.

    Rows of a packed request are not told apart by binding, so each ticket aboard gets all of them: they are
    rows of the relation whoever asked.
    """

    def __init__(self, line: Line, flights: list[Flight], rank: Rank, at: float) -> None:
        self.line = line
        self.rank = (*rank[:2], False)  # having begun, its requests go before those of its equals
        self.at = at  # when it was asked, for freshness
        self.over = False
        self.task: Task[None] | None = None
        self.bindings = tuple(flight.binding for flight in flights)
        self.landings: list[Landing] = []
        self._flights = flights
        self._seen: dict[Ticket, int] = {}  # how many of the landings each ticket has had
        for flight in flights:
            flight.trip = self
            for ticket in flight.tickets:
                self._seen[ticket] = 0
        line.method.counts.asked += len(flights)

    def join(self, ticket: Ticket) -> None:
        """One more waits for it. What has landed already is delivered by `catch_up`."""
        self._seen.setdefault(ticket, 0)

    def left(self, ticket: Ticket) -> None:
        """A ticket has forsaken one of the flights. When nobody is left, the trip is called back."""
        if not any(ticket in flight.tickets for flight in self._flights):
            self._seen.pop(ticket, None)
        if not self._seen and not self.over:
            self.line.method.counts.cancelled += len(self._flights)
            self.call_back()

    def call_back(self) -> None:
        """Silently over, at once."""
        self._finish()
        if self.task is not None:
            self.task.cancel()

    @property
    def affords(self) -> bool:
        """Whether every query aboard could pay for one more request."""
        return all(ticket.purse.affords for ticket in self._seen)

    def pay(self) -> bool:
        """Charges one more request to every query aboard; whoever cannot pay is told, and leaves.

        Whether anybody is left.
        """
        for purse in dict.fromkeys(ticket.purse for ticket in self._seen):
            if not purse.pay():
                for ticket in [t for t in self._seen if t.purse is purse]:
                    self._turn_out(ticket)
        return not self.over

    def received(self, size: int) -> None:
        """A reply was read, for every query aboard."""
        for purse in dict.fromkeys(ticket.purse for ticket in self._seen):
            purse.received(size)

    def land(self, landing: Landing) -> None:
        """Rows have come: everybody aboard gets them now."""
        if self.over:
            return
        self.landings.append(landing)
        for ticket in list(self._seen):
            self.catch_up(ticket)

    def catch_up(self, ticket: Ticket) -> None:
        """Delivers what this ticket has not had, in the order of landing, as long as it is aboard."""
        while (seen := self._seen.get(ticket, len(self.landings))) < len(self.landings):
            self._seen[ticket] = seen + 1
            ticket.arrived(self.landings[seen])

    def exhaust(self) -> None:
        """Every row has landed."""
        self.line.method.counts.answered += self._end(lambda t, bindings: t.exhausted(bindings, self.at))

    def fail(self, cause: Cause) -> None:
        """It ends without all the rows; those that landed stay."""
        self.line.method.counts.failed += self._end(lambda t, bindings: t.failed(bindings, cause))

    def split(self) -> bool:
        """Sends the flights back in two halves, as one of them may have spoilt it for the others.

        Only where nothing has landed yet. Whether it did.
        """
        if self.landings or len(self._flights) < 2 or self.over:
            return False
        self.over = True
        self.line.method.counts.asked -= len(self._flights)
        wanted = [f for f in self._flights if f.tickets]
        for flight in self._flights:
            if not flight.tickets:
                del self.line.flights[flight.binding]
                self.line.method.counts.cancelled += 1
        middle = (len(wanted) + 1) // 2
        for half in (wanted[:middle], wanted[middle:]):
            if half:
                self.line.put_apart(half, self.rank)
        return True

    def _turn_out(self, ticket: Ticket) -> None:
        self.catch_up(ticket)
        unpaid = [flight for flight in self._flights if ticket in flight.tickets]
        for flight in unpaid:
            del flight.tickets[ticket]
        assert ticket.purse.empty is not None
        ticket.failed([flight.binding for flight in unpaid], ticket.purse.empty)
        self.left(ticket)

    def _end(self, tell: Callable[[Ticket, list[Binding]], None]) -> int:
        """Tells every ticket aboard how its flights ended. Returns how many did, 0 when it was over."""
        if not self._finish():
            return 0
        owed: dict[Ticket, list[Binding]] = {}
        for flight in self._flights:
            for ticket in flight.tickets:
                owed.setdefault(ticket, []).append(flight.binding)
        for ticket, bindings in owed.items():
            self.catch_up(ticket)
            tell(ticket, bindings)
        return len(self._flights)

    def _finish(self) -> bool:
        """From now on these bindings are asked anew. False when that was so already."""
        if self.over:
            return False
        self.over = True
        for flight in self._flights:
            del self.line.flights[flight.binding]
        return True
