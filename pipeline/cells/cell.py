"""One cell of a block: an eddy over the rows that were sent here.

All that it knows came in envelopes, and all rows that have come meet within the epoch, whoever asked for them. So
another cell that is given the same envelopes in the same order has found the same answers. What it asks for may differ,
as routes do, but nothing that was answered is asked again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa

from mediator.assembly import House, Settings, assemble
from mediator.binding.model import Verdict
from mediator.eddy.floating import Floating
from mediator.flow.batch import Batch
from mediator.flow.events import Arrived, Ask, Cancel, Command, Emit, Exhausted, Failed, Landing, Urge
from mediator.query.model import ROW_ID, Block, Column
from mediator.state.stem import SteM
from pipeline.cells.envelopes import Broken, Came, Envelope, Lookup, Over
from pipeline.cells.hypercube import Hypercube
from pipeline.cells.naming import Naming
from pipeline.cells.wings import Winged

_HOPS = 64


@dataclass
class Said:
    """What came of an epoch."""

    answers: list[pa.RecordBatch] = field(default_factory=list)
    asks: list[Lookup] = field(default_factory=list)
    unwanted: list[Lookup] = field(default_factory=list)


class Cell:
    def __init__(
        self,
        cube: Hypercube | Winged,
        number: int,
        verdict: Verdict,
        settings: Settings,
        house: House | None = None,
        floating: Floating | None = None,
    ) -> None:
        self._cube, self._number = cube, number
        # Whatever has come is as good for this query as on the day that it came: what is fresh is decided outside.
        self.eddy = assemble(cube.block, verdict, house or House(lambda: 0.0), settings, floating=floating)
        self._landings: dict[int, Landing] = {}
        self._came: dict[Lookup, list[Landing]] = {}
        self._ended: dict[Lookup, Over | Broken] = {}
        self._open: dict[Lookup, int] = {}  # lookups that the eddy waits for, and the numbers of its asks
        self._said = Said()
        self._namings: dict[str, Naming] = {}  # by relation
        self._begun = False

    @property
    def block(self) -> Block:
        return self._cube.block

    @property
    def finished(self) -> bool:
        return self.eddy.finished

    @property
    def size(self) -> int:
        """Bytes of memory that its rows take, about."""
        return sum(stem.size for stem in self._stems)

    @property
    def rows(self) -> int:
        return sum(stem.store.n for stem in self._stems)

    @property
    def _stems(self) -> Iterable[SteM]:
        return {id(view.stem): view.stem for view in self.eddy.run.views.values()}.values()

    @property
    def open(self) -> Sequence[Lookup]:
        """What its eddy still waits for."""
        return tuple(self._open)

    def epoch(self, envelopes: Iterable[Envelope]) -> Said:
        """Take in what has come, and do all that can be done with it."""
        if not self._begun:
            self._begun = True
            self._obey(self.eddy.start())
        for envelope in envelopes:
            self._take(envelope)
        # One that waits for nothing takes turns until it knows that it has finished.
        while not self.eddy.idle or not (self.eddy.finished or self._open):
            self._obey(self.eddy.turn(_HOPS))
        said, self._said = self._said, Said()
        return said

    def stop(self) -> Said:
        """End it with what was found so far."""
        self._obey(self.eddy.stop())
        said, self._said = self._said, Said()
        return said

    def _take(self, envelope: Envelope) -> None:
        match envelope:
            case Came(lookups, number, rows):
                landing = self._landings[number] = Landing(rows)
                for lookup in lookups:
                    self._came.setdefault(lookup, []).append(landing)
                waiting = {self._open[lookup] for lookup in lookups if lookup in self._open}
                for ask in sorted(waiting):
                    self.eddy.admit(Arrived(ask, landing))
                # What others asked for is taken as well: a cell that took another route has asked for it itself, and
                # all that has come is to meet in both.
                if not waiting and not self.eddy.finished:
                    self.eddy.asking.take(lookups[0].relation, landing)
            case Over() | Broken():
                self._ended[envelope.lookup] = envelope
                if envelope.lookup in self._open:
                    self._end(self._open.pop(envelope.lookup), envelope)

    def _end(self, ask: int, envelope: Over | Broken) -> None:
        lookup = envelope.lookup
        if isinstance(envelope, Broken):
            self.eddy.admit(Failed(ask, (lookup.binding,), envelope.cause))
            return
        landings = [self._landings[n] for n in envelope.landings if n in self._landings]
        self.eddy.admit(Exhausted(ask, (lookup.binding,), envelope.at, envelope.until, landings=landings))

    def _obey(self, commands: Iterable[Command]) -> None:
        emitted: list[Batch] = []
        for command in commands:
            match command:
                case Ask():  # looked over again: an earlier answer of this turn may have made it needless
                    wanted = self.eddy.asking.still_wanted(command)
                    if wanted is not None:
                        self._ask(wanted)
                case Cancel():
                    self._cancel(command)
                case Emit(batch):
                    emitted.append(batch)
                case Urge():
                    pass  # what is urgent here may not be elsewhere
        for batch in emitted:
            self._answer(batch)

    def _ask(self, ask: Ask) -> None:
        """What has come already is handed over, what has not is asked for."""
        handed: dict[int, Landing] = {}
        for binding in ask.bindings:
            lookup = Lookup(ask.relation, ask.method, ask.bind_set, binding)
            handed |= {id(landing): landing for landing in self._came.get(lookup, ())}
        for landing in handed.values():
            self.eddy.admit(Arrived(ask.number, landing))
        for binding in ask.bindings:
            lookup = Lookup(ask.relation, ask.method, ask.bind_set, binding)
            ended = self._ended.get(lookup)
            if ended is not None:
                self._end(ask.number, ended)
            else:
                self._open[lookup] = ask.number
                self._said.asks.append(lookup)

    def _cancel(self, cancel: Cancel) -> None:
        for lookup, ask in list(self._open.items()):
            if ask == cancel.ask and (not cancel.bindings or lookup.binding in cancel.bindings):
                del self._open[lookup]
                self._said.unwanted.append(lookup)

    def _answer(self, batch: Batch) -> None:
        run = self.eddy.run
        columns: dict[Column, pa.Array] = {}
        for output in self.block.outputs:
            if output.column not in columns:
                columns[output.column] = self._gathered(batch, output.column)
        schema = self.block.schema
        rows = pa.RecordBatch.from_arrays([columns[o.column] for o in self.block.outputs], schema=schema)
        if self._cube.checks:
            for point in self._cube.points:
                if point is not None and point not in columns:
                    columns[point] = run.gather(batch, point)
            rows = rows.filter(pa.array(self._cube.own(self._number, columns, len(batch))))
        if rows.num_rows:
            self._said.answers.append(rows)

    @cached_property
    def _told_apart(self) -> bool:
        """Whether somebody looks at which rows these are: where they were fetched by what an earlier stage gave. Else
        they are only counted, of a relation that may be huge."""
        relations = [alias.relation for alias in self.block.aliases]
        return any(not r.methods[0].mirrors and r.literal is None for r in relations)

    def _gathered(self, batch: Batch, column: Column) -> pa.Array:
        """As it is in all cells, also where it says which row this is."""
        values = self.eddy.run.gather(batch, column)
        if column.field != ROW_ID or not self._told_apart:
            return values
        relation = self.block.aliases[column.alias].relation
        if relation.name not in self._namings:
            store = self.eddy.run.store(batch, column.alias)
            self._namings[relation.name] = Naming(store, not relation.repeats)
        return self._namings[relation.name].names(values)
