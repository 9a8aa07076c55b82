"""Which cells an envelope is for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from pipeline.cells.envelopes import Came, Envelope
from pipeline.spread.plan import Plan


def places(plan: Plan, relation: str, rows: pa.RecordBatch) -> Iterator[int]:
    """The cells that any of these rows belong to."""
    for name in plan.readers(relation):
        for cells, _ in plan.cubes[name].shared(relation, rows):
            yield from (plan.first[name] + cells).tolist()


def addressed(
    plan: Plan, envelope: Envelope, cells: Sequence[int] | None
) -> Iterator[tuple[Sequence[int], Envelope]]:
    """The cells that an envelope is for, and what of it."""
    if cells is None:
        assert isinstance(envelope, Came)
        yield from _parts(plan, envelope)
    elif here := [cell for cell in cells if cell in plan.cells]:  # others are of another layout
        yield here, envelope


def _parts(plan: Plan, came: Came) -> Iterator[tuple[list[int], Came]]:
    """The rows that came, for those cells that any of them belong to."""
    relation = came.lookups[0].relation
    for name in plan.readers(relation):
        for places, rows in plan.cubes[name].shared(relation, came.rows):
            whole = len(rows) == came.rows.num_rows
            part = came.rows if whole else came.rows.take(pa.array(rows))
            yield (plan.first[name] + places).tolist(), Came(came.lookups, came.landing, part)
