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


@dataclass(frozen=True, slots=True)
class Coming:
    """Rows that need not be built: of which alias, how many, and how many of it have come, these included.

    `held` is how many of each alias the query has been given and has built. `shared` says that other queries would be
    served from these rows if they were built.
    """

    alias: int
    rows: int
    came: int
    held: tuple[int, ...]
    shared: bool


class Policy(Protocol):
    def choose(self, signature: Signature, legal: Sequence[Destination]) -> Destination: ...

    def learn(self, visit: Visit) -> None: ...

    def sample(self, signature: Signature, destination: Destination) -> int:
        """How many rows of a batch are to be tried where it was just sent, before it is sent anywhere; 0: none."""
        ...

    def builds(self, coming: Coming) -> bool:
        """Whether rows are built that need not be."""
        ...
