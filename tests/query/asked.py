"""Statements answered by the engine itself, over sources that are asked as they declare it."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

import pyarrow as pa

from mediator.answering import verdicts_of
from mediator.assembly import House, Settings
from mediator.catalog.model import Catalog
from mediator.flow.events import Ask, Cancel
from mediator.query.understand import understand
from mediator.stages import Stages, Work
from tests.any_route.drawing import Case
from tests.any_route.sources import Sources


class Asking:
    """One statement: what is asked piles up, and so does what is answered."""

    def __init__(self, sql: str, catalog: Catalog, tables: Mapping[str, pa.Table], seed: int = 0) -> None:
        case = Case(seed, catalog, dict(tables), (sql,), 0.0, frozenset(), 0.0)
        self._sources = Sources(case, Random(seed))
        query = understand(sql, catalog)
        house = House(lambda: self._sources.now)
        self._stages = Stages(query, verdicts_of(query, catalog), house, Settings())
        self._answers: list[pa.RecordBatch] = []
        self.asks: list[Ask] = []
        self._obey(self._stages.start())
        while not self._stages.finished:
            if self._stages.idle and self._sources.busy:
                self._sources.step()
            self._obey(self._stages.turn())
        assert self._stages.report().complete
        self.answer = pa.Table.from_batches(self._answers, query.schema)

    def bindings(self, relation: str) -> set[tuple[object, ...]]:
        """What was asked of a relation."""
        return {b for ask in self.asks if ask.relation == relation for b in ask.bindings}

    def _obey(self, work: Work) -> None:
        self._answers += work.answers
        for command in work.commands:
            if isinstance(command, Ask):
                self.asks.append(command)
                self._sources.ask(command, self._stages.admit)
            elif isinstance(command, Cancel):
                self._sources.cancel(command, self._stages.admit)
