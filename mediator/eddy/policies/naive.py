"""Back-pressure (Eddies, 2000): whoever has been kept busy least by such batches takes the next one.

The paper's queues are of a fixed size: a slow module's is full more often, and a cheap one takes more rows in the same
time. Here the seconds that a module has worked on batches of a signature stand for its queue. So rows are shared out in
inverse proportion to what a row costs, and how many come back plays no part: it follows cost, and is blind to
selectivity. Steps that a batch had no choice about count for nothing. Where rows are looked up, the wait for that is
counted as work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mediator.eddy.destinations import Destination
from mediator.eddy.policies.tickets import waited
from mediator.eddy.policies.usual import Usual
from mediator.eddy.policy import Situation, Visit
from mediator.flow.batch import Signature

_Busy = tuple[float, int]  # seconds; and rows, which tell destinations apart that cost nothing
_IDLE: _Busy = 0.0, 0


class Naive(Usual):
    def __init__(self, kept: float = float("inf")) -> None:
        super().__init__(kept)
        self._busy: dict[tuple[Signature, Destination], _Busy] = {}

    def choose(self, signature: Signature, legal: Sequence[Destination], situation: Situation) -> Destination:
        return min(legal, key=lambda d: self._queue(signature, d, situation))

    def why(
        self, signature: Signature, legal: Sequence[Destination], situation: Situation
    ) -> Mapping[Destination, Mapping[str, float]]:
        return {d: {"seconds busy": self._queue(signature, d, situation)[0]} for d in legal}

    def learn(self, visit: Visit) -> None:
        seconds, rows = self._of(visit.signature, visit.destination)
        self._busy[visit.signature, visit.destination] = seconds + visit.seconds, rows + visit.rows_in

    def _queue(self, signature: Signature, destination: Destination, situation: Situation) -> _Busy:
        """With what its rows have to wait for lookups there, at the rate at which these are answered now."""
        seconds, rows = self._of(signature, destination)
        return seconds + rows * waited(destination, situation), rows

    def _of(self, signature: Signature, destination: Destination) -> _Busy:
        return self._busy.get((signature, destination), _IDLE)
