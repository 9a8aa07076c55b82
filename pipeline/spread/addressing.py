"""Which cells an envelope is for."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from pipeline.cells.envelopes import Came, Envelope
from pipeline.spread.plan import Plan


def parts(plan: Plan, came: Came, wanted: frozenset[int]) -> Iterator[tuple[list[int], Came]]:
    """The rows that came, for those of the wanted cells that any of them belong to."""
    relation = came.lookups[0].relation
    for name in plan.readers(relation):
        first = plan.first[name]
        for places, rows in plan.cubes[name].shared(relation, came.rows):
            cells = [cell for cell in (first + places).tolist() if cell in wanted]
            if cells:
                whole = len(rows) == came.rows.num_rows
                part = came.rows if whole else came.rows.take(pa.array(rows))
                yield cells, Came(came.lookups, came.landing, part)


def places(plan: Plan, relation: str, rows: pa.RecordBatch) -> Iterator[int]:
    """The cells that any of these rows belong to."""
    for name in plan.readers(relation):
        for cells, _ in plan.cubes[name].shared(relation, rows):
            yield from (plan.first[name] + cells).tolist()


def addressed(
    plan: Plan, envelope: Envelope, cells: list[int] | None, wanted: frozenset[int]
) -> Iterator[tuple[list[int], Envelope]]:
    """Those of the wanted cells that an envelope is for, and what of it."""
    if cells is None:
        assert isinstance(envelope, Came)
        yield from parts(plan, envelope, wanted)
    elif here := [cell for cell in cells if cell in wanted]:
        yield here, envelope
