"""Rank ordering (Overheads of eddies, 2004): least (fan-out - 1) / cost first, both measured per signature.

A probe that thins its batch out cheaply comes early; one that multiplies it comes late. A destination that was never
tried from a signature is judged by what visits from others came to; one that was never tried at all is tried with a
few rows before the batch goes anywhere, and those without a result yet are gone to in turns. Old visits weigh less than
new ones.

SteMs whose rows must be looked up at a site come after those whose rows arrive by themselves: a row that the others
rule out is then never asked for, and a call costs more than any probe.
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


@dataclass(slots=True)
class _Past:
    """Rows and seconds of the visits of one signature to one destination, the later ones weighing more."""

    tries: int = 0
    rows_in: float = 0.0
    rows_out: float = 0.0
    seconds: float = 0.0
    expected: float = 0.0  # seconds that such visits usually take

    def add(self, visit: Visit, expected: float) -> None:
        self.rows_in = _KEEP * self.rows_in + visit.rows_in
        self.rows_out = _KEEP * self.rows_out + visit.rows_out
        self.seconds = _KEEP * self.seconds + visit.seconds
        self.expected = _KEEP * self.expected + expected


class Rank(Usual):
    def __init__(self, kept: float = float("inf")) -> None:
        super().__init__(kept)
        self._past: dict[tuple[Signature, Destination], _Past] = {}
        self._anywhere: dict[Destination, _Past] = {}
        self._usual = Expectation()

    def choose(self, signature: Signature, legal: Sequence[Destination], situation: Situation) -> Destination:
        if signature.completing >= 0:
            return completion(legal)
        chosen = min(legal, key=lambda d: self._rank(signature, d, situation))
        self._of(signature, chosen).tries += 1
        return chosen

    def learn(self, visit: Visit) -> None:
        if isinstance(visit.destination, Probe):
            self._usual.add(visit.rows_in, visit.seconds)
        expected = self._usual.expected(visit.rows_in)
        self._of(visit.signature, visit.destination).add(visit, expected)
        past = self._anywhere.get(visit.destination)
        if past is None:
            past = self._anywhere[visit.destination] = _Past()
        past.add(visit, expected)

    def sample(self, signature: Signature, destination: Destination) -> int:
        return 0 if self._known(signature, destination) else _TRIAL

    def why(
        self, signature: Signature, legal: Sequence[Destination], situation: Situation
    ) -> Mapping[Destination, Mapping[str, float]]:
        known = {d: past for d in legal if (past := self._known(signature, d))}
        return {
            d: {
                "fan-out": past.rows_out / past.rows_in,
                "us a row": 1e6 * self._usual.per_row(past.seconds, past.expected),
                "rank": self._rank(signature, d, situation)[1],
            }
            for d, past in known.items()
        }

    def _of(self, signature: Signature, destination: Destination) -> _Past:
        past = self._past.get((signature, destination))
        if past is None:
            past = self._past[signature, destination] = _Past()
        return past

    def _known(self, signature: Signature, destination: Destination) -> _Past | None:
        """What visits from this signature came to; failing that, those from any."""
        past = self._past.get((signature, destination))
        return past if past and past.rows_in else self._anywhere.get(destination)

    def _rank(
        self, signature: Signature, destination: Destination, situation: Situation
    ) -> tuple[bool, float, int]:
        past = self._known(signature, destination)
        far = isinstance(destination, Probe) and destination.alias in situation.remote
        if past is None:
            tried = self._past.get((signature, destination))
            return far, float("-inf"), tried.tries if tried else 0
        cost = self._usual.per_row(past.seconds, past.expected)
        return far, (past.rows_out / past.rows_in - 1.0) / cost, 0


def completion(legal: Sequence[Destination]) -> Destination:
    """Ask rather than wait: a lookup that a scan overtakes is cancelled."""
    lookups = [d for d in legal if isinstance(d, LookUp)]
    return (
        min(lookups, key=lambda d: d.provider) if lookups else next(d for d in legal if isinstance(d, Park))
    )
