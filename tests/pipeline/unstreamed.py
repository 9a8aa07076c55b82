"""A whole query over cells as Spark runs it, but for Spark: micro-batches are done here, one after another, and what is
above the cells is made by DuckDB. What comes when, and which cells are made anew, is drawn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from mediator.answering import verdicts_of
from mediator.assembly import POLICIES, Settings
from mediator.catalog.model import Catalog
from mediator.query.understand import understand
from pipeline.sparksql.errors import NotAgreed
from pipeline.spread import above, cutting, hosting
from pipeline.spread.drive import Drive
from pipeline.spread.folder import Folder
from pipeline.spread.given import given
from pipeline.spread.hosting import Hosting
from pipeline.spread.plan import Plan, planned
from pipeline.spread.reporting import report
from pipeline.spread.stream import Pace, PieceReader
from pipeline.spread.tail import Tail
from tests.any_route.drawing import Case
from tests.any_route.sources import Sources
from tests.pipeline.portions import moved_on, portions_of

_LONG = 1_000  # turns in which nothing moves


class _State(dict[Any, Any]):
    """Spark's, of one cell."""

    updateValue = dict.__setitem__  # noqa: N815 - Spark's name
    getValue = dict.__getitem__  # noqa: N815

    def update(self, value: Any) -> None:  # type: ignore[override]
        self[None] = value

    def get(self) -> Any:  # type: ignore[override]
        return super().get(None)


class _Here(Drive):
    def __init__(self, folder: Folder, plan: Plan, sources: Sources, random: Random) -> None:
        super().__init__(SimpleNamespace(sparkContext=None), folder, plan)  # type: ignore[arg-type]
        self._sources, self._random = sources, random
        self._states: dict[int, tuple[_State, _State]] = {}

    def _in_cells(self) -> str:
        pace = Pace(self._random.choice((1, 2_000, 1 << 20)), self._random.choice((1, 4)), 1 << 28)
        reader, portions = (
            PieceReader(self._folder.path / "log", 2, pace),
            portions_of(self._plan, self._folder, self._sources),
        )
        offset, number, idle = reader.initialOffset(), 0, 0
        while self._go_on():
            idle += 1
            assert idle < _LONG, "it waits for ever"
            moved_on(portions, self._sources, self._random)
            new = reader.latestOffset(offset, ReadAllAvailable())
            if new != offset and self._random.random() < 0.6:
                rows = list(self._micro_batch(reader, offset, new, number))
                self._batch(0, SimpleNamespace(collect=lambda rows=rows: rows), number)  # type: ignore[arg-type]
                offset, number, idle = new, number + 1, 0
        for portion in portions:
            portion.close()
        return ""

    def _micro_batch(
        self, reader: PieceReader, offset: dict[str, Any], new: dict[str, Any], number: int
    ) -> Iterator[Any]:
        cut = cutting.cutting(self._folder.path, self._plan.id, self._plan.layout, 1)
        by_key: dict[int, list[Any]] = {}
        for partition in reader.partitions(offset, new):
            for batch in cut(reader.read(partition)):
                for row in batch.to_pylist():
                    by_key.setdefault(row["key"], []).append(SimpleNamespace(**row))
        local = SimpleNamespace(getLocalProperty=lambda _: str(number))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(hosting, "TaskContext", SimpleNamespace(get=lambda: local))
            for key, rows in by_key.items():
                self._random.shuffle(rows)
                if self._random.random() < 0.05:
                    hosting._LIVE.clear()
                told, count = self._states.setdefault(key, (_State(), _State()))
                yield from Hosting(self._folder.path, self._plan, told, count).rows(rows)  # type: ignore[arg-type]


def answered(
    sql: str, catalog: Catalog, tables: Mapping[str, pa.Table], path: Path, random: Random
) -> pa.Table:
    """All of it. Raises `AssertionError` where it is not complete, or never ends."""
    query = understand(sql, catalog)
    settings = Settings(
        policy=random.choice(("random", *POLICIES)),
        seed=random.randrange(1 << 30),
        largest_batch=random.choice((1, 7, 1000)),
    )
    plan = planned(
        catalog,
        query,
        verdicts_of(query, catalog),
        settings,
        lambda _, __: random.choice((1.0, 10.0, 1000.0)),
        slots=2,
        askers=random.choice((1, 2, 3)),
        cells=random.choice((1, 2, 3, 4, 6)),
    )
    folder = Folder(path)
    folder.begin(plan)
    case = Case(0, catalog, dict(tables), (sql,), 0.0, frozenset(), 0.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(above, "agreed", _not_agreed)
        _Here(folder, plan, Sources(case, random), random).run()
    found, cells, tail = list[pa.RecordBatch](), {}, Tail(plan)
    for one in given(folder.given):
        cells |= one.cells
        for file in one.files:
            if file.stage in plan.results:
                for batch in above.batches_of(file.path, plan.stages[file.stage].schema):
                    found += tail.feed(file.stage, batch)
    assert report(plan, folder, cells.values()).complete
    return pa.Table.from_batches(found, query.schema)


def _not_agreed(*_: object) -> None:
    raise NotAgreed("there is no Spark here")
