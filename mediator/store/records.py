"""What goes into the store and what comes out of it, as data."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mediator.catalog.model import BindSet, Relation
from mediator.flow.events import Binding

# Beside a relation's own fields, unless it is a bag: the numbers of the lookups that brought each row. No field can
# have this name.
LOOKUPS = "#lookups"
LISTED = pa.list_(pa.int64())


@dataclass(frozen=True, slots=True)
class Sent:
    """Rows, when their site sent them, and what brought them."""

    rows: pa.RecordBatch
    at: float
    lookup: int


@dataclass(frozen=True, slots=True)
class Covered:
    """A binding whose rows have all been sent: when it was asked, until when that may be relied on, and the number of
    what brought them: 0 where there are none."""

    bind_set: BindSet
    binding: Binding
    at: float
    until: float
    lookup: int


@dataclass(frozen=True, slots=True)
class Group:
    """What came into one SteM since the last group of it. Rows are what the coverage in it, or later, rests on."""

    relation: Relation
    stem: int  # a bag's rows belong to one SteM, which is replaced as a whole
    rows: Sequence[Sent]
    covered: Sequence[Covered]


@dataclass(frozen=True, slots=True)
class Kept:
    """What the store gives back of a relation: distinct rows, unless it is a bag, and fresh coverage.

    `brought` says which of the rows, in ascending order, came of each lookup; nothing of a bag.
    """

    rows: pa.Table
    brought: Mapping[int, NDArray[np.int32]]
    covered: Sequence[Covered]


@dataclass(frozen=True)
class Declared:
    """What of a relation's declaration has to be the same for its rows to be of any use."""

    name: str
    schema: pa.Schema
    key: BindSet
    repeats: bool  # equal rows are one row; else a bag

    @classmethod
    def of(cls, relation: Relation) -> Declared:
        return cls(relation.name, relation.schema, relation.key, relation.repeats)

    @property
    def stored(self) -> pa.Schema:
        """Of the rows as they lie in segments."""
        return self.schema.append(pa.field(LOOKUPS, LISTED)) if self.repeats else self.schema

    @property
    def fingerprint(self) -> str:
        """Equal for equal declarations, and readable."""
        fields = [[f.name, str(f.type)] for f in self.schema]
        return json.dumps({"fields": fields, "key": list(self.key), "repeats": self.repeats})


@dataclass(frozen=True, slots=True)
class Segment:
    """One file of rows, as the manifest names it."""

    number: int
    relation: str
    rows: int
    size: int  # bytes
    latest: float  # when the last of its rows was sent
    lookup: int  # the highest number of what brought them


@dataclass(frozen=True)
class Held:
    """What the store has of one relation, for a look at it."""

    declared: Declared
    segments: Sequence[Segment]
    covered: Sequence[Covered] = field(repr=False)

    @property
    def rows(self) -> int:
        """Stored rows; a row that was sent twice may be counted twice until its segments are merged."""
        return sum(s.rows for s in self.segments)

    @property
    def size(self) -> int:
        return sum(s.size for s in self.segments)

    def fresh(self, now: float) -> list[Covered]:
        return [c for c in self.covered if c.until >= now]
