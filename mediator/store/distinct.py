"""Equal rows are one row, which was sent when it was last sent."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from mediator.store.records import SENT


def distinct(rows: pa.Table) -> pa.Table:
    """Each row once, with its latest time; a NULL equals a NULL here."""
    names = [n for n in rows.column_names if n != SENT]
    try:
        found = rows.group_by(names, use_threads=False).aggregate([(SENT, "max")])
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        return _by_text(rows, names)
    return found.rename_columns([SENT if n == f"{SENT}_max" else n for n in found.column_names]).select(
        rows.column_names
    )


def _by_text(rows: pa.Table, names: list[str]) -> pa.Table:
    """For types that Arrow does not group by."""
    ordered = rows.take(pc.sort_indices(rows.column(SENT)))
    latest: dict[str, int] = {}
    for number, row in enumerate(zip(*(ordered.column(n).to_pylist() for n in names), strict=True)):
        latest[repr(row)] = number
    return ordered.take(pa.array(sorted(latest.values()), pa.int64()))
