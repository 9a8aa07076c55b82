"""Any legal destination: the test of the rules, and the baseline of every figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from mediator.eddy.destinations import Destination, Probe, Select
from mediator.eddy.policies.usual import Usual
from mediator.eddy.policy import AGAIN, Coming, Situation, Visit
from mediator.flow.batch import Signature


class AtRandom(Usual):
    def __init__(self, random: Random) -> None:
        super().__init__()
        self._random = random

    def choose(self, signature: Signature, legal: Sequence[Destination], situation: Situation) -> Destination:
        return self._random.choice(legal)

    def learn(self, visit: Visit) -> int:
        return self._random.choice((0, 0, AGAIN, 2))

    def sample(self, signature: Signature, destination: Destination) -> int:
        return int(self._random.random() < 0.2)

    def survey(
        self, signature: Signature, legal: Sequence[Destination], rows: int
    ) -> tuple[int, Mapping[Destination, float]] | None:
        open_to_all = [d for d in legal if isinstance(d, Probe | Select)]
        if len(open_to_all) < 2 or self._random.random() < 0.9:
            return None
        return rows, {d: self._random.random() for d in open_to_all}

    def builds(self, coming: Coming) -> bool:
        return self._random.random() < 0.5
