"""A query that is fed by hand: its scans' rows come round by round, and indexes answer as soon as they are asked."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Mapping, Sequence
from time import perf_counter, sleep

import pyarrow as pa

from bench.feeding import Arrival
from bench.papers.indexes import Index
from bench.papers.runs import Look, Run, stages_of
from mediator.answering import verdicts_of
from mediator.assembly import House, Settings
from mediator.catalog.model import Catalog
from mediator.clock import effort
from mediator.eddy.policy import Policy
from mediator.flow.events import SEED, Arrived, Ask, Exhausted, Landing
from mediator.query.understand import understand
from mediator.stages import Stages, Work

_HOPS = 64

Clock = Callable[[], float]


class Fed:
    """The clock runs from an engine without a row to the last answer; an index takes its time on it."""

    def __init__(
        self,
        sql: str,
        catalog: Catalog,
        rounds: Sequence[Sequence[Arrival]],
        indexes: Iterable[Index] = (),
        clock: Clock = perf_counter,
        pause: float = 0.0,
    ) -> None:
        """`pause` is how many seconds there are from one round to the next; without, they follow at once."""
        self._pause = pause
        self._query = understand(sql, catalog)
        self._verdicts = verdicts_of(self._query, catalog)
        self._rounds = rounds
        self._indexes = {index.relation: index for index in indexes}
        self._clock = clock

    def run(self, settings: Settings, instead: Policy | None = None, after: Look | None = None) -> Run:
        """Once, with SteMs of its own."""
        house = House(perf_counter, effort)
        stages = stages_of(self._query, self._verdicts, house, settings, instead)
        (eddy,) = stages.eddies().values()
        gc.collect()
        gc.disable()
        try:
            feeding = _Feeding(stages, self._indexes, self._clock)
            feeding.go(self._rounds, self._pause, (lambda: None) if after is None else (lambda: after(eddy)))
        finally:
            gc.enable()
        run = Run.of(feeding.ended, feeding.answers, eddy, feeding.curve, feeding.lookups)
        run.rounds = feeding.rounds
        return run


class _Feeding:
    """One run of it."""

    def __init__(self, stages: Stages, indexes: Mapping[str, Index], clock: Clock) -> None:
        self.answers: list[pa.RecordBatch] = []
        self.curve: list[tuple[float, int]] = []
        self.ended = 0.0
        self.lookups: dict[str, int] = {}
        self.rounds: list[float] = []
        self._stages = stages
        self._indexes = indexes
        self._clock = clock
        self._scans: dict[str, int] = {}  # the number of each scan's ask
        self._asked: list[Ask] = []

    def go(self, rounds: Sequence[Sequence[Arrival]], pause: float, after: Callable[[], None]) -> None:
        self._began = self._clock()
        self._take(self._stages.start())
        for number, landed in enumerate(rounds):
            if pause:
                sleep(max(0.0, self._began + pause * number - self._clock()))
            self.rounds.append(self._clock() - self._began)
            for relation, rows in landed:
                self._stages.admit(Arrived(self._scans[relation], Landing(rows)))
            self._settle()
            after()
        for number in self._scans.values():
            self._stages.admit(Exhausted(number, SEED, landings=()))
        self._settle()
        self.ended = self._clock() - self._began
        if not self._stages.finished:
            raise RuntimeError("everything has arrived, and the query goes on")

    def _settle(self) -> None:
        while True:
            while not self._stages.idle:
                self._take(self._stages.turn(_HOPS))
            if not self._asked:
                return
            asked, self._asked = self._asked, []
            for ask in asked:
                self.lookups[ask.relation] = self.lookups.get(ask.relation, 0) + len(ask.bindings)
                for event in self._indexes[ask.relation].answer(ask):
                    self._stages.admit(event)

    def _take(self, work: Work) -> None:
        for command in work.commands:
            if isinstance(command, Ask):
                if command.bind_set:
                    self._asked.append(command)
                else:
                    self._scans[command.relation] = command.number
        if work.answers:
            self.answers += work.answers
            self.curve.append((self._clock() - self._began, sum(b.num_rows for b in work.answers)))
