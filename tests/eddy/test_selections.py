"""Costly selections are modules of their own: any order of them is legal, and the one that pays is found, also where
they are correlated. What a row costs is scripted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import permutations

import numpy as np
import pyarrow as pa
import pytest

from bench.feeding import catalog_of
from mediator.answering import verdicts_of
from mediator.assembly import House, Settings, assemble
from mediator.catalog.functions import Function
from mediator.eddy.constraints import Graph, legal
from mediator.eddy.destinations import Destination, Leave, Select
from mediator.eddy.eddy import Eddy
from mediator.eddy.floating import WidestFirst
from mediator.eddy.policies.usual import Usual
from mediator.eddy.policy import Situation, Visit
from mediator.eddy.run import Run
from mediator.eddy.selecting import SLICE, Selecting
from mediator.flow.batch import Signature
from mediator.flow.events import SEED, Arrived, Ask, Emit, Exhausted, Landing
from mediator.query.model import Block, BlockStage
from mediator.query.understand import understand
from mediator.state.stem import SteM

ROWS, BATCH = 40_000, 200


class Time:
    """A clock that only the functions of a test move; a little goes by whenever it is looked at."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1e-7
        return self.now


class InOrder(Usual):
    """Selections in one given order."""

    def __init__(self, order: Sequence[int]) -> None:
        super().__init__()
        self._order = list(order)

    def choose(self, signature: Signature, legal: Sequence[Destination], situation: Situation) -> Destination:
        return min(legal, key=lambda d: self._order.index(d.predicate) if isinstance(d, Select) else -1)

    def learn(self, visit: Visit) -> bool | None:
        return None


class Selections:
    """`SELECT k FROM u WHERE f0(c0) = 1 AND f1(c1) = 1 ...`: each function gives its column as it is, in some time."""

    def __init__(
        self, passing: Sequence[np.ndarray], seconds: Sequence[float], declared: bool = False
    ) -> None:
        self.time = Time()
        self.called = [0] * len(passing)
        self._seconds = seconds
        functions = [
            Function(
                f"f{n}",
                (pa.int64(),),
                pa.int64(),
                self._called(n),
                seconds=s if declared else None,
                apart=True,
            )
            for n, s in enumerate(seconds)
        ]
        columns = {f"c{n}": pa.array(p.astype(np.int64)) for n, p in enumerate(passing)}
        self.table = pa.table({"k": np.arange(len(passing[0])), **columns})
        where = " AND ".join(f"f{n}(c{n}) = 1" for n in range(len(passing)))
        self.catalog = catalog_of({"u": self.table}).knowing(functions)
        self.query = understand(f"SELECT k FROM u WHERE {where}", self.catalog)
        self.expected = np.flatnonzero(np.logical_and.reduce(passing)).tolist()

    @property
    def block(self) -> Block:
        (stage,) = self.query.stages
        assert isinstance(stage, BlockStage)
        return stage.block

    def run(self, policy: Usual | None = None, batch: int = BATCH, **said: object) -> list[int]:
        """Its answers; by the default policy unless another is given."""
        settings = Settings(**said)  # type: ignore[arg-type]
        (verdict,) = verdicts_of(self.query, self.catalog).values()
        house = House(self.time, self.time)
        stems = {"u": SteM(self.block.aliases[0].relation)}
        run = Run(self.block, stems, settings.largest_batch)
        if policy is None:
            eddy = assemble(self.block, verdict, house, settings)
        else:
            eddy = Eddy(run, verdict, policy, WidestFirst(1), self.time, slice=settings.slice)
        (ask,) = eddy.start()
        assert isinstance(ask, Ask)
        found: list[int] = []
        for rows in self.table.to_batches(max_chunksize=batch):
            eddy.admit(Arrived(ask.number, Landing(rows)))
            found += self._turned(eddy)
        eddy.admit(Exhausted(ask.number, SEED, landings=()))
        found += self._turned(eddy)
        assert eddy.finished
        return sorted(found)

    def cost(self) -> float:
        """Seconds that the functions took."""
        return sum(calls * seconds for calls, seconds in zip(self.called, self._seconds, strict=True))

    def reset(self) -> None:
        self.called[:] = [0] * len(self.called)

    def _called(self, n: int) -> Callable[[pa.Array], pa.Array]:
        def call(values: pa.Array) -> pa.Array:
            self.called[n] += len(values)
            self.time.now += self._seconds[n] * len(values)
            return values

        return call

    def _turned(self, eddy: Eddy) -> list[int]:
        found: list[int] = []
        while True:
            for command in eddy.turn(16):
                if isinstance(command, Emit):
                    found += eddy.run.gather(command.batch, eddy.run.block.outputs[0].column).to_pylist()
            if eddy.idle:
                return found


def _drawn(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def _correlated() -> list[np.ndarray]:
    """0 and 1 pass the same rows, three tenths of them; 2 passes six tenths of all, whatever the others say."""
    random = _drawn()
    same = random.random(ROWS) < 0.3
    return [same, same, random.random(ROWS) < 0.6]


def test_each_is_a_module_and_all_orders_are_legal() -> None:
    selections = Selections(_correlated(), [1e-5] * 3)
    (verdict,) = verdicts_of(selections.query, selections.catalog).values()
    graph = Graph.of(selections.block)
    for order in permutations(range(3)):
        signature = Signature(1)
        for number in order:
            assert Select(number) in legal(signature, graph, verdict.providers, verdict.chosen)
            signature = signature._replace(passed=signature.passed | 1 << number)
        assert legal(signature, graph, verdict.providers, verdict.chosen) == (Leave(),)


@pytest.mark.parametrize("order", list(permutations(range(3))))
@pytest.mark.parametrize("slice", [0.0, SLICE])
def test_all_orders_give_the_same_answers(order: tuple[int, ...], slice: float) -> None:
    passing = [p[:600] for p in _correlated()]
    selections = Selections(passing, [1e-5] * 3)
    assert selections.run(InOrder(order), slice=slice) == selections.expected
    first, second, _ = (selections.called[number] for number in order)
    assert first == 600
    assert second == np.count_nonzero(passing[order[0]])


def _best(selections: Selections) -> tuple[float, tuple[int, ...]]:
    """The cost of the best fixed order, and which it is."""
    costs = []
    for order in permutations(range(len(selections.called))):
        selections.reset()
        assert selections.run(InOrder(order)) == selections.expected
        costs.append((selections.cost(), order))
    selections.reset()
    return min(costs)


def test_correlated_ones_are_routed_in_the_order_that_pays() -> None:
    """Alone, 1 thins out more for its cost than 2 does. After 0 it passes everything, so 2 comes before it."""
    selections = Selections(_correlated(), [1e-5, 5e-5, 3e-5])
    best, order = _best(selections)
    assert order == (0, 2, 1)
    assert selections.run() == selections.expected
    assert selections.cost() <= 1.1 * best
    assert selections.called[2] < selections.called[0]
    assert selections.called[1] < selections.called[2]


def test_a_dear_one_that_thins_out_most_comes_after_cheap_ones() -> None:
    random = _drawn()
    passing = [random.random(ROWS) < share for share in (0.1, 0.5, 0.6)]
    selections = Selections(passing, [1e-4, 5e-6, 5e-6])
    best, order = _best(selections)
    assert order == (1, 2, 0)
    assert selections.run() == selections.expected
    assert selections.cost() <= 1.1 * best


def test_two_that_pay_only_together_come_first() -> None:
    """0 and 1 exclude one another nearly, though each by itself passes more than 2 does."""
    random = _drawn()
    half = random.random(ROWS) < 0.5
    few = random.random(ROWS) < 0.02
    passing = [half | few, ~half | few, random.random(ROWS) < 0.45]
    selections = Selections(passing, [1e-5] * 3)
    best, order = _best(selections)
    assert set(order[:2]) == {0, 1}
    assert selections.run() == selections.expected
    assert selections.cost() <= 1.15 * best


# How many rows at once


def _selecting(selections: Selections, slice: float) -> tuple[Selecting, Run]:
    run = Run(selections.block, {"u": SteM(selections.block.aliases[0].relation)}, 1 << 16)
    return Selecting(run, selections.time, selections.time, slice), run


def _batch(selections: Selections, run: Run, rows: int) -> object:
    ids = run.views["u"].stem.build(Landing(selections.table.slice(0, rows).to_batches()[0]), 0.0)
    (batch,) = run.deliver("u", ids if isinstance(ids, range) else range(rows))
    return batch


def test_a_large_batch_is_tested_in_slices() -> None:
    """At first with few rows, and then with so many as take the time that is given."""
    selections = Selections([np.ones(ROWS, np.bool_)], [1e-4])
    selecting, run = _selecting(selections, 0.01)
    batch = _batch(selections, run, 10_000)
    first, rest = selecting.cut(batch, 0)  # type: ignore[arg-type]
    assert len(first) + len(rest) == 10_000  # type: ignore[arg-type]
    assert len(first) == 1_024
    selecting.test(first, 0)
    assert selecting.took == pytest.approx(0.1024, rel=0.01)
    second, _ = selecting.cut(batch, 0)  # type: ignore[arg-type]
    assert len(second) == pytest.approx(100, rel=0.01)


def test_what_is_declared_is_known_before_anything_is_tested() -> None:
    selections = Selections([np.ones(ROWS, np.bool_)], [2e-4], declared=True)
    selecting, run = _selecting(selections, 0.01)
    assert len(selecting.cut(_batch(selections, run, 5_000), 0)[0]) == 50  # type: ignore[arg-type]


def test_what_waits_takes_its_time_though_it_is_no_work() -> None:
    selections = Selections([np.ones(ROWS, np.bool_)], [1e-4])
    run = Run(selections.block, {"u": SteM(selections.block.aliases[0].relation)}, 1 << 16)
    selecting = Selecting(run, selections.time, lambda: 0.0)  # the thread has done nothing
    selecting.test(_batch(selections, run, 100), 0)  # type: ignore[arg-type]
    assert selecting.took == pytest.approx(0.01, rel=0.01)


def test_a_turn_ends_soon_however_large_the_batch() -> None:
    selections = Selections([np.ones(ROWS, np.bool_)], [1e-4])
    steps: list[float] = []

    class Watching(InOrder):
        def learn(self, visit: Visit) -> bool | None:
            steps.append(visit.seconds)
            return None

    assert selections.run(Watching([0]), batch=ROWS) == selections.expected
    assert sum(steps) >= 4.0
    assert max(steps[1:]) < 0.02  # the first had to find out what a row costs
