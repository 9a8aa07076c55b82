"""One query's door to access."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Mapping

from mediator.access.limits.purse import Purse
from mediator.access.line import Line
from mediator.access.ticket import Deliver, Ticket
from mediator.access.trip import Trip
from mediator.access.wishes import Hedging, Wishes
from mediator.catalog.ceilings import Ceilings
from mediator.flow.events import Ask, Cancel, Event, Exhausted, Failed, Urge

FindLine = Callable[[Ask], Line]
# A ticket has been admitted to a line, and has joined these trips on the way.
Admitted = Callable[[Line, Ticket, list[Trip]], None]


class Visit:
    """Asks and cancels for one query. Numbers of asks are the query's own: two visits may use the same.

    Events are delivered in order, from the loop, never from inside a call to the visit. `deliver` must not
    raise.
    """

    def __init__(
        self,
        deliver: Deliver,
        ceilings: Ceilings,
        at: Mapping[str, Ceilings],
        find_line: FindLine,
        admitted: Admitted,
        moved: Callable[[Line], None],
        left: Callable[[Visit], None],
    ) -> None:
        self._deliver: Deliver | None = deliver
        self._purse = Purse(ceilings, self._spent, at)
        self._find_line = find_line
        self._admitted = admitted
        self._moved = moved
        self._wishes = Wishes()
        self._left = left
        self._tickets: dict[int, tuple[Line, Ticket]] = {}
        self._lines: dict[Line, None] = {}  # that know its wishes

    def ask(self, ask: Ask) -> None:
        """Each binding is answered by any number of `Arrived`, and ends once: in `Exhausted` or in `Failed`.

        Raises `ValueError` for a number that is still open. Does nothing once the visit is closed.
        """
        if self._deliver is None:
            return
        if ask.number in self._tickets:
            raise ValueError(f"ask {ask.number} is still open")
        line = self._find_line(ask)
        if self._purse.refuses(line.method.places):
            asyncio.get_running_loop().call_soon(self._give_up_waiting)
        self._lines[line] = None
        ticket = Ticket(ask.number, self._hand_over, self._purse, self._wishes)
        self._tickets[ask.number] = line, ticket
        self._admitted(line, ticket, line.admit(ticket, tuple(dict.fromkeys(ask.bindings)), ask.urgency))

    def urge(self, urge: Urge) -> None:
        """These bindings go sooner, or later, as far as they still wait."""
        if urge.ask in self._tickets:
            line, ticket = self._tickets[urge.ask]
            line.urge(ticket, urge.urgencies)

    def steer(self, paused: Collection[str], boosts: Mapping[str, float]) -> None:
        """From now on this query leaves some sources alone, and favours others. What is under way comes; what waits,
        and what others want as well, is asked where they let it be asked."""
        if not self._wishes.steer(paused, boosts):
            return
        for line, ticket in tuple(self._tickets.values()):
            line.steered(ticket)
            self._moved(line)

    def hedge(self, hedging: Hedging) -> None:
        """How eagerly mirrors are sent after others that are late, from now on."""
        self._wishes.hedging = hedging

    def paused(self) -> dict[str, int]:
        """How many bindings wait for sources that this query has paused, and for no others; by source."""
        found: Counter[str] = Counter()
        for line, ticket in self._tickets.values():
            places = dict.fromkeys(line.method.places)
            if self._wishes.paused.isdisjoint(places):
                continue
            for_all = list(places) if self._wishes.paused.issuperset(places) else []
            for flight in ticket.open.values():
                found.update(for_all if flight.waits else flight.trip.held if flight.trip is not None else ())
        return dict(found)

    @property
    def spent(self) -> tuple[int, int]:
        """Requests, and bytes of replies."""
        return self._purse.calls, self._purse.bytes

    @property
    def left(self) -> dict[str, Ceilings]:
        """What may still be spent at the sources that there are ceilings for."""
        return self._purse.left()

    def cancel(self, cancel: Cancel) -> None:
        """Silence for these bindings, from now on. What nobody else wants is called back at once."""
        if cancel.ask not in self._tickets:
            return
        line, ticket = self._tickets[cancel.ask]
        for binding in cancel.bindings or tuple(ticket.open):
            flight = ticket.open.pop(binding, None)
            if flight is not None:
                line.forsake(ticket, flight)
        self._tidy(cancel.ask)

    def close(self) -> None:
        """The query is over: nothing more is delivered, and all that only it wanted is called back."""
        self._deliver = None
        self._purse.drop()
        for number in tuple(self._tickets):
            self.cancel(Cancel(number))
        for line in self._lines:
            line.forget(self._wishes)
        self._left(self)

    def _spent(self) -> None:
        """What is under way is paid for, and comes; what still waits is not asked."""
        asyncio.get_running_loop().call_soon(self._give_up_waiting)

    def _give_up_waiting(self) -> None:
        for line, ticket in tuple(self._tickets.values()):
            refusal = self._purse.refuses(line.method.places)
            if refusal is None:
                continue
            waiting = [binding for binding, flight in ticket.open.items() if flight.waits]
            for binding in waiting:
                line.forsake(ticket, ticket.open[binding])
            ticket.failed(waiting, refusal)

    def _hand_over(self, event: Event) -> None:
        if self._deliver is None:
            return
        if isinstance(event, Exhausted | Failed):
            self._tidy(event.ask)
        self._deliver(event)

    def _tidy(self, number: int) -> None:
        if not self._tickets[number][1].open:
            del self._tickets[number]
