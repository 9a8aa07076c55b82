"""The host of cells as Spark knows it. Spark also makes one on the driver, in a process that is begun for that alone:
so nothing is imported here before there is a cell to be worked on.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

if TYPE_CHECKING:
    from pyspark.sql import Row

COLUMNS = "cell int, stage string, rows long, file string, asks binary, status string"


class Host(StatefulProcessor):
    def __init__(self, folder: Path, id_: str, layout: int) -> None:
        self._folder, self._id, self._layout = folder, id_, layout

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._told = handle.getMapState("told", "number int", "data binary")
        self._count = handle.getValueState("count", "chunks int, batch long")

    def handleInputRows(  # noqa: N802 - Spark's name
        self,
        key: Any,
        rows: Iterator[Row],
        timerValues: Any,  # noqa: N803
    ) -> Iterator[Row]:
        from pipeline.spread.hosting import Hosting
        from pipeline.spread.opening import opened

        plan = opened(self._folder, self._id, self._layout)
        yield from Hosting(self._folder, plan, self._told, self._count).rows(rows)

    def close(self) -> None:
        pass
