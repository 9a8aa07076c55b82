"""Back-pressure (Eddies, 2000): whoever has had least work so far takes the next batch.

The paper's queues are of a fixed size, so that a slow module's is full more often. Here the seconds that a module has
been busy stand for its queue: a cheap one gets more batches. It follows cost, and is blind to selectivity.
"""

from __future__ import annotations

from collections.abc import Sequence

from mediator.eddy.destinations import Destination
from mediator.eddy.policies.usual import Usual
from mediator.eddy.policy import Visit
from mediator.flow.batch import Signature


class Naive(Usual):
    def __init__(self, kept: float = float("inf")) -> None:
        super().__init__(kept)
        self._busy: dict[Destination, float] = {}

    def choose(self, signature: Signature, legal: Sequence[Destination]) -> Destination:
        return min(legal, key=lambda d: self._busy.get(d, 0.0))

    def learn(self, visit: Visit) -> None:
        self._busy[visit.destination] = self._busy.get(visit.destination, 0.0) + visit.seconds
