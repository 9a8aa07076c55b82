"""Fares: what a trip costs the queries aboard. Each pays for every request, and for the time that it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mediator.access.limits.purse import Purse
from mediator.access.limits.stay import Stay
from mediator.access.ticket import Ticket
from mediator.errors import Cause, Spent

if TYPE_CHECKING:
    from mediator.access.trip import Trip


class Fares:
    """One per trip. Who may ask nothing more of one source, but of a mirror, rides along with those who pay; where
    nobody pays, `Spent` is raised, and the trip may be tried at a mirror."""

    def __init__(self, trip: Trip) -> None:
        self._trip = trip
        self._stays: dict[Stay, None] = {}

    @property
    def purses(self) -> dict[Purse, None]:
        """Of the queries aboard."""
        return dict.fromkeys(ticket.purse for ticket in self._trip.aboard())

    def affords(self, source: str) -> bool:
        """Whether every query aboard could pay for one more request to this source."""
        return all(purse.affords(source) for purse in self.purses)

    def check(self, source: str) -> None:
        """Raises `Spent` where it is known already that nobody aboard can ask anything more of this source."""
        aboard, refused = self.purses, self.refused(source)
        if refused and len(refused) == len(aboard):
            raise Spent(_why(refused, source), source)

    def pay(self, source: str) -> bool:
        """Charges one more request to every query aboard; whoever cannot pay is told, and leaves.

        Whether anybody is left.
        """
        aboard = self.purses
        unpaid = [purse for purse in aboard if not purse.pay(source)]
        paid = len(unpaid) < len(aboard)
        self.turn_out([purse for purse in unpaid if purse.empty is not None], source)
        if self._trip.over:
            return False
        if not paid:
            raise Spent(_why(unpaid, source), source)
        self.turn_out([purse for purse in unpaid if self.why_nowhere(purse)], source)
        return True

    def received(self, source: str, size: int) -> None:
        """A reply was read, for every query aboard."""
        for purse in self.purses:
            purse.received(source, size)

    @contextmanager
    def staying(self, source: str, stop: Callable[[str], None]) -> Iterator[None]:
        """Within, time passes at this source for every query aboard, and for those that join."""
        stay = Stay(self, source, stop)
        self._stays[stay] = None
        for purse in self.purses:
            purse.begin(stay)
        try:
            yield
        finally:
            del self._stays[stay]
            for purse in self.purses:
                purse.end(stay)

    def joined(self, ticket: Ticket) -> None:
        for stay in self._stays:
            ticket.purse.begin(stay)

    def left(self, ticket: Ticket) -> None:
        if self._stays and ticket.purse not in self.purses:
            for stay in self._stays:
                ticket.purse.end(stay)

    def out_of_time(self, stay: Stay) -> None:
        """Who may stay no longer leaves; when nobody else is aboard, the stay ends."""
        late = self.refused(stay.source)
        if len(late) == len(self.purses):
            stay.stop(_why(late, stay.source))
        else:
            self.turn_out([purse for purse in late if self.why_nowhere(purse)], stay.source)

    def refused(self, source: str) -> list[Purse]:
        """Queries aboard that can get nothing more from this source."""
        return [purse for purse in self.purses if purse.refuses((source,))]

    def why_nowhere(self, purse: Purse) -> Cause | None:
        """Why a query can get nothing more from any mirror."""
        return purse.refuses(self._trip.line.method.places)

    def turn_out(self, purses: Sequence[Purse], source: str) -> None:
        """These leave, and are told why they get nothing more from this source."""
        for purse in purses:
            cause = purse.refuses((source,))
            assert cause is not None
            for ticket in [t for t in self._trip.aboard() if t.purse is purse]:
                self._trip.turn_out(ticket, cause)


def _why(refused: Sequence[Purse], source: str) -> str:
    return next(cause.message for purse in refused if (cause := purse.refuses((source,))))
