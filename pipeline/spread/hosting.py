"""A host of cells: one of Spark's stateful operators, in whose workers cells live.

Spark's state has what each cell was told, chunk by chunk; of that alone a cell can be made anew. The cell itself is
kept in the worker for the next micro-batch. It is used only if it was told just what the state says: one that has
missed a micro-batch, or has seen one that was then taken back, is thrown away.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import MapState, ValueState

from mediator.output.finish import Streaming
from mediator.reporting import report_of
from mediator.store import bindings
from pipeline.cells.cell import Cell, Said
from pipeline.cells.envelopes import Envelope
from pipeline.cells.packing import unpacked
from pipeline.spread import asks, stored
from pipeline.spread.cutting import unbundled
from pipeline.spread.errors import SpreadError
from pipeline.spread.folder import Folder
from pipeline.spread.memory import memory_of_machine
from pipeline.spread.plan import Plan

_SHARE = 0.6  # of a machine's memory, for the rows of all cells on it
_BATCH = "streaming.sql.batchId"


@dataclass
class Live:
    """A cell, how many chunks it was told, and in which micro-batch the last."""

    cell: Cell
    chunks: int
    batch: int


_LIVE: dict[tuple[Path, int], Live] = {}  # by the folder of the spread, and the number


class Hosting:
    """What a host does in a worker, with Spark's state of one cell at hand."""

    def __init__(self, folder: Path, plan: Plan, told: MapState, count: ValueState) -> None:
        self._folder, self._plan = folder, plan
        self._told, self._count = told, count

    def rows(self, rows: Iterable[Row]) -> Iterator[Row]:
        """What a cell makes of what it is told in a micro-batch."""
        by_cell: dict[int, list[tuple[str, int, bytes]]] = {}
        for row in rows:
            by_cell.setdefault(row.cell, []).append((row.strand, row.piece, bytes(row.data)))
        assert len(by_cell) == 1, "each cell has a key of its own"
        for cell, told in by_cell.items():
            chunks = [content for *_, content in sorted(told)]
            yield self._epoch(self._plan, cell, chunks)

    def _epoch(self, plan: Plan, number: int, chunks: list[bytes]) -> Row:
        batch = int(TaskContext.get().getLocalProperty(_BATCH))  # type: ignore[union-attr, arg-type]
        before = self._count.get()
        asked: list[pa.RecordBatch] = []
        live, how = self._live(plan, number, (before[0], before[1]) if before else (0, -1), asked)
        said = live.cell.epoch(_envelopes(plan, chunks))
        asked.append(_asks(plan, number, said))
        for at, chunk in enumerate(chunks, live.chunks):
            self._told.updateValue((at,), (chunk,))
        self._check_room(live.cell, plan)
        live.chunks += len(chunks)
        live.batch = batch
        self._count.update((live.chunks, batch))
        _LIVE[self._folder, number] = live
        stage, count, file = _answered(plan, self._folder, number, batch, said)
        status = {"how": how, **status_of(plan, number, live.cell)}
        return Row(
            cell=number, stage=stage, rows=count, file=file, asks=_bytes(asked), status=json.dumps(status)
        )

    def _live(
        self, plan: Plan, number: int, before: tuple[int, int], asked: list[pa.RecordBatch]
    ) -> tuple[Live, str]:
        """The cell as it was told so many chunks, and how it was come by. What it asks for on the way is asked."""
        live = _LIVE.pop((self._folder, number), None)
        _forget(self._folder, plan)
        if live is not None and (live.chunks, live.batch) == before:
            return live, "kept"
        chunks, _ = before
        name, place = plan.cells[number]
        live = Live(Cell(plan.cubes[name], place, plan.verdicts[name], plan.settings), 0, -1)
        if not chunks:
            return live, "new"
        told = [self._chunk(at) for at in range(chunks)]
        asked.append(_asks(plan, number, live.cell.epoch(_envelopes(plan, told))))
        live.chunks = chunks
        return live, "anew"

    def _check_room(self, cell: Cell, plan: Plan) -> None:
        """Raises `SpreadError` before the worker would be killed without a word."""
        size = cell.size + sum(live.cell.size for live in _LIVE.values())
        room = plan.settings.memory or int(_SHARE * memory_of_machine() / plan.workers)
        if size > room:
            raise SpreadError(
                f"the rows of the cells in one worker take {size / 1e6:,.0f} MB, and {room / 1e6:,.0f} MB is what it "
                "may use: more slots or executors make the cells smaller, and `memory` says how much there is"
            )

    def _chunk(self, at: int) -> bytes:
        found = self._told.getValue((at,))
        assert found is not None, "the state has all chunks that it has counted"
        return bytes(found[0])


def _forget(folder: Path, plan: Plan) -> None:
    """Cells of queries that have ended, and of other layouts of this one."""
    for key in [
        (path, number)
        for path, number in _LIVE
        if (number not in plan.cells if path == folder else not path.exists())
    ]:
        del _LIVE[key]


def _envelopes(plan: Plan, chunks: Iterable[bytes]) -> list[Envelope]:
    return [unpacked(content, plan.relations) for chunk in chunks for content in unbundled(chunk)]


def _asks(plan: Plan, number: int, said: Said) -> pa.RecordBatch:
    return asks.table([(number, lookup) for lookup in said.asks], plan.relations)


def _bytes(batches: list[pa.RecordBatch]) -> bytes:
    """Nothing where nothing is asked."""
    if not any(batch.num_rows for batch in batches):
        return b""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, asks.SCHEMA) as writer:
        for batch in batches:
            writer.write_batch(batch)
    found: bytes = sink.getvalue().to_pybytes()
    return found


def _answered(plan: Plan, folder: Path, number: int, batch: int, said: Said) -> tuple[str, int, str | None]:
    """The answers of an epoch in a file: of which stage, how many, and where."""
    name, _ = plan.cells[number]
    found = said.answers
    for stage in plan.outlet(name):
        found = [out for rows in found for out in Streaming(stage).feed(name, rows)]
        name = stage.name
    table = pa.Table.from_batches(found, plan.stages[name].schema)
    if not table.num_rows:
        return name, 0, None
    target = Folder(folder).answers / name / f"{batch:08d}-{number:06d}-{uuid.uuid4().hex}.parquet"
    target.parent.mkdir(exist_ok=True)
    stored.put(target, table)
    return name, table.num_rows, str(target)


def status_of(plan: Plan, number: int, cell: Cell) -> dict[str, Any]:
    """How a cell stands; of one that has finished, what it has to report."""
    if not cell.finished:
        return {"finished": False, "rows": cell.rows}
    report = report_of(cell.eddy, lambda name: name not in plan.stages)
    relations = {}
    for relation in report.relations:
        schema = plan.relations[relation.relation].schema
        relations[relation.relation] = {
            "parked": relation.parked,
            "failures": [
                {
                    "method": f.method,
                    "fields": list(f.bind_set),
                    "bindings": bindings.written(schema, f.bind_set, f.bindings),
                    "cause": [f.cause.kind, f.cause.message],
                }
                for f in relation.failures
            ],
        }
    return {"finished": True, "rows": cell.rows, "relations": relations}
