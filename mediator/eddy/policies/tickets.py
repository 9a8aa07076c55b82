"""What destinations have earned at the lottery, and how a draw among them comes out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from mediator.eddy.destinations import Destination, Probe
from mediator.eddy.policy import Situation, Visit

_LEAST = 0.01  # of the odds, which the poorest destination keeps: nobody is forgotten
_INSTANT = 1e-9  # seconds a row, below which none is told apart from another


@dataclass(slots=True)
class Account:
    """A ticket for each row that a destination took, one back for each row that it returned; and what it took."""

    rows_in: int = 0
    rows_out: int = 0
    seconds: float = 0.0

    def add(self, visit: Visit) -> None:
        self.rows_in += visit.rows_in
        self.rows_out += visit.rows_out
        self.seconds += visit.seconds

    @property
    def tickets(self) -> int:
        """Negative where more rows came back than went there."""
        return self.rows_in - self.rows_out

    def per_row(self, wait: float = 0.0) -> float | None:
        """Seconds that a row took, and waits for what it looks up; none where it took none."""
        return max(_INSTANT, self.seconds / self.rows_in + wait) if self.rows_in else None


Accounts = Mapping[Destination, Account]


def waited(destination: Destination, situation: Situation) -> float:
    """Seconds that a lookup takes which a row is held up by there: it stands in the queue for as long."""
    if isinstance(destination, Probe) and destination.alias < len(situation.waits):
        return situation.waits[destination.alias]
    return 0.0


def odds(legal: Sequence[Destination], accounts: Accounts, situation: Situation) -> list[float]:
    """How likely each is to be drawn, in all 1 or a little more.

    In proportion to its tickets, and to how fast it is: the paper's queues are of a fixed size, and one that is worked
    off slowly is seldom free to take part in a draw. Where one has given back more than it took, all are counted from
    the poorest. One that was never tried counts as much as the others do on average.
    """
    known = {d: accounts[d] for d in legal if d in accounts}
    if not known:
        return [1.0 / len(legal)] * len(legal)
    poorest = min(0, *(account.tickets for account in known.values()))
    takes = {d: seconds for d, a in known.items() if (seconds := a.per_row(waited(d, situation)))}
    fastest = min(takes.values(), default=_INSTANT)
    weights = {d: (a.tickets - poorest) * fastest / takes.get(d, fastest) for d, a in known.items()}
    usual = sum(weights.values()) / len(weights)
    whole = sum(weights.get(d, usual) for d in legal)
    if not whole:
        return [1.0 / len(legal)] * len(legal)
    return [max(_LEAST, weights.get(d, usual) / whole) for d in legal]


def drawn(
    random: Random, legal: Sequence[Destination], accounts: Accounts, situation: Situation
) -> Destination:
    """One of them, by lot."""
    return random.choices(legal, odds(legal, accounts, situation))[0]


def told(
    legal: Sequence[Destination], accounts: Accounts, situation: Situation
) -> dict[Destination, dict[str, float]]:
    """The figures of a draw, for people."""
    return {
        d: {
            "tickets": float(accounts[d].tickets),
            "us a row": 1e6 * (accounts[d].per_row(waited(d, situation)) or 0.0),
            "odds": share,
        }
        for d, share in zip(legal, odds(legal, accounts, situation), strict=True)
        if d in accounts
    }
