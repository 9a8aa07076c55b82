"""Batches that leave, as rows of the columns that are wanted of them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pyarrow as pa

from mediator.eddy.run import Run
from mediator.flow.batch import Batch
from mediator.query.model import BlockStage
from mediator.state.hands import Hands


def projected(
    run: Run, stage: BlockStage, heaps: list[list[Batch]], hands: Hands
) -> Iterator[pa.RecordBatch]:
    """The columns that the stages above need, read from the SteMs; each heap as one batch."""
    outputs = [o.column for o in stage.block.outputs]
    emitted = [batch for heap in heaps for batch in heap]
    for batch in emitted:
        run.prepare(batch, outputs)
    tasks = [partial(run.gather_all, heap, column) for heap in heaps for column in outputs]
    columns = hands.each(tasks, len(outputs) * sum(map(len, emitted)))
    for start in range(0, len(columns), len(outputs)):
        yield pa.RecordBatch.from_arrays(columns[start : start + len(outputs)], schema=stage.schema)
