"""Which cells an envelope is for."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from pipeline.cells.envelopes import Came, Envelope
from pipeline.spread.plan import Plan


def parts(plan: Plan, came: Came, wanted: frozenset[int]) -> Iterator[tuple[int, Came]]:
    """The rows that came, for each of the wanted cells that any of them belong to."""
    relation = came.lookups[0].relation
    for name in plan.readers(relation):
        first = plan.first[name]
        for place, rows in plan.cubes[name].cells_of(relation, came.rows):
            cell = first + place
            if cell in wanted:
                whole = len(rows) == came.rows.num_rows
                part = came.rows if whole else came.rows.take(pa.array(rows))
                yield cell, Came(came.lookups, came.landing, part)


def places(plan: Plan, relation: str, rows: pa.RecordBatch) -> Iterator[int]:
    """The cells that any of these rows belong to."""
    for name in plan.readers(relation):
        for place, _ in plan.cubes[name].cells_of(relation, rows):
            yield plan.first[name] + place


def addressed(
    plan: Plan, envelope: Envelope, cells: list[int] | None, wanted: frozenset[int]
) -> Iterator[tuple[int, Envelope]]:
    """Each of the wanted cells that an envelope is for, and what of it."""
    if cells is None:
        assert isinstance(envelope, Came)
        yield from parts(plan, envelope, wanted)
        return
    for cell in cells:
        if cell in wanted:
            yield cell, envelope
