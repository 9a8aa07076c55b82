"""A case of the any-route search, answered by cells: what arrives when, who turns when, who is made anew, is drawn."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import count
from random import Random

from mediator.assembly import POLICIES, Settings
from mediator.binding.verdict import verdict
from mediator.errors import Unanswerable
from mediator.flow.events import Arrived, Ask, Event, Exhausted, Failed
from mediator.query.model import Block, BlockStage
from mediator.query.understand import understand
from pipeline.cells.cell import Cell, Said
from pipeline.cells.envelopes import Envelope, Lookup
from pipeline.cells.hashing import hashed
from pipeline.cells.hypercube import Hypercube, hypercube
from pipeline.cells.packing import packed, unpacked
from pipeline.cells.wings import Winged, winged
from tests.any_route.drawing import Case
from tests.any_route.search import Row, answers
from tests.any_route.sources import Sources
from tests.pipeline.hub import Hub


@dataclass
class Scattered:
    """What became of one statement."""

    statement: str
    cube: Hypercube | Winged
    true: Counter[Row]
    rows: Counter[Row] = field(default_factory=Counter)
    answered_by: Counter[int] = field(default_factory=Counter)
    lookups: Counter[Lookup] = field(default_factory=Counter)
    missing: list[tuple[str, tuple[str, ...], tuple[object, ...]]] = field(default_factory=list)
    rebuilt: int = 0


def block_of(case: Case, statement: str) -> Block | None:
    """None where no source can be asked."""
    query = understand(statement, case.catalog)
    (stage,) = query.stages
    assert isinstance(stage, BlockStage)
    try:
        verdict(stage.block, statement)
    except Unanswerable:
        return None
    return stage.block


def _drawn_heavy(cube: Hypercube, case: Case, random: Random) -> dict[int, dict[int, float]]:
    """Some values of each dimension, of which it is said that they stand in many rows."""
    found: dict[int, dict[int, float]] = {}
    for number, dimension in enumerate(cube.dimensions):
        alias, field = random.choice(list(dimension.fields.items()))
        table = case.tables.get(cube.block.aliases[alias].relation.name)
        if table is not None and field in table.schema.names and len(table):
            numbers, there = hashed(table[field].combine_chunks())
            some = random.sample(range(len(table)), min(len(table), random.choice((1, 2, 3))))
            found[number] = {int(numbers[n]): random.choice((0.1, 0.6)) for n in some if there[n]}
    return found


class _Run:
    def __init__(self, case: Case, statement: str, block: Block, cells: int, random: Random) -> None:
        self._random = random
        self._sources = Sources(case, random)
        self._relations = case.catalog.relations
        self._verdict = verdict(block, statement)
        sizes = [random.choice((1.0, 10.0, 1000.0)) for _ in block.aliases]
        cube = hypercube(block, sizes, cells)
        if random.random() < 0.5:
            cube = winged(cube, sizes, _drawn_heavy(cube, case, random))
        self.found = Scattered(statement, cube, answers(statement, case.tables))
        self._hub = Hub(cube)
        self._cells = [self._made(n) for n in range(cube.cells)]
        self._waiting: list[list[Envelope]] = [[] for _ in self._cells]
        self._told: list[list[list[Envelope]]] = [[] for _ in self._cells]  # by epoch
        self._numbers = count()

    def _made(self, number: int) -> Cell:
        order = list(range(len(self.found.cube.block.aliases)))
        self._random.shuffle(order)
        settings = Settings(
            policy=self._random.choice(("random", *POLICIES)),
            order=tuple(order),
            seed=self._random.randrange(1 << 30),
            largest_batch=self._random.choice((1, 2, 7, 1000)),
            room=self._random.choice((1, 3, 1000)),
        )
        return Cell(self.found.cube, number, self._verdict, settings)

    def run(self) -> Scattered:
        begun = [False] * len(self._cells)
        while True:
            for n in range(len(self._cells)):
                self._waiting[n] += self._hub.due(n)
            ready = [n for n in range(len(self._cells)) if self._waiting[n] or not begun[n]]
            if ready and (not self._sources.busy or self._random.random() < 0.4):
                number = self._random.choice(ready)
                begun[number] = True
                self._turn(number)
                if self._random.random() < 0.05:
                    self._rebuild(self._random.randrange(len(self._cells)), begun)
            elif self._sources.busy:
                self._sources.step()
            elif not ready:
                break
        for cell in self._cells:
            assert cell.finished, f"{self.found.statement}: it waits for {cell.open}"
            for relation, bind_set, binding, _ in cell.eddy.asking.missing():
                self.found.missing.append((relation, bind_set, binding))
        return self.found

    def _turn(self, number: int) -> None:
        waiting = self._waiting[number]
        some = [self._carried(e) for e in waiting[: self._random.randint(1, len(waiting))]] if waiting else []
        del waiting[: len(some)]
        self._random.shuffle(some)  # they may have been read in any order
        self._told[number].append(some)
        said = self._cells[number].epoch(some)
        for batch in said.answers:
            rows = list(zip(*(c.to_pylist() for c in batch.columns), strict=True))
            self.found.rows.update(rows)
            self.found.answered_by[number] += len(rows)
        self._ask(number, said)

    def _carried(self, envelope: Envelope) -> Envelope:
        """As it is on the other side of whatever carries it."""
        return unpacked(packed(envelope, self._relations), self._relations)

    def _ask(self, number: int, said: Said) -> None:
        for lookup in self._hub.asked(number, said.asks):
            self.found.lookups[lookup] += 1
            self._sources.ask(
                Ask(next(self._numbers), *lookup[:3], (lookup.binding,)), _Delivery(self._hub, lookup)
            )

    def _rebuild(self, number: int, begun: list[bool]) -> None:
        """Of what it was told alone."""
        if not begun[number]:
            return
        self.found.rebuilt += 1
        cell = self._cells[number] = self._made(number)
        for epoch in self._told[number]:
            self._ask(number, cell.epoch(epoch))


class _Delivery:
    """What comes of one lookup."""

    def __init__(self, hub: Hub, lookup: Lookup) -> None:
        self._hub, self._lookup = hub, lookup
        self._landings: list[int] = []

    def __call__(self, event: Event) -> None:
        match event:
            case Arrived(_, landing):
                self._landings.append(self._hub.came((self._lookup,), landing.rows))
            case Exhausted():
                self._hub.over(self._lookup, event.at, event.until, self._landings)
            case Failed():
                self._hub.broken(self._lookup, event.cause)


def scattered(case: Case, statement: str, cells: int, random: Random) -> Scattered | None:
    """None where no source can be asked."""
    block = block_of(case, statement)
    return None if block is None else _Run(case, statement, block, cells, random).run()
