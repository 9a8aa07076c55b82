"""A glance at some keys, and what turns out a surprise on the way: a join that multiplies is gone round."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mediator.answering import verdicts_of
from mediator.assembly import House, Settings
from mediator.catalog.model import AccessMethod, Catalog, Field, Relation, Source
from mediator.eddy.destinations import Destination, Probe
from mediator.eddy.glancing import glance
from mediator.eddy.joining import Join
from mediator.eddy.policies.usual import Usual
from mediator.eddy.policy import AGAIN, Situation, Visit
from mediator.eddy.run import Run
from mediator.flow.batch import Signature
from mediator.flow.events import SEED, Arrived, Ask, Exhausted, Landing
from mediator.query.model import BlockStage
from mediator.query.understand import understand
from mediator.stages import Stages
from mediator.state.stem import SteM

R, S, T = Probe(0), Probe(1), Probe(2)
KEYS: dict[str, tuple[pa.DataType, Callable[[int], object]]] = {
    "number": (pa.int64(), lambda n: n),
    "narrow": (pa.int32(), lambda n: n),
    "float": (pa.float64(), lambda n: n / 4),
    "text": (pa.string(), lambda n: f"a key that is longer than others, {n}" if n % 2 else str(n)),
}
SQL = "SELECT r.k AS rk, s.k AS sk, t.k AS tk FROM r, s, t WHERE r.a = s.a AND r.b = t.b"
keys = st.lists(st.one_of(st.none(), st.integers(-3, 3)), min_size=1, max_size=40)


def _catalog(tables: Mapping[str, pa.Table]) -> Catalog:
    scan = AccessMethod("scan", "scan", (), None)
    relations = {
        n: Relation(n, tuple(Field(f.name, f.type) for f in t.schema), (scan,)) for n, t in tables.items()
    }
    return Catalog(relations, {"memory": Source("memory")})


@given(st.sampled_from(sorted(KEYS)), keys, keys)
def test_few_keys_are_all_compared(kind: str, left: list[int | None], right: list[int | None]) -> None:
    type_, of = KEYS[kind]
    tables = {
        name: pa.table({"a": pa.array([None if n is None else of(n) for n in values], type_)})
        for name, values in (("r", left), ("s", right))
    }
    (stage,) = understand("SELECT r.a FROM r, s WHERE r.a = s.a", _catalog(tables)).stages
    assert isinstance(stage, BlockStage)
    stems = {alias.relation.name: SteM(alias.relation) for alias in stage.block.aliases}
    run = Run(stage.block, stems, 1 << 16)
    for name in ("s", "r"):
        (rows,) = tables[name].to_batches()
        batches = run.deliver(name, stems[name].build(Landing(rows), 0.0))
    (batch,) = batches
    found = glance(run, Join.of(stage.block, 0b01, 1), batch)
    pairs = sum(mine == theirs and mine is not None for mine in left for theirs in right)
    assert found == (len(left), len(right), pairs)


class OneThenTheOther(Usual):
    """From R to S, until a visit there brings more than ten rows for each: then to T."""

    def __init__(self) -> None:
        super().__init__()
        self.visits: list[Visit] = []
        self._first = S

    def choose(self, signature: Signature, legal: Sequence[Destination], situation: Situation) -> Destination:
        return self._first if self._first in legal else legal[0]

    def learn(self, visit: Visit) -> int:
        self.visits.append(visit)
        surprised = visit.destination == S and visit.rows_out > 10 * visit.rows_in
        if surprised:
            self._first = T
        return AGAIN if surprised else 0


def _answers(
    tables: Mapping[str, pa.Table], policy: Usual | None, monkeypatch: pytest.MonkeyPatch, **said: object
) -> tuple[Stages, Counter[tuple[object, ...]]]:
    """R comes last, and in one piece."""
    catalog = _catalog(tables)
    query = understand(SQL, catalog)
    if policy is not None:
        monkeypatch.setattr("mediator.assembly.policy_of", lambda *_: policy)
    settings = Settings(kept=0, **said)  # type: ignore[arg-type]
    stages = Stages(query, verdicts_of(query, catalog), House(lambda: 0.0), settings)
    asks = {c.relation: c.number for c in stages.start().commands if isinstance(c, Ask)}
    answers: list[pa.RecordBatch] = []
    for name in ("s", "t", "r"):
        (rows,) = tables[name].to_batches()
        stages.admit(Arrived(asks[name], Landing(rows)))
        stages.admit(Exhausted(asks[name], SEED, landings=()))
        while not stages.idle:
            answers += stages.turn(1).answers
    assert stages.finished
    return stages, Counter(tuple(row.values()) for batch in answers for row in batch.to_pylist())


def _expected(tables: Mapping[str, pa.Table]) -> Counter[tuple[object, ...]]:
    with duckdb.connect() as connection:
        for name, table in tables.items():
            connection.register(name, table)
        return Counter(connection.execute(SQL).fetchall())


def _multiplying(rows: int, each: int, side: int) -> dict[str, pa.Table]:
    """A row of R has `each` matches in S, and one in a hundred has one in T."""
    k = np.arange(rows)
    return {
        "r": pa.table({"a": k % (side // each), "b": k * 100, "k": k}),
        "s": pa.table({"a": np.arange(side) % (side // each), "k": np.arange(side)}),
        "t": pa.table({"b": np.arange(side), "k": np.arange(side)}),
    }


def test_the_rest_of_a_batch_goes_elsewhere_after_a_surprise(monkeypatch: pytest.MonkeyPatch) -> None:
    tables, policy = _multiplying(rows=200, each=50, side=400), OneThenTheOther()
    stages, answers = _answers(tables, policy, monkeypatch, room=1_010, largest_batch=1 << 16)
    assert answers == _expected(tables)
    from_r = [v for v in policy.visits if v.signature.spanned == 0b001]
    there = sum(v.rows_in for v in from_r if v.destination == S)
    # Some twenty rows had filled the room; the one in the middle of it had to go on there.
    assert there < 30
    assert sum(v.rows_in for v in from_r if v.destination == T) == 200 - there
    (eddy,) = stages.eddies().values()
    flows = eddy.routing.flows.of(Signature(0b001))
    assert {where: flow.rows for where, flow in flows.items()} == {S: there, T: 200 - there}


def test_a_join_that_multiplies_is_found_out_before_an_index_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = _multiplying(rows=3_000, each=300, side=6_000)
    stages, answers = _answers(tables, None, monkeypatch)
    assert answers == _expected(tables)
    (eddy,) = stages.eddies().values()
    assert S not in eddy.routing.flows.of(Signature(0b001))
    assert eddy.run.view(1).stem.behind(("a",)) == 0, "T's few matches were looked up there at last"
