"""Benefit by cost (State modules, 2003): a batch goes where what comes back is worth most to the user for the time it
takes.

The benefit of a step is how many rows are expected to come back for each that goes, times what the user gives for them;
the cost is the time that takes. It is a policy for whoever watches the answers come in: what brings rows soon is done
first, also where thinning them out first would end sooner.

Rows of a relation that the user's preferences speak of are worth more: that of them which is preferred shows there.
What bounced off such a relation is looked up at once, even where a scan would bring the same rows by and by; what
bounced off another waits for the scan, as long as there is one to wait for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mediator.eddy.destinations import Destination, LookUp, Park, Probe
from mediator.eddy.policies.expectation import Expectation
from mediator.eddy.policies.usual import Usual
from mediator.eddy.policy import Situation, Visit
from mediator.flow.batch import Signature

_KEEP = 0.9  # what a visit's weight shrinks to with each later one
_TRIAL = 1_024  # rows that show what a destination is like
_LEAST = 0.5  # rows: what no row is counted as


@dataclass(slots=True)
class _Yield:
    """Rows and seconds of visits, the later ones weighing more."""

    pairs: float = 0.0  # of a row with each that it could meet; or just rows, where it met none
    rows_out: float = 0.0
    seconds: float = 0.0
    expected: float = 0.0  # seconds that such visits usually take

    def add(self, visit: Visit, expected: float) -> None:
        self.pairs = _KEEP * self.pairs + visit.rows_in * max(1, visit.visible)
        self.rows_out = _KEEP * self.rows_out + visit.rows_out
        self.seconds = _KEEP * self.seconds + visit.seconds
        self.expected = _KEEP * self.expected + expected

    def matches(self, visible: int) -> float:
        """Rows that come back for each that goes there now. None so far is less than one, but not nothing: what is
        worth nothing would never be tried again."""
        return max(self.rows_out, _LEAST) / self.pairs * visible


class Benefit(Usual):
    def __init__(self, kept: float = float("inf")) -> None:
        super().__init__(kept)
        self._of: dict[tuple[Signature, Destination], _Yield] = {}
        self._anywhere: dict[Destination, _Yield] = {}
        self._sent: dict[tuple[Signature, Destination], int] = {}  # how often, while nothing is known
        self._usual = Expectation()

    def choose(self, signature: Signature, legal: Sequence[Destination], situation: Situation) -> Destination:
        if signature.completing >= 0:
            return _completion(legal, situation)
        chosen = max(legal, key=lambda d: self._standing(signature, d, situation))
        if self._known(signature, chosen) is None:
            self._sent[signature, chosen] = self._sent.get((signature, chosen), 0) + 1
        return chosen

    def learn(self, visit: Visit) -> None:
        self._usual.add(visit.rows_in, visit.seconds)
        expected = self._usual.expected(visit.rows_in)
        self._of.setdefault((visit.signature, visit.destination), _Yield()).add(visit, expected)
        self._anywhere.setdefault(visit.destination, _Yield()).add(visit, expected)

    def sample(self, signature: Signature, destination: Destination) -> int:
        return 0 if self._known(signature, destination) else _TRIAL

    def why(
        self, signature: Signature, legal: Sequence[Destination], situation: Situation
    ) -> Mapping[Destination, Mapping[str, float]]:
        known = {d: past for d in legal if (past := self._known(signature, d))}
        return {
            d: {
                "fan-out": past.matches(_visible(d, situation)),
                "us a row": 1e6 * self._seconds(past),
                "worth": _worth(d, situation),
                "benefit by cost": self._ratio(d, situation, past),
            }
            for d, past in known.items()
        }

    def _known(self, signature: Signature, destination: Destination) -> _Yield | None:
        """What visits from this signature came to; failing that, those from any."""
        return self._of.get((signature, destination)) or self._anywhere.get(destination)

    def _standing(
        self, signature: Signature, destination: Destination, situation: Situation
    ) -> tuple[bool, float, int]:
        """The larger, the better: rows that are there before those that must be looked up; what was never tried
        first, in turns."""
        near = not (isinstance(destination, Probe) and destination.alias in situation.remote)
        past = self._known(signature, destination)
        if past is None:
            return near, float("inf"), -self._sent.get((signature, destination), 0)
        return near, self._ratio(destination, situation, past), 0

    def _ratio(self, destination: Destination, situation: Situation, past: _Yield) -> float:
        rows, seconds = past.matches(_visible(destination, situation)), self._seconds(past)
        # What a probe of a remote alias brings comes a call later.
        if isinstance(destination, Probe) and destination.alias in situation.remote:
            rows, seconds = situation.finds[destination.alias], seconds + situation.waits[destination.alias]
        return rows * _worth(destination, situation) / seconds

    def _seconds(self, past: _Yield) -> float:
        return self._usual.per_row(past.seconds, past.expected)


def _visible(destination: Destination, situation: Situation) -> int:
    """Rows that each may meet there; 1 where it meets none."""
    return situation.seen[destination.alias] if isinstance(destination, Probe) else 1


def _worth(destination: Destination, situation: Situation) -> float:
    """What a row that comes back from there is worth to the user; 1 where nothing is said."""
    if not situation.worth or not isinstance(destination, Probe | LookUp):
        return 1.0
    return situation.worth[destination.alias]


def _completion(legal: Sequence[Destination], situation: Situation) -> Destination:
    """To wait costs nothing; to ask is worth its call where somebody wants the rows now, or nobody else asks."""
    lookups = [d for d in legal if isinstance(d, LookUp)]
    waits = [d for d in legal if isinstance(d, Park)]
    preferred = [d for d in lookups if _worth(d, situation) > 1.0]
    if preferred or not waits:
        return min(preferred or lookups, key=lambda d: d.provider)
    return waits[0]
