"""Lottery (Eddies, 2000): a ticket for each row taken, one back for each row returned; the next is drawn by tickets."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from mediator.eddy.destinations import Destination
from mediator.eddy.policies.usual import Usual
from mediator.eddy.policy import Visit
from mediator.flow.batch import Signature


class Lottery(Usual):
    """Every destination keeps at least one ticket, so that none is forgotten."""

    def __init__(self, random: Random, kept: float = float("inf")) -> None:
        super().__init__(kept)
        self._random = random
        self._tickets: dict[Destination, float] = {}

    def choose(self, signature: Signature, legal: Sequence[Destination]) -> Destination:
        weights = [max(1.0, self._tickets.get(d, 1.0)) for d in legal]
        return self._random.choices(legal, weights)[0]

    def learn(self, visit: Visit) -> None:
        before = self._tickets.get(visit.destination, 1.0)
        self._tickets[visit.destination] = max(1.0, before + visit.rows_in - visit.rows_out)
