"""Who waits for which lookup, and what the user prefers: what the eddy asks, how urgently, and what floats first."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from mediator.answering import verdicts_of
from mediator.assembly import House, Settings
from mediator.catalog.model import AccessMethod, Catalog, Field, Mirror, Relation, Source
from mediator.eddy.floating import AnyOrder, WidestFirst
from mediator.eddy.preferring import Preferring
from mediator.flow.batch import Batch, Favour, Signature
from mediator.flow.events import FIRST, SEED, Arrived, Ask, Binding, Exhausted, Landing
from mediator.query.preferences import preferred
from mediator.query.understand import understand
from mediator.stages import Stages, Work

AT = (Mirror("site", ""),)
SCAN = AccessMethod("scan", "scan", AT, None)
BY_KEY = AccessMethod("by_key", "index", AT, None, required=("key",))
SQL = "select r.n, t.v from r join t on r.key = t.key"


def fields(*names: str) -> tuple[Field, ...]:
    return tuple(Field(name, pa.int64()) for name in names)


class Run:
    """Steps by hand: rows land, and what is asked, urged and answered piles up."""

    def __init__(self, *methods: AccessMethod, sql: str = SQL, **said: object) -> None:
        r = Relation("r", fields("n", "key"), (SCAN,))
        t = Relation("t", fields("key", "v"), methods or (BY_KEY,), ("key",))
        catalog = Catalog({"r": r, "t": t}, {"site": Source("site")})
        self.query = understand(sql, catalog)
        settings = replace(Settings(policy="rank"), **said)  # type: ignore[arg-type]
        self.stages = Stages(self.query, verdicts_of(self.query, catalog), House(lambda: 0.0), settings)
        self.asks: list[Ask] = []
        self.urgency: dict[Binding, float] = {}  # of lookups
        self.scan_urgency: dict[str, float] = {}
        self.answers: list[tuple[int, int]] = []
        self._obey(self.stages.start())
        self.scans = {ask.relation: ask.number for ask in self.asks if not ask.bind_set}

    def r(self, *rows: tuple[int, int]) -> None:
        columns = {"n": [n for n, _ in rows], "key": [key for _, key in rows]}
        self.stages.admit(Arrived(self.scans["r"], Landing(pa.RecordBatch.from_pydict(columns))))
        self.turn()

    def answer(self, key: int) -> None:
        number = next(a.number for a in self.asks if (key,) in a.bindings)
        landing = Landing(pa.RecordBatch.from_pydict({"key": [key], "v": [10 * key]}))
        self.stages.admit(Arrived(number, landing))
        self.stages.admit(Exhausted(number, ((key,),), landings=(landing,)))
        self.turn()

    def end(self, relation: str) -> None:
        self.stages.admit(Exhausted(self.scans[relation], SEED, landings=()))
        self.turn()

    def prefer(self, **prefer: float) -> None:
        conditions = {condition.replace("_", " "): weight for condition, weight in prefer.items()}
        self.stages.prefer(preferred(self.query, conditions))
        self.turn()

    def turn(self) -> None:
        while not self.stages.idle:
            self._obey(self.stages.turn())

    def _obey(self, work: Work) -> None:
        self.asks += [c for c in work.commands if isinstance(c, Ask)]
        for urge in work.urges:
            ask = next(a for a in self.asks if a.number == urge.ask)
            assert set(urge.urgencies) <= set(ask.bindings)
            if ask.bind_set:
                self.urgency |= urge.urgencies
            else:
                self.scan_urgency[ask.relation] = urge.urgencies[()]
        for batch in work.answers:
            self.answers += [tuple(row.values()) for row in batch.to_pylist()]  # type: ignore[misc]


class TestWhoWaits:
    def test_each_binding_is_as_urgent_as_rows_wait_for_it(self) -> None:
        run = Run()
        run.r((1, 1), (2, 2), (3, 2), (4, 3), (5, 2))
        assert run.urgency == {(1,): 1.0, (2,): 3.0, (3,): 1.0}

    def test_rows_that_come_later_make_it_more_urgent(self) -> None:
        run = Run()
        run.r((1, 1), (2, 2))
        run.r((3, 2), (4, 2), (5, 3))
        assert run.urgency == {(1,): 1.0, (2,): 3.0, (3,): 1.0}

    def test_what_was_answered_is_urged_no_more(self) -> None:
        run = Run()
        run.r((1, 1))
        run.answer(1)
        run.urgency.clear()
        run.r((2, 1), (3, 2))
        assert run.urgency == {(2,): 1.0}
        assert run.answers == [(1, 10), (2, 10)]

    def test_a_little_more_is_not_told(self) -> None:
        run = Run()
        run.r(*((n, 7) for n in range(100)))
        run.urgency.clear()
        run.r((100, 7))
        assert run.urgency == {}
        run.r(*((n, 7) for n in range(101, 106)))
        assert run.urgency == {(7,): 106.0}

    @pytest.mark.parametrize("rows", [1, 50, 5_000])
    def test_few_rows_and_many_are_counted_alike(self, rows: int) -> None:
        run = Run()
        keys = np.random.default_rng(1).integers(0, 3_000, 4_000).tolist()
        for start in range(0, len(keys), 500):
            run.r(*((n, keys[n]) for n in range(start, min(start + 500, len(keys)))))
        more = np.random.default_rng(rows).integers(0, 3_000, rows).tolist()
        run.r(*((10_000 + n, key) for n, key in enumerate(more)))
        counts = {(k,): float((keys + more).count(k)) for k in {*keys[:50], *more[:50]}}
        assert {k: run.urgency[k] for k in counts} == counts

    def test_nulls_wait_for_nothing(self) -> None:
        run = Run()
        rows = pa.RecordBatch.from_pydict({"n": [1, 2, 3], "key": [None, 5, None]})
        run.stages.admit(Arrived(run.scans["r"], Landing(rows)))
        run.turn()
        assert run.urgency == {(5,): 1.0}

    def test_scans_go_before_lookups(self) -> None:
        run = Run(SCAN, BY_KEY)
        run.r((1, 1))
        assert {a.method: a.urgency for a in run.asks} == {"scan": FIRST, "by_key": 0.0}

    def test_in_order_of_arrival_nothing_is_counted(self) -> None:
        run = Run(urgent=False)
        run.r((1, 1), (2, 2), (3, 2))
        assert run.urgency == {}
        assert {a.urgency for a in run.asks} == {0.0}


class TestPreferred:
    def test_rows_that_are_preferred_count_for_more(self) -> None:
        run = Run(prefer={"r.n > 3": 10.0})
        run.r((1, 1), (2, 2), (3, 2), (4, 3), (5, 2))
        assert run.urgency == {(1,): 1.0, (2,): 12.0, (3,): 10.0}

    def test_a_column_that_is_equal_in_every_answer_tells_as_much(self) -> None:
        run = Run(prefer={"t.key >= 3": 10.0})
        run.r((1, 1), (4, 3))
        assert run.urgency == {(1,): 1.0, (3,): 10.0}

    def test_weights_of_several_are_multiplied(self) -> None:
        run = Run(prefer={"r.n > 1": 10.0, "r.n > 2": 3.0, "r.key = 1": 0.5})
        run.r((1, 1), (2, 2), (3, 3))
        assert run.urgency == {(1,): 0.5, (2,): 10.0, (3,): 30.0}

    def test_what_cannot_be_told_yet_counts_as_one(self) -> None:
        run = Run(prefer={"t.v > 3": 10.0})
        run.r((1, 1), (2, 1))
        assert run.urgency == {(1,): 2.0}

    def test_changed_in_mid_run_it_counts_for_all_that_waits(self) -> None:
        run = Run(prefer={"r.n = 1": 10.0})
        run.r((1, 1), (2, 2), (3, 2), (4, 3))
        run.answer(3)
        run.urgency.clear()
        run.prefer(**{"r.n >_2": 7.0})
        assert run.urgency == {(1,): 1.0, (2,): 8.0}
        run.urgency.clear()
        run.prefer()
        assert run.urgency == {(2,): 2.0}
        run.r((9, 1), (10, 1))
        assert run.urgency == {(1,): 3.0, (2,): 2.0}

    def test_scans_of_what_it_speaks_of_go_before_other_scans(self) -> None:
        run = Run(SCAN, prefer={"t.v > 3": 10.0})
        assert {a.relation: a.urgency for a in run.asks} == {"r": FIRST, "t": 10 * FIRST}
        run.prefer(**{"r.n >_2": 7.0})
        assert run.scan_urgency == {"r": 7 * FIRST, "t": FIRST}

    def test_after_the_end_it_has_no_effect(self) -> None:
        run = Run()
        run.r((1, 1))
        run.end("r")
        run.answer(1)
        assert run.stages.finished
        run.prefer(**{"r.n >_2": 7.0})
        assert run.stages.finished
        assert run.answers == [(1, 10)]

    def test_what_is_preferred_is_looked_up_even_where_a_scan_brings_it(self) -> None:
        """A policy that would rather wait for the scan."""
        run = Run(SCAN, BY_KEY, policy="benefit", prefer={"r.n = 2": 10.0})
        run.r((1, 1), (2, 2), (3, 3))
        assert [a.bindings for a in run.asks if a.method == "by_key"] == [((2,),)]

    def test_also_where_the_goal_is_the_fewest_calls(self) -> None:
        run = Run(SCAN, BY_KEY, goal="fewest_calls", prefer={"r.n = 2": 10.0})
        run.r((1, 1), (2, 2), (3, 3))
        assert [a.bindings for a in run.asks if a.method == "by_key"] == [((2,),)]


def batch(weight: float, width: int = 1, cut: int = -1) -> Batch:
    rows = tuple(range(2) if a < width else None for a in range(3))
    return Batch(Signature((1 << width) - 1), rows, (0, 0, 0), cut=cut, favour=Favour(weight))


class TestFloating:
    def test_the_preferred_first_then_the_widest(self) -> None:
        floating = WidestFirst(3)
        for weight, width in ((1.0, 1), (0.1, 3), (1.0, 2), (10.0, 1), (10.0, 2)):
            floating.push(batch(weight, width))
        assert (len(floating), floating.rows) == (5, 10)
        popped = [floating.pop() for _ in range(len(floating))]
        assert [(b.favour.weight, b.signature.spanned.bit_count()) for b in popped] == [
            (10.0, 2),
            (10.0, 1),
            (1.0, 2),
            (1.0, 1),
            (0.1, 3),
        ]
        assert (len(floating), floating.rows) == (0, 0)

    def test_of_equals_whoever_came_first(self) -> None:
        floating = WidestFirst(3)
        first, second = batch(1.0), batch(1.0)
        floating.push(first)
        floating.push(second)
        assert floating.pop() is first
        assert floating.pop() is second

    def test_a_batch_is_parted_once_and_only_where_its_rows_differ(self) -> None:
        run = Run(prefer={"r.n > 2": 10.0})
        eddy = next(iter(run.stages.eddies().values()))
        run.r((1, 1), (2, 2), (3, 2), (4, 3))
        everything = eddy.run.everything(next(a.number for a in eddy.run.block.aliases if a.name == "r"))
        parts = list(eddy.floating.parted(everything))
        assert [(p.favour.weight, len(p)) for p in parts] == [(10.0, 2), (1.0, 2)]
        assert [len(list(eddy.floating.parted(p))) for p in parts] == [1, 1]
        alike = list(eddy.floating.parted(everything.take(slice(2, 4))))
        assert [(p.favour.weight, len(p)) for p in alike] == [(10.0, 2)]

    def test_what_is_in_the_middle_of_a_probe_stays_together(self) -> None:
        run = Run(prefer={"r.n > 2": 10.0})
        eddy = next(iter(run.stages.eddies().values()))
        run.r((1, 1), (2, 2), (3, 2), (4, 3))
        everything = eddy.run.everything(next(a.number for a in eddy.run.block.aliases if a.name == "r"))
        cut = replace(everything, cut=1, taken=1)
        assert list(eddy.floating.parted(cut)) == [cut]

    def test_a_batch_judged_by_earlier_preferences_is_judged_anew(self) -> None:
        run = Run(prefer={"r.n > 2": 10.0})
        eddy = next(iter(run.stages.eddies().values()))
        preferring = Preferring(AnyOrder(Random(1)), eddy.run)
        preferring.prefer(())
        preferring.push(replace(batch(10.0), favour=Favour(10.0, 1, 0)))
        assert preferring.pop().favour.weight == 1.0
