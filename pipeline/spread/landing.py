"""Rows that lie in files, as entries of the log: each names a part of a file, whose rows are read where they are cut."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.cells.envelopes import Came, Lookup
from pipeline.cells.packing import packed
from pipeline.spread.plan import Plan
from pipeline.spread.strands import Entry


def entries_of_file(
    plan: Plan, path: str, lookups: tuple[Lookup, ...], number: Callable[[], int]
) -> Iterator[tuple[Entry, int]]:
    """Each with the number of its landing."""
    about = pq.ParquetFile(path).metadata
    schema = plan.relations[lookups[0].relation].schema
    none = pa.RecordBatch.from_arrays([pa.array([], f.type) for f in schema], schema=schema)
    for part in range(about.num_row_groups):
        landing = number()
        weight = about.row_group(part).total_byte_size
        yield (
            Entry(packed(Came(lookups, landing, none), plan.relations), None, path, part, None, weight),
            landing,
        )
