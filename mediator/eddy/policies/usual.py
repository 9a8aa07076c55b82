"""What policies have in common: which rows are worth building, and that a batch goes as a whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mediator.eddy.destinations import Destination
from mediator.eddy.policy import Coming, Situation
from mediator.flow.batch import Signature

_PIECE = 1 << 14  # rows that are worth going from SteM to SteM by themselves
_LARGE = 1 << 16  # rows below which nothing is huge
_HUGE = 2  # times the largest of the others


class Usual:
    """Of a relation that other queries can be served from, `kept` rows are built where none need be."""

    glances = False

    def __init__(self, kept: float = float("inf")) -> None:
        self._kept = kept

    def sample(self, signature: Signature, destination: Destination) -> int:
        """How many rows are enough to find out; 0: it is not about finding out."""
        return 0

    def survey(
        self, signature: Signature, legal: Sequence[Destination], rows: int
    ) -> tuple[int, Mapping[Destination, float]] | None:
        """All rows of a signature go the same way."""
        return None

    def why(
        self, signature: Signature, legal: Sequence[Destination], situation: Situation
    ) -> Mapping[Destination, Mapping[str, float]]:
        """Nothing: the choice rests on no figures."""
        return {}

    def builds(self, coming: Coming) -> bool:
        """All but what arrives in large pieces of a relation far larger than all others, which would only fill the
        memory."""
        if coming.shared:
            return coming.came <= self._kept
        others = max(n for alias, n in enumerate(coming.held) if alias != coming.alias)
        return coming.rows < _PIECE or coming.came <= _HUGE * max(others, _LARGE)
