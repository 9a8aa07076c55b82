"""Runs a federated query under a virtual clock, without sockets: what it asks of its sites, and when its rows come.

A site takes its time for a lookup, and answers so many at once; a scan sends its pages one after another. Time passes
only for the sites.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import count

import numpy as np
import pyarrow as pa

from bench.papers.federations import Federation
from mediator.answering import verdicts_of
from mediator.assembly import House, Settings
from mediator.flow.events import Arrived, Ask, Binding, Cancel, Exhausted, Landing
from mediator.query.understand import understand
from mediator.stages import Stages, Work

AT_ONCE = 8  # lookups that one table's site has under way
PAGE = 100  # rows
_HOPS = 64
_LATENCY = (0.05, 0.5)  # seconds of a lookup, and of a page: each table has its own


@dataclass(slots=True)
class Told:
    """What a run came to."""

    lookups: int = 0  # that were sent
    by_table: dict[str, int] = field(default_factory=dict)
    pages: int = 0
    rows: int = 0
    first: float = 0.0  # virtual seconds to the first row
    ended: float = 0.0
    answers: pa.Table | None = None


class Sites:
    """All tables of a federation, each at a site of its own."""

    def __init__(self, federation: Federation, told: Told, at_once: int = AT_ONCE) -> None:
        random = np.random.default_rng(federation.seed)
        self.now = 0.0
        self._told = told
        self._at_once = at_once
        self._tables = federation.tables
        self._latency = {name: float(random.uniform(*_LATENCY)) for name in federation.tables}
        self._found: dict[tuple[str, tuple[str, ...]], Mapping[Binding, list[int]]] = {}
        self._waiting: dict[str, deque[tuple[Ask, Binding]]] = {name: deque() for name in federation.tables}
        self._under_way = dict.fromkeys(federation.tables, 0)
        self._unwanted: set[tuple[int, Binding]] = set()
        self._over: set[int] = set()
        self._agenda: list[tuple[float, int, Callable[[Stages], None]]] = []
        self._number = count()

    @property
    def busy(self) -> bool:
        return bool(self._agenda)

    def obey(self, command: Ask | Cancel) -> None:
        if isinstance(command, Cancel):
            self._unwanted.update((command.ask, b) for b in command.bindings)
            self._over |= set() if command.bindings else {command.ask}
        elif command.bind_set:
            self._waiting[command.relation] += [(command, binding) for binding in command.bindings]
            self._send(command.relation)
        else:
            self._scan(command)

    def step(self, stages: Stages) -> None:
        """Let time go on to the next moment at which anything happens, and let it all happen."""
        self.now = self._agenda[0][0]
        while self._agenda and self._agenda[0][0] <= self.now:
            heapq.heappop(self._agenda)[2](stages)

    def _scan(self, ask: Ask) -> None:
        table, landings = self._tables[ask.relation], []
        at = self.now
        for place, batch in enumerate(table.combine_chunks().to_batches(max_chunksize=PAGE)):
            at += self._latency[ask.relation]
            landing = Landing(batch, place=place)
            landings.append(landing)
            self._later(at, ask, lambda s, landing=landing: s.admit(Arrived(ask.number, landing)))  # type: ignore[misc]
            self._told.pages += 1
        self._later(at, ask, lambda s: s.admit(Exhausted(ask.number, ((),), landings=landings)))

    def _send(self, name: str) -> None:
        """Lookups leave while the site has room for them."""
        while self._waiting[name] and self._under_way[name] < self._at_once:
            ask, binding = self._waiting[name].popleft()
            if ask.number in self._over or (ask.number, binding) in self._unwanted:
                continue
            self._under_way[name] += 1
            self._told.lookups += 1
            self._told.by_table[name] = self._told.by_table.get(name, 0) + 1
            answer = partial(self._answer, ask=ask, binding=binding)
            self._later(self.now + self._latency[name], None, answer)

    def _answer(self, stages: Stages, ask: Ask, binding: Binding) -> None:
        self._under_way[ask.relation] -= 1
        self._send(ask.relation)
        if ask.number in self._over or (ask.number, binding) in self._unwanted:
            return
        rows = self._matching(ask.relation, ask.bind_set).get(binding, [])
        landings = [
            Landing(batch)
            for batch in self._tables[ask.relation].take(pa.array(rows, pa.int64())).to_batches()
        ]
        for landing in landings:
            stages.admit(Arrived(ask.number, landing))
        stages.admit(Exhausted(ask.number, (binding,), landings=landings))

    def _matching(self, name: str, bind_set: tuple[str, ...]) -> Mapping[Binding, list[int]]:
        found = self._found.get((name, bind_set))
        if found is None:
            rows: dict[Binding, list[int]] = {}
            columns = [self._tables[name].column(field_).to_pylist() for field_ in bind_set]
            for number, binding in enumerate(zip(*columns, strict=True)):
                rows.setdefault(binding, []).append(number)
            found = self._found[name, bind_set] = rows
        return found

    def _later(self, at: float, ask: Ask | None, happen: Callable[[Stages], None]) -> None:
        def unless_over(stages: Stages) -> None:
            if ask is None or ask.number not in self._over:
                happen(stages)

        heapq.heappush(self._agenda, (at, next(self._number), unless_over))


def _over(stages: Stages) -> bool:
    return stages.finished


def run(federation: Federation, settings: Settings, at_once: int = AT_ONCE) -> Told:
    """Answer the federation's query to its end."""
    told = Told()
    sites = Sites(federation, told, at_once)
    query = understand(federation.sql, federation.catalog)
    house = House(lambda: sites.now)
    stages = Stages(query, verdicts_of(query, federation.catalog), house, settings)
    answers: list[pa.RecordBatch] = []

    def do(work: Work) -> None:
        for batch in work.answers:
            if not told.rows:
                told.first = sites.now
            told.rows += batch.num_rows
            answers.append(batch)
        for command in work.commands:
            sites.obey(command)

    do(stages.start())
    while not _over(stages):
        if not sites.busy and stages.idle:
            raise RuntimeError(f"seed {federation.seed}: nothing moves, and the query has not ended")
        if stages.idle:
            sites.step(stages)
        while not stages.idle:
            do(stages.turn(_HOPS))
        do(stages.turn())
    told.ended = sites.now
    if not stages.report().complete:
        raise RuntimeError(f"seed {federation.seed}: incomplete: {stages.report()}")
    told.answers = pa.Table.from_batches(answers, query.schema)
    return told
