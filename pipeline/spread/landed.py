"""Rows that lie in files already: a relation that was harvested, or that an earlier query has brought."""

from __future__ import annotations

from dataclasses import dataclass

from mediator.flow.events import Binding
from pipeline.cells.envelopes import Lookup


@dataclass(frozen=True, slots=True)
class Landed:
    """What one lookup brought, in Parquet or Arrow files with the relation's columns. It is all that it brings."""

    relation: str
    method: str
    bind_set: tuple[str, ...]
    bindings: tuple[Binding, ...]  # that the files answer together
    files: tuple[str, ...]
    rows: int  # of all files
    at: float = 0.0  # by the wall clock: when it was asked, and how long the site vouches for it
    until: float = float("inf")

    @property
    def lookups(self) -> tuple[Lookup, ...]:
        return tuple(Lookup(self.relation, self.method, self.bind_set, b) for b in self.bindings)
