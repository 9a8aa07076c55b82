"""A scan and two external indexes in real time: each index answers one lookup after the other, and its speed changes.

Rows of the scan come when they are due; the engine asks, the indexes queue what they are asked and take their time, and
what they answer goes back in. Nothing is simulated: time is the event loop's, and an index that takes its time sleeps.
"""

from __future__ import annotations

import asyncio
import gc
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import pyarrow as pa

from bench.papers.indexes import Index, catalog_with
from bench.papers.runs import Look, Run, stages_of
from mediator.answering import verdicts_of
from mediator.assembly import House, Settings
from mediator.clock import effort
from mediator.eddy.policy import Policy
from mediator.flow.events import SEED, Arrived, Ask, Binding, Cancel, Event, Exhausted, Landing
from mediator.query.understand import understand
from mediator.stages import Stages, Work

_HOPS = 64
_TOGETHER = 256  # lookups that are answered at once at most
_FINE = 5e-4  # seconds that are not worth going to sleep for: they are slept with the next
_LATE = 2e-3  # seconds by which a sleeper may wake up late, and that it makes good with the next lookups

# Seconds that a lookup takes, by its binding and by how long the run has been going on.
Cost = Callable[[object, float], float]
Admit = Callable[[Event], None]


class Server:
    """An index that answers in the order in which it is asked, one lookup at a time."""

    def __init__(self, index: Index, cost: Cost, admit: Admit) -> None:
        self._index = index
        self._cost = cost
        self._admit = admit
        self._queue: deque[tuple[int, Binding]] = deque()
        self._stirred = asyncio.Event()
        self.answered = 0

    def ask(self, ask: Ask) -> None:
        self._queue += [(ask.number, binding) for binding in ask.bindings]
        self._stirred.set()

    def cancel(self, cancel: Cancel) -> None:
        gone = set(cancel.bindings)
        self._queue = deque(q for q in self._queue if q[0] != cancel.ask or (gone and q[1] not in gone))

    async def serve(self) -> None:
        """Until it is cancelled."""
        loop = asyncio.get_running_loop()
        began = due = loop.time()
        done: list[tuple[int, Binding]] = []
        while True:
            if not self._queue:
                self._answer(done)
                self._stirred.clear()
                await self._stirred.wait()
                due = loop.time()
            number, binding = self._queue.popleft()
            now = loop.time()
            due = max(due, now - _LATE) + self._cost(binding[0], now - began)
            if due - now > _FINE:
                self._answer(done)
                await asyncio.sleep(due - now)
            done.append((number, binding))
            if len(done) == _TOGETHER:
                self._answer(done)
                await asyncio.sleep(0)

    def _answer(self, done: list[tuple[int, Binding]]) -> None:
        by_ask: dict[int, list[Binding]] = {}
        for number, binding in done:
            by_ask.setdefault(number, []).append(binding)
        for number, bindings in by_ask.items():
            landing = Landing(self._index.found(tuple(bindings)))
            if landing.rows.num_rows:
                self._admit(Arrived(number, landing))
            self._admit(Exhausted(number, tuple(bindings), landings=(landing,)))
        self.answered += len(done)
        done.clear()


class Live:
    """A query over a relation that a scan brings in so many seconds, and indexes whose costs are given."""

    def __init__(
        self,
        sql: str,
        scanned: str,
        table: pa.Table,
        indexes: Mapping[Index, Cost],
        batch: int,
        seconds: float,
    ) -> None:
        catalog = catalog_with({scanned: table}, *indexes)
        self._indexes = indexes
        self._query = understand(sql, catalog)
        self._verdicts = verdicts_of(self._query, catalog)
        self._batches = table.combine_chunks().to_batches(max_chunksize=batch)
        self._seconds = seconds

    def run(self, settings: Settings, instead: Policy | None = None, after: Look | None = None) -> Run:
        """Once, with SteMs of its own, in an event loop of its own."""
        gc.collect()
        return asyncio.run(self._run(settings, instead, after))

    async def _run(self, settings: Settings, instead: Policy | None, after: Look | None) -> Run:
        loop = asyncio.get_running_loop()
        stages = stages_of(self._query, self._verdicts, House(loop.time, effort), settings, instead)
        (eddy,) = stages.eddies().values()
        going = _Going(stages, self._indexes)
        look = (lambda: None) if after is None else partial(after, eddy)
        began = loop.time()
        async with asyncio.TaskGroup() as group:
            others = [group.create_task(server.serve()) for server in going.servers.values()]
            group.create_task(going.scan(self._batches, self._seconds, look))
            await going.turn()
            for other in others:
                other.cancel()
        asked = {name: server.answered for name, server in going.servers.items()}
        run = Run.of(loop.time() - began, going.answers, eddy, going.curve, asked)
        run.served = [(0.0, 0.0), *going.served]
        return run


class _Going:
    """One run: the engine's turns, and who it asks."""

    def __init__(self, stages: Stages, indexes: Mapping[Index, Cost]) -> None:
        self.answers: list[pa.RecordBatch] = []
        self.curve: list[tuple[float, int]] = []
        self.served: list[tuple[float, float]] = []
        self.servers = {index.relation: Server(index, cost, self._admit) for index, cost in indexes.items()}
        self._stages = stages
        self._asked: dict[int, Server] = {}
        self._scan = 0
        self._stirred = asyncio.Event()
        self._began = asyncio.get_running_loop().time()
        self._take(stages.start())

    async def scan(self, batches: Sequence[pa.RecordBatch], seconds: float, look: Callable[[], None]) -> None:
        """Bring the rows in, each batch when it is due; have a look before the next one."""
        loop = asyncio.get_running_loop()
        for number, batch in enumerate(batches):
            await asyncio.sleep(self._began + seconds * number / len(batches) - loop.time())
            look()
            self._admit(Arrived(self._scan, Landing(batch)))
        self._admit(Exhausted(self._scan, SEED, landings=()))

    async def turn(self) -> None:
        """Let the engine turn until it is finished."""
        while not self._stages.finished:
            if self._stages.idle:
                self._stirred.clear()
                await self._stirred.wait()
            self._take(self._stages.turn(_HOPS))
            await asyncio.sleep(0)

    def _admit(self, event: Event) -> None:
        self._stages.admit(event)
        self._stirred.set()
        if isinstance(event, Exhausted) and event.ask in self._asked:
            total = len(event.bindings) + (self.served[-1][1] if self.served else 0.0)
            self.served.append((asyncio.get_running_loop().time() - self._began, total))

    def _take(self, work: Work) -> None:
        for command in work.commands:
            match command:
                case Ask(bind_set=()):
                    self._scan = command.number
                case Ask():
                    self._asked[command.number] = self.servers[command.relation]
                    self._asked[command.number].ask(command)
                case Cancel() if command.ask in self._asked:
                    self._asked[command.ask].cancel(command)
        if work.answers:
            self.answers += work.answers
            now = asyncio.get_running_loop().time()
            self.curve.append((now - self._began, sum(b.num_rows for b in work.answers)))
