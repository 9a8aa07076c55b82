"""A query that is fed straight into the engine, batch by batch as a case says, by one policy after another.

No socket and no waiting: what a real run would wait for has come, and only the order in which it comes is kept. So the
seconds are those that the thread has worked, whatever else the machine does meanwhile.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from time import perf_counter, thread_time

import pyarrow as pa
import pyarrow.compute as pc

from bench.feeding import Arrival, catalog_of
from bench.papers.turns import in_turns
from bench.papers.watching import Eyes
from mediator.answering import verdicts_of
from mediator.assembly import House, Settings
from mediator.clock import effort
from mediator.flow.events import SEED, Arrived, Ask, Exhausted, Landing
from mediator.query.understand import understand
from mediator.stages import Stages

_HOPS = 64


@dataclass(frozen=True, slots=True)
class Outcome:
    """One run: how many answers, a sum over them that does not depend on their order, and seconds of work."""

    answers: int
    total: int
    seconds: float


class Case:
    """A query, its tables, and in which batches and rounds they come. What lands in one round is built together."""

    def __init__(self, sql: str, tables: Mapping[str, pa.Table], rounds: Sequence[Sequence[Arrival]]) -> None:
        self.sql = sql
        self.tables = tables
        self.rounds = rounds
        catalog = catalog_of(tables)
        self.query = understand(sql, catalog)
        self._verdicts = verdicts_of(self.query, catalog)
        last = {name: number for number, landed in enumerate(rounds) for name, _ in landed}
        self._ends: list[list[str]] = [[] for _ in rounds]
        for name, number in last.items():
            self._ends[number].append(name)

    def run(self, settings: Settings) -> Outcome:
        """From an empty engine to all answers."""
        with _collected():
            began = thread_time()
            answers = self._answered(settings)
            seconds = thread_time() - began
        return _outcome(answers, seconds)

    def watch(self, settings: Settings) -> tuple[Outcome, Eyes]:
        """The same with every step that a batch took seen. Its seconds are some more than without."""
        eyes = Eyes()
        with _collected():
            began = thread_time()
            answers = self._answered(settings, eyes)
            seconds = thread_time() - began
        return _outcome(answers, seconds), eyes

    def _answered(self, settings: Settings, eyes: Eyes | None = None) -> list[pa.RecordBatch]:
        watch = None if eyes is None else eyes.watch
        stages = Stages(self.query, self._verdicts, House(perf_counter, effort), settings, watch=watch)
        asks = {c.relation: c.number for c in stages.start().commands if isinstance(c, Ask)}
        answers: list[pa.RecordBatch] = []
        for number, (landed, ended) in enumerate(zip(self.rounds, self._ends, strict=True)):
            if eyes is not None:
                eyes.now = number
            for relation, rows in landed:
                stages.admit(Arrived(asks[relation], Landing(rows)))
            for relation in ended:
                stages.admit(Exhausted(asks[relation], SEED, landings=()))
            while not stages.idle:
                answers += stages.turn(_HOPS).answers
        if not stages.finished:
            raise RuntimeError("everything has arrived, and the query goes on")
        return answers


def raced(case: Case, entries: Mapping[str, Settings], rounds: int) -> dict[str, list[Outcome]]:
    """Every contestant so many times, in turns that begin with another one each time. Raises `RuntimeError` when their
    answers differ."""
    found = in_turns({name: partial(case.run, settings) for name, settings in entries.items()}, rounds)
    agreed({name: run for name, runs in found.items() for run in runs[:1]})
    return found


def agreed(outcomes: Mapping[str, Outcome]) -> tuple[int, int]:
    """The number of answers and their sum, on which all have to agree."""
    sums = {(o.answers, o.total) for o in outcomes.values()}
    if len(sums) != 1:
        said = {name: (o.answers, o.total) for name, o in outcomes.items()}
        raise RuntimeError(f"the answers differ: {said}")
    return sums.pop()


def best(outcomes: Sequence[Outcome]) -> float:
    """Of all rounds: what others on the machine did to it least."""
    return min(o.seconds for o in outcomes)


def expected(case: Case) -> tuple[int, int]:
    """What DuckDB finds: the number of answers, and their sum."""
    import duckdb

    with duckdb.connect() as connection:
        for name, table in case.tables.items():
            connection.register(name, table)
        answers: pa.Table = connection.sql(case.sql).to_arrow_table()
    return answers.num_rows, _total(answers.to_batches())


def _outcome(answers: Sequence[pa.RecordBatch], seconds: float) -> Outcome:
    return Outcome(sum(b.num_rows for b in answers), _total(answers), seconds)


def _total(answers: Sequence[pa.RecordBatch]) -> int:
    """Over all columns that are numbers, each weighing differently, so that no two can change places."""
    sums = [
        (at + 1) * (pc.sum(column).as_py() or 0)
        for batch in answers
        for at, column in enumerate(batch.columns)
        if pa.types.is_integer(column.type)
    ]
    return int(sum(sums))


@contextmanager
def _collected() -> Iterator[None]:
    """Garbage is collected before, and not meanwhile."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
