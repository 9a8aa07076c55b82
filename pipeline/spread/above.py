"""Above the cells: what is made of all rows of the stages below.

Spark does it where it is known to do what DuckDB does, and no process has to hold all rows; else DuckDB does, in one.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from mediator.output.finish import finisher
from mediator.query.model import SqlStage
from pipeline.errors import NoSuchType
from pipeline.sparksql.agreed import Statement, agreed
from pipeline.sparksql.errors import NotAgreed
from pipeline.sparksql.settings import apart
from pipeline.spread import stored
from pipeline.spread.folder import Folder
from pipeline.spread.given import File
from pipeline.spread.plan import Plan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_log = logging.getLogger(__name__)


def made(
    session: SparkSession, plan: Plan, folder: Folder, stage: SqlStage, files: Sequence[File]
) -> list[File]:
    """The rows of a stage, of all the rows that it reads; the files in their order, where they have one."""
    schemas = {name: plan.stages[name].schema for name in stage.reads}
    try:
        statement = agreed(stage, schemas)
    except NotAgreed as error:
        _log.info(in_one_process(stage, str(error)))
        return _by_duckdb(plan, folder, stage, files)
    try:
        return _by_spark(session, plan, folder, stage, statement, files)
    except _at_fault() as error:
        # The statement's, or ours: DuckDB knows best, and says so as ever. What befalls Spark is raised.
        _log.warning(in_one_process(stage, str(error).split("\n")[0]))
        return _by_duckdb(plan, folder, stage, files)


def remarks(plan: Plan) -> tuple[str, ...]:
    """What is done in one process, and why."""
    found = [(stage, objection(plan, stage)) for stage in plan.above if stage.reads]
    return tuple(in_one_process(stage, why) for stage, why in found if why)


def objection(plan: Plan, stage: SqlStage) -> str:
    """Why a stage is not made by Spark; nothing where it is."""
    try:
        agreed(stage, {name: plan.stages[name].schema for name in stage.reads})
    except NotAgreed as error:
        return str(error)
    return ""


def in_one_process(stage: SqlStage, why: str) -> str:
    return f"{stage.name} is made in one process, as Spark is not known to do what DuckDB does: {why}"


def _by_duckdb(plan: Plan, folder: Folder, stage: SqlStage, files: Sequence[File]) -> list[File]:
    schemas = {name: plan.stages[name].schema for name in stage.reads}
    running = finisher(stage, schemas)
    found: list[pa.RecordBatch] = []
    for file in files:
        for batch in batches_of(file.path, schemas[file.stage]):
            if not running.done:
                found += running.feed(file.stage, batch)
    found += running.end()
    return written(folder, stage.name, pa.Table.from_batches(found, stage.schema))


def _by_spark(
    session: SparkSession,
    plan: Plan,
    folder: Folder,
    stage: SqlStage,
    statement: Statement,
    files: Sequence[File],
) -> list[File]:
    from pipeline.sparksql import parquet

    mine = apart(session)
    try:
        for name, view in statement.views.items():
            paths = [file.path for file in files if file.stage == name]
            parquet.read(mine, paths, plan.stages[name].schema).createOrReplaceTempView(view)
        target = _fresh(folder, stage.name)
        found = parquet.write(mine.sql(statement.sql), target, stage.schema)
    finally:
        for view in statement.views.values():
            mine.catalog.dropTempView(view)
    return [File(stage.name, path, rows) for path, rows in found]


def _at_fault() -> tuple[type[Exception], ...]:
    """What Spark raises where a statement is not one for it."""
    from pyspark import errors

    return (
        errors.AnalysisException,
        errors.ArithmeticException,
        errors.DateTimeException,
        errors.NumberFormatException,
        errors.SparkRuntimeException,
        NoSuchType,
    )


def written(folder: Folder, name: str, table: pa.Table) -> list[File]:
    """As a file that no other had the name of."""
    if not table.num_rows:
        return []
    target = _fresh(folder, name).with_suffix(".parquet")
    stored.put(target, table)
    return [File(name, str(target), table.num_rows)]


def _fresh(folder: Folder, name: str) -> Path:
    """A path that there never was."""
    target = folder.answers / name / uuid.uuid4().hex
    target.parent.mkdir(parents=True, exist_ok=True)
    return target


def batches_of(path: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    file = pq.ParquetFile(path)
    for part in range(file.num_row_groups):
        yield from stored.taken(file, part, schema).to_batches()
