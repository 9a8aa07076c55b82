"""Aliases in one given order, as a static plan would have it."""

from __future__ import annotations

from collections.abc import Sequence

from mediator.eddy.destinations import Destination, LookUp, Park, Probe
from mediator.eddy.policies.usual import Usual
from mediator.eddy.policy import Situation, Visit
from mediator.flow.batch import Signature


class Fixed(Usual):
    """Predicates as early as they can be, then SteMs by `order`. What a scan will bring is waited for."""

    def __init__(self, order: Sequence[int], kept: float = float("inf")) -> None:
        super().__init__(kept)
        self._rank = {alias: rank for rank, alias in enumerate(order)}

    def choose(self, signature: Signature, legal: Sequence[Destination], situation: Situation) -> Destination:
        return min(legal, key=self._place)

    def learn(self, visit: Visit) -> None:
        pass

    def _place(self, destination: Destination) -> tuple[int, int]:
        if isinstance(destination, Probe):
            return 1, self._rank[destination.alias]
        if isinstance(destination, LookUp):
            return 1, destination.provider
        return (0 if not isinstance(destination, Park) else -1), 0
