"""From pieces of the log to envelopes for cells, in a task."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.cells.envelopes import Came
from pipeline.cells.packing import packed, unpacked
from pipeline.spread import stored
from pipeline.spread.addressing import addressed
from pipeline.spread.opening import opened
from pipeline.spread.placing import key_of
from pipeline.spread.plan import Plan
from pipeline.spread.strands import Entry, entries_of

COLUMNS = "key int, cell int, strand string, piece int, data binary"
SCHEMA = pa.schema(
    [
        ("key", pa.int32()),
        ("cell", pa.int32()),
        ("strand", pa.string()),
        ("piece", pa.int32()),
        ("data", pa.binary()),
    ]
)
Cut = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def cutting(folder: Path, id_: str, layout: int, partitions: int) -> Cut:
    """What `mapInArrow` runs."""

    def cut(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        plan = opened(folder, id_, layout)
        for batch in batches:
            for strand, number, path in zip(*(c.to_pylist() for c in batch.columns), strict=True):
                bundles = bundled(plan, entries_of(Path(path)))
                if bundles:
                    yield _rows(bundles, strand, number, partitions)

    return cut


def bundled(plan: Plan, entries: Iterable[Entry]) -> dict[int, bytearray]:
    """What there is for each cell."""
    bundles: dict[int, bytearray] = {}
    for entry in entries:
        if not entry.envelope:  # that it is to begin
            for cell in plan.cells.keys() & (entry.cells or ()):
                bundles.setdefault(cell, bytearray())
            continue
        envelope = unpacked(entry.envelope, plan.relations)
        if isinstance(envelope, Came):
            envelope = landed(envelope, entry, plan)
        for cells, part in addressed(plan, envelope, entry.cells):
            content = packed(part, plan.relations)
            for cell in cells:
                bundle = bundles.setdefault(cell, bytearray())
                bundle += len(content).to_bytes(8, "little")
                bundle += content
    return bundles


def unbundled(content: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(content):
        size = int.from_bytes(content[at : at + 8], "little")
        yield content[at + 8 : at + 8 + size]
        at += 8 + size


def landed(came: Came, entry: Entry, plan: Plan) -> Came:
    """With the rows of the file that it speaks of, if it does."""
    if entry.file is None:
        return came
    assert entry.part is not None, "it says which part of the file"
    schema = plan.relations[came.lookups[0].relation].schema
    file = pq.ParquetFile(entry.file)
    table = stored.taken(file, entry.part, schema)
    return replace(came, rows=table.combine_chunks().to_batches()[0])


def _rows(bundles: dict[int, bytearray], strand: str, number: int, partitions: int) -> pa.RecordBatch:
    cells = list(bundles)
    columns = [
        [key_of(cell, partitions) for cell in cells],
        cells,
        [strand] * len(cells),
        [number] * len(cells),
        [bytes(b) for b in bundles.values()],
    ]
    arrays = [pa.array(values, f.type) for values, f in zip(columns, SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)
