"""What a cell is told, and what it says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa

from mediator.errors import Cause
from mediator.flow.events import Binding


class Lookup(NamedTuple):
    """One binding of one way into a relation; a scan is the lookup of the empty binding."""

    relation: str
    method: str
    bind_set: tuple[str, ...]
    binding: Binding


@dataclass(frozen=True)
class Came:
    """Rows that a lookup brought, as far as they are for this cell. `landing` is the number of the reply."""

    lookups: tuple[Lookup, ...]  # several, where they were asked for together
    landing: int
    rows: pa.RecordBatch


@dataclass(frozen=True)
class Over:
    """No more rows come of a lookup. `landings` are the replies that it brought."""

    lookup: Lookup
    at: float
    until: float
    landings: tuple[int, ...]


@dataclass(frozen=True)
class Broken:
    """A lookup will not be answered."""

    lookup: Lookup
    cause: Cause


Envelope = Came | Over | Broken
