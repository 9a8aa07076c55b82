"""What has been asked and is open, and how much became of the rest."""

from __future__ import annotations

from dataclasses import dataclass

from mediator.flow.events import Ask, Binding


@dataclass(slots=True)
class Open:
    """An ask under way, and the bindings of it that have not ended."""

    ask: Ask
    left: set[Binding]
    scanning: bool  # a scan that has not ended: the SteM counts it


@dataclass(slots=True)
class Tally:
    """One relation's share of the completeness report."""

    asked: int = 0
    answered: int = 0
    failed: int = 0
    cancelled: int = 0
    served: int = 0  # from the SteM, without asking
    held: int = 0  # rows that waited until nothing else could move
    parked: int = 0  # rows that wait for matches that nobody asked for on their account
