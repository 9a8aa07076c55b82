"""Any legal destination: the test of the rules, and the baseline of every figure."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from mediator.eddy.destinations import Destination
from mediator.eddy.policies.usual import Usual
from mediator.eddy.policy import Coming, Visit
from mediator.flow.batch import Signature


class AtRandom(Usual):
    def __init__(self, random: Random) -> None:
        super().__init__()
        self._random = random

    def choose(self, signature: Signature, legal: Sequence[Destination]) -> Destination:
        return self._random.choice(legal)

    def learn(self, visit: Visit) -> None:
        pass

    def sample(self, signature: Signature, destination: Destination) -> int:
        return int(self._random.random() < 0.2)

    def builds(self, coming: Coming) -> bool:
        return self._random.random() < 0.5
