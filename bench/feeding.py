"""A driver without a network: Arrow batches go straight into a query's stages, and its answers are kept as Arrow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import perf_counter

import pyarrow as pa

from bench.shapes import Shape
from mediator.answering import verdicts_of
from mediator.assembly import House, Settings
from mediator.catalog.model import AccessMethod, Catalog, Field, Relation, Source
from mediator.clock import effort
from mediator.flow.events import SEED, Arrived, Ask, Exhausted, Landing
from mediator.query.understand import understand
from mediator.stages import Stages
from mediator.state.hands import Hands

_HOPS = 64

Arrival = tuple[str, pa.RecordBatch]


def catalog_of(tables: Mapping[str, pa.Table]) -> Catalog:
    """Each table as a relation that one scan brings."""
    scan = AccessMethod("scan", "scan", (), None)
    relations = {
        name: Relation(name, tuple(Field(f.name, f.type) for f in table.schema), (scan,))
        for name, table in tables.items()
    }
    return Catalog(relations, {"memory": Source("memory")})


def arrivals(tables: Mapping[str, pa.Table], batch: int) -> list[list[Arrival]]:
    """The tables in batches, interleaved so that all come to their ends together; in rounds of as many batches as
    there are tables."""
    timed: list[tuple[float, Arrival]] = []
    for name, table in tables.items():
        chunks = table.combine_chunks().to_batches(max_chunksize=batch)
        timed += [((i + 1) / len(chunks), (name, chunk)) for i, chunk in enumerate(chunks)]
    timed.sort(key=lambda t: t[0])
    inorder = [arrival for _, arrival in timed]
    return [inorder[i : i + len(tables)] for i in range(0, len(inorder), len(tables))]


class Feed:
    """One query to be answered over and over from the same batches."""

    def __init__(self, shape: Shape, batch: int, settings: Settings, hands: Hands) -> None:
        self._sql = shape.sql
        self._catalog = catalog_of(shape.tables)
        self._rounds = arrivals(shape.tables, batch)
        self._settings = settings
        self._hands = hands

    def run(self) -> pa.Table:
        """From SQL text to all answers, with SteMs of its own. A round lands, then the eddy turns until it is idle."""
        query = understand(self._sql, self._catalog)
        house = House(perf_counter, effort, hands=self._hands)
        stages = Stages(query, verdicts_of(query, self._catalog), house, self._settings)
        asks = {c.relation: c.number for c in stages.start().commands if isinstance(c, Ask)}
        answers: list[pa.RecordBatch] = []
        for landed in self._rounds:
            for relation, rows in landed:
                stages.admit(Arrived(asks[relation], Landing(rows)))
            _settle(stages, answers)
        for number in asks.values():
            stages.admit(Exhausted(number, SEED, landings=()))
        _settle(stages, answers)
        if not stages.finished:
            raise RuntimeError("everything has arrived, and the query goes on")
        return pa.Table.from_batches(answers, query.schema)


def _settle(stages: Stages, answers: list[pa.RecordBatch]) -> None:
    while not stages.idle:
        answers += stages.turn(_HOPS).answers


def settings_of(policy: str, order: Sequence[int]) -> Settings:
    """The engine's own defaults but for the policy."""
    return Settings(policy=policy, order=tuple(order))
