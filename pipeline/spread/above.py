"""Above the cells: what is made of all rows of the stages below."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from mediator.output.finish import finisher
from mediator.query.model import SqlStage
from pipeline.spread.folder import Folder
from pipeline.spread.given import File
from pipeline.spread.plan import Plan


def made(plan: Plan, folder: Folder, stage: SqlStage, files: Sequence[File]) -> list[File]:
    """The rows of a stage, of all the rows that it reads."""
    schemas = {name: plan.stages[name].schema for name in stage.reads}
    running = finisher(stage, schemas)
    found: list[pa.RecordBatch] = []
    for file in files:
        for batch in batches_of(file.path, schemas[file.stage]):
            if not running.done:
                found += running.feed(file.stage, batch)
    found += running.end()
    return written(folder, stage.name, pa.Table.from_batches(found, stage.schema))


def written(folder: Folder, name: str, table: pa.Table) -> list[File]:
    """As a file that no other had the name of."""
    if not table.num_rows:
        return []
    target = folder.answers / name / f"{uuid.uuid4().hex}.parquet"
    target.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, target)
    return [File(name, str(target), table.num_rows)]


def batches_of(path: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    file = pq.ParquetFile(path)
    for part in range(file.num_row_groups):
        yield from file.read_row_group(part).select(schema.names).cast(schema).to_batches()
