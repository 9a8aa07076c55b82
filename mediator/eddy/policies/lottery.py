"""Lottery (Eddies, 2000): a ticket for each row taken, one back for each row returned; the next is drawn by tickets.

A destination's tickets are its own, whatever was sent there and from wherever. All of the past weighs the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from mediator.eddy.destinations import Destination
from mediator.eddy.policies.tickets import Account, drawn, told
from mediator.eddy.policies.usual import Usual
from mediator.eddy.policy import Situation, Visit
from mediator.flow.batch import Signature


class Lottery(Usual):
    def __init__(self, random: Random, kept: float = float("inf")) -> None:
        super().__init__(kept)
        self._random = random
        self._accounts: dict[Destination, Account] = {}

    def choose(self, signature: Signature, legal: Sequence[Destination], situation: Situation) -> Destination:
        return drawn(self._random, legal, self._accounts, situation)

    def why(
        self, signature: Signature, legal: Sequence[Destination], situation: Situation
    ) -> Mapping[Destination, Mapping[str, float]]:
        return told(legal, self._accounts, situation)

    def learn(self, visit: Visit) -> None:
        self._accounts.setdefault(visit.destination, Account()).add(visit)
