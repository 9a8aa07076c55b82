"""A trip: the flights that one request carries, the rows it has brought so far, and who waits for them."""

from __future__ import annotations

from asyncio import CancelledError, Event, Task
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from itertools import count

from mediator.access.lane import Flight
from mediator.access.limits.fares import Fares
from mediator.access.line import Line
from mediator.access.queue import Rank
from mediator.access.ticket import Ticket
from mediator.access.wishes import HEDGINGS, Hedging
from mediator.catalog.wrapper import Binding
from mediator.errors import Cause, Spent
from mediator.flow.events import Landing

_NUMBERS = count(1)


class Trip:
    """Delivers each landing once to every ticket aboard, and ends once.

    Rows of a packed request are not told apart by binding, so each ticket aboard gets all of them: they are
    rows of the relation whoever asked.
    """

    def __init__(self, line: Line, flights: list[Flight], rank: Rank, at: float) -> None:
        self.line = line
        self.rank = (*rank[:2], False)  # having begun, its requests go before those of its equals
        self.at = at  # when it was asked, for freshness
        self.until = float("inf")  # as long as the site vouches for all that it brought
        self.kept = True  # whether what it brings may be written to the disk
        self.over = False
        self._held: Counter[str] = Counter()  # pages that wait until this source may be asked
        self._stirred = Event()
        self.task: Task[None] | None = None
        self.bindings = tuple(flight.binding for flight in flights)
        self.landings: list[Landing] = []
        self.number = next(_NUMBERS)
        self._begun = 0  # landings before that which answers it
        self._flights = flights
        self.fares = Fares(self)
        self._seen: dict[Ticket, int] = {}  # how many of the landings each ticket has had
        for flight in flights:
            flight.trip = self
            for ticket in flight.tickets:
                self._seen[ticket] = 0
        line.method.counts.asked += len(flights)

    def join(self, ticket: Ticket) -> None:
        """One more waits for it. What has landed already is delivered by `catch_up`."""
        self._seen.setdefault(ticket, 0)
        self.fares.joined(ticket)
        self.stir()

    def hurry(self) -> None:
        """Its flights are more urgent than they were, or less: its further pages go accordingly."""
        urgency = max(flight.urgency(self.line.method.places) for flight in self._flights)
        self.rank = (-urgency, *self.rank[1:])
        for runner in self.line.method.race.runners:
            runner.hurry(self)

    def barred(self, source: str) -> bool:
        """Whether everybody aboard leaves this source alone for now."""
        return bool(self._seen) and all(source in ticket.wishes.paused for ticket in self._seen)

    @property
    def hedging(self) -> Hedging:
        """As eagerly as the most eager of those aboard would have it."""
        return max((ticket.wishes.hedging for ticket in self._seen), key=HEDGINGS.index, default="none")

    @property
    def held(self) -> list[str]:
        """The sources for which it waits, as nothing of it can be asked elsewhere."""
        return [source for source, pages in self._held.items() if pages]

    async def cleared(self, sources: Collection[str]) -> None:
        """Waits until somebody aboard lets it ask one of these sources."""
        self._held.update(sources)
        try:
            while all(self.barred(source) for source in sources):
                if self.over:
                    raise CancelledError  # as its task was, which Python 3.11's task groups may forget
                self._stirred.clear()
                await self._stirred.wait()
        finally:
            self._held.subtract(sources)

    def stir(self) -> None:
        """Somebody aboard wishes otherwise than before, has just come, or has left."""
        self._stirred.set()
        for runner in self.line.method.race.runners:
            if self.barred(runner.mirror.source):
                runner.turn_away(self)

    def aboard(self) -> Iterable[Ticket]:
        """Who waits for it."""
        return self._seen

    def left(self, ticket: Ticket) -> None:
        """A ticket has forsaken one of the flights. When nobody is left, the trip is called back."""
        if not any(ticket in flight.tickets for flight in self._flights):
            self._seen.pop(ticket, None)
            self.fares.left(ticket)
            self.stir()
        if not self._seen and not self.over:
            self.line.method.counts.cancelled += len(self._flights)
            self.call_back()

    def turn_out(self, ticket: Ticket, cause: Cause) -> None:
        """A ticket has to leave: it is told why."""
        self.catch_up(ticket)
        unpaid = [flight for flight in self._flights if ticket in flight.tickets]
        for flight in unpaid:
            del flight.tickets[ticket]
        ticket.failed([flight.binding for flight in unpaid], cause)
        self.left(ticket)

    def call_back(self) -> None:
        """Silently over, at once."""
        self._finish()
        if self.task is not None:
            self.task.cancel()

    def vouched(self, until: float, kept: bool) -> None:
        """A reply was read which its site vouches for until then. The first that may not be kept speaks for the rest:
        what comes of them all is one lookup, and it must be stale from the start where its rows are not stored."""
        self.until = min(self.until, until if kept else self.at)
        self.kept &= kept

    def asked_at(self, at: float) -> None:
        """Some of what comes was asked for then already: it is no fresher than that."""
        self.at = min(self.at, at)

    def begin(self) -> None:
        """From now on come all the rows there are. What landed before came of a mirror that did not bring them all: it
        may be of an earlier state of the site, so nothing is answered by it but the queries that have it already."""
        self._begun = len(self.landings)

    def land(self, landing: Landing) -> None:
        """Rows have come: everybody aboard gets them now."""
        if self.over:
            return
        landing.kept &= self.kept
        landing.lookup = self.number
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
        self.line.method.counts.answered += self._end(
            lambda t, bindings: t.exhausted(bindings, self.at, self.until, self.landings[self._begun :])
        )

    def fail(self, cause: Cause) -> None:
        """It ends without all the rows; those that landed stay."""

        def own(ticket: Ticket) -> Cause:
            return (cause.kind == Spent.kind and self.fares.why_nowhere(ticket.purse)) or cause

        self.line.method.counts.failed += self._end(lambda t, bindings: t.failed(bindings, own(t)))

    def unload(self, source: str) -> bool:
        """Sends the flights back for those who joined when it was clear that the others can pay no more.

        Only where nothing has landed yet. Whether it did.
        """
        refused = self.fares.refused(source)
        if self.landings or self.over or not 0 < len(refused) < len(self.fares.purses):
            return False
        self.fares.turn_out(refused, source)
        return self._put_back(1)

    def split(self) -> bool:
        """Sends the flights back in two halves, as one of them may have spoilt it for the others.

        Only where nothing has landed yet. Whether it did.
        """
        if self.landings or len(self._flights) < 2 or self.over:
            return False
        return self._put_back(2)

    def _put_back(self, parts: int) -> bool:
        self.over = True
        self.line.method.counts.asked -= len(self._flights)
        wanted = [f for f in self._flights if f.tickets]
        for flight in self._flights:
            if not flight.tickets:
                del self.line.flights[flight.binding]
                self.line.method.counts.cancelled += 1
        size = max(1, -(-len(wanted) // parts))
        for start in range(0, len(wanted), size):
            self.line.put_apart(wanted[start : start + size])
        return True

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
