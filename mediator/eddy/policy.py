"""Which legal destination is wise? A policy sees signatures and statistics; never rows, the eddy, or the clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from mediator.eddy.destinations import Destination
from mediator.flow.batch import Signature


@dataclass(frozen=True, slots=True)
class Visit:
    """What one batch's stay at a destination came to."""

    signature: Signature
    destination: Destination
    rows_in: int
    rows_out: int
    seconds: float


class Policy(Protocol):
    def choose(self, signature: Signature, legal: Sequence[Destination]) -> Destination: ...

    def learn(self, visit: Visit) -> None: ...
