"""`spark.readStream.format("mediator")`: the answers of a query as a stream, out of a log.

The offsets are counts of the log's pieces, together with the log's id, so that a checkpoint that belongs to another log
is noticed. Spark keeps the reader in one process of its own, which also writes the log.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from mediator.answering import verdicts_of
from mediator.errors import Unanswerable
from mediator.query.understand import understand
from pipeline.errors import BadOption, LogError
from pipeline.filling import Filling
from pipeline.log import Log, read_piece
from pipeline.options import Wanted
from pipeline.reading import asked_of

_TASKS = 8  # that read the pieces of one micro-batch, at most
_LOOK = 0.02  # seconds between two looks for a new piece

_NO_FILTERS = "Spark gives no filters to a stream: say it with .option('bindings', ...), or in a query"

Offset = dict[str, Any]


@dataclass
class Pieces(InputPartition):
    """Pieces of the log that one task reads, in their order."""

    paths: tuple[str, ...]


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Of one query. Only the process that is asked for offsets writes the log; the tasks only read it."""

    def __init__(self, wanted: Wanted, schema: StructType) -> None:
        if not wanted.log:
            raise BadOption(
                "a stream needs .option('log', FOLDER): the answers are written there once before they are used, as "
                "sites cannot be asked again and be expected to say the same"
            )
        check_answerable(wanted)
        self._wanted = wanted
        self._columns = schema.simpleString()
        self._to_the_end = False  # whether the trigger waits for all answers
        self._opened: Log | None = None
        self._filling: Filling | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Spark sends it to the tasks."""
        return {**self.__dict__, "_opened": None, "_filling": None}

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's names
        return {"log": self._log.id, "pieces": 0}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadAllAvailable() if self._wanted.pieces is None else ReadMaxFiles(self._wanted.pieces)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """What is available is the whole answer, which the query fixes: micro-batches come until it is told."""
        self._to_the_end = True

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        """As far as the log goes. Raises what went wrong in the query, when all that was found before is told."""
        told = self._count(start)
        there = self._waited(told) if self._to_the_end else self._written(told)
        if isinstance(limit, ReadMaxFiles):
            there = min(there, told + limit.max_files)
        return {"log": self._log.id, "pieces": max(there, told)}

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        first, last = self._count(start), self._count(end)
        there = self._log.pieces()
        if last > there:
            raise LogError(
                f"{self._log.folder}: the checkpoint has seen {last} pieces of this log, and there are {there}: it was "
                "changed. Begin another, with a new checkpoint"
            )
        paths = [str(self._log.piece(number)) for number in range(first, last)]
        size = -(-len(paths) // _TASKS) or 1
        return [Pieces(tuple(paths[at : at + size])) for at in range(0, len(paths), size)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Pieces)
        for path in partition.paths:
            yield from read_piece(Path(path))

    def stop(self) -> None:
        if self._filling is not None:
            self._filling.close()

    @property
    def _log(self) -> Log:
        if self._opened is None:
            wanted = self._wanted
            whose = {
                "query": wanted.query or f"the relation {wanted.relation}",
                "parameters": wanted.parameters,
                "bindings": wanted.bindings,
                "catalog": list(wanted.catalog),
                "columns": self._columns,
            }
            self._opened = Log.of(wanted.log, whose)
        return self._opened

    def _count(self, offset: Offset) -> int:
        if offset.get("log") != self._log.id:
            raise LogError(
                f"{self._log.folder}: the checkpoint belongs to another log. Name the log that it was made with, or "
                "another checkpoint"
            )
        return int(offset["pieces"])

    def _written(self, told: int) -> int:
        """How many pieces there are now."""
        if self._log.end is not None:
            return self._log.pieces()
        if self._filling is None:
            self._filling = Filling(self._log, self._wanted)
        running, error = self._filling.running, self._filling.error
        there = self._log.pieces()
        if there <= told and not running and self._log.end is None:
            self._filling = None  # should it be asked once more, it tries once more
            raise error or LogError(f"{self._log.folder}: whoever wrote this log has stopped")
        return there

    def _waited(self, told: int) -> int:
        """The same, as soon as there is one more than was told, or it is certain that there is none."""
        parent = os.getppid()
        while True:
            ended = self._log.end is not None
            there = self._written(told)
            if there > told or ended:
                return there
            if os.getppid() != parent:
                raise InterruptedError("Spark has gone")
            time.sleep(_LOOK)


def check_answerable(wanted: Wanted) -> None:
    """Before any log is begun: Spark gives a stream no filters, so its conditions have to be in a query."""
    catalog = wanted.load()
    try:
        sql, parameters = asked_of(wanted, catalog)
        verdicts_of(understand(sql, catalog, parameters), catalog)
    except Unanswerable as error:
        if wanted.query:
            raise
        raise Unanswerable(error.message, hint=f"{error.hint}\n{_NO_FILTERS}") from None
