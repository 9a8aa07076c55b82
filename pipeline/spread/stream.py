"""The log of a spread as a source of Spark's: the pieces that are there, some more of them in each micro-batch.

An offset says how many pieces of each strand were taken. What is given is where the pieces lie; they are read where
they are cut.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit
from pyspark.sql.types import StructType

from pipeline.spread.pieces import ahead_of, count, numbered, weight_of

COLUMNS = "strand string, piece int, path string"
SCHEMA = pa.schema([("strand", pa.string()), ("piece", pa.int32()), ("path", pa.string())])
FORMAT = "mediator_spread"
_EPOCH = "#epoch"

Offset = dict[str, Any]


@dataclass(frozen=True)
class Pace:
    """Bytes of one micro-batch, at most: the first is small, so that it ends soon, and each is so many times the
    last."""

    first: int
    growth: int
    most: int

    def options(self) -> dict[str, str]:
        return {name: str(value) for name, value in asdict(self).items()}

    def room(self, epoch: int) -> int:
        return int(min(self.first * self.growth ** min(epoch, 16), self.most))


_EACH = 1 << 27  # bytes of one micro-batch for each slot, at most


def pace_of(slots: int) -> Pace:
    """What many slots are given together is more: a micro-batch costs as much whatever it brings."""
    return Pace(1 << 25, 8, slots * _EACH)


_PACE = tuple(field.name for field in fields(Pace))


@dataclass
class Pieces(InputPartition):
    """What one task takes."""

    taken: tuple[tuple[str, int, str], ...]


class SpreadSource(DataSource):
    """Options: `log`, a folder; `tasks` that read one micro-batch, at most; the pace."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return COLUMNS

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        pace = Pace(*(int(self.options[name]) for name in _PACE))
        return PieceReader(Path(self.options["log"]), int(self.options["tasks"]), pace)


class PieceReader(DataSourceStreamReader):
    def __init__(self, log: Path, tasks: int, pace: Pace) -> None:
        self._log, self._tasks, self._pace = log, tasks, pace

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's names
        return {_EPOCH: 0}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadAllAvailable()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        """Some more of every strand, in turns, as far as a micro-batch of this size goes."""
        there = {
            strand: count(self._log / strand) for strand in sorted(os.listdir(self._log)) if strand[0] != "."
        }
        before = {strand: int(start.get(strand, 0)) for strand in there}
        taken = self._further(before, there, self._pace.room(int(start[_EPOCH])))
        return start if taken == before else {_EPOCH: int(start[_EPOCH]) + 1, **taken}

    def _further(self, before: dict[str, int], there: dict[str, int], room: int) -> dict[str, int]:
        """Pieces that go before another of another strand are taken before it."""
        taken, moving = dict(before), True
        while moving and room > 0:
            moving = False
            for strand in there:
                if room <= 0 or taken[strand] == there[strand]:
                    continue
                weight, first = ahead_of(numbered(self._log / strand, taken[strand], "arrow"))
                if all(taken.get(other, 0) >= pieces for other, pieces in first.items()):
                    room -= weight
                    taken[strand] += 1
                    moving = True
        return taken

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        found: list[tuple[int, tuple[str, int, str]]] = []
        for strand, last in end.items():
            if strand != _EPOCH:
                for number in range(int(start.get(strand, 0)), int(last)):
                    path = numbered(self._log / strand, number, "arrow")
                    found.append((weight_of(path), (strand, number, str(path))))
        tasks: list[list[tuple[str, int, str]]] = [[] for _ in range(min(self._tasks, len(found)))]
        loads = [0] * len(tasks)
        for weight, piece in sorted(found, reverse=True):  # the heaviest first, to whoever has least
            at = loads.index(min(loads))
            tasks[at].append(piece)
            loads[at] += weight
        return [Pieces(tuple(sorted(task))) for task in tasks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Pieces)
        if partition.taken:
            strands, numbers, paths = zip(*partition.taken, strict=True)
            yield pa.record_batch(
                [pa.array(strands), pa.array(numbers, pa.int32()), pa.array(paths)], schema=SCHEMA
            )
