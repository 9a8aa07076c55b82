"""Batches whose rows go apart: the same answers, by fewer useless matches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from mediator.answering import verdicts_of
from mediator.assembly import House, Settings
from mediator.catalog.model import AccessMethod, Catalog, Field, Relation, Source
from mediator.eddy.destinations import Destination, Probe
from mediator.eddy.policies.rank import Rank
from mediator.flow.batch import Signature
from mediator.flow.events import SEED, Arrived, Ask, Exhausted, Landing
from mediator.query.understand import understand
from mediator.stages import Stages

SQL = "SELECT r.k AS rk, s.k AS sk, t.k AS tk FROM r, s, t WHERE r.a = s.a AND s.b = t.b"
ROWS = 3_000


class Curious(Rank):
    """Looks at every batch of S whether its rows should go apart."""

    def survey(
        self, signature: Signature, legal: Sequence[Destination], rows: int
    ) -> tuple[int, Mapping[Destination, float]] | None:
        here = signature.spanned == 0b010
        return (min(rows, 400), {d: 1e-3 for d in legal if isinstance(d, Probe)}) if here else None


def _tables(told: bool) -> dict[str, pa.Table]:
    random = np.random.default_rng(5)
    first = random.permutation(np.arange(ROWS) % 2 == 0)
    k = np.arange(ROWS)
    match = random.integers(0, ROWS // 10, ROWS)
    other = ROWS + random.integers(0, ROWS, ROWS)
    kind = np.where(first, "one", "two") if told else random.choice(["one", "two"], ROWS)
    s = {
        "a": np.where(first, match, other),
        "b": np.where(first, other, match),
        "k": k,
        "kind": kind.tolist(),
    }
    side = random.integers(0, ROWS // 10, ROWS)
    # Other values of theirs lie among those that match, so that no range of `a` or `b` tells the halves apart.
    return {
        "r": pa.table({"a": np.where(k % 2 == 0, side, k + ROWS), "k": k}),
        "s": pa.table(s),
        "t": pa.table({"b": np.where(k % 2 == 1, side, k + ROWS), "k": k}),
    }


def _run(
    tables: Mapping[str, pa.Table], monkeypatch: pytest.MonkeyPatch
) -> tuple[Stages, list[pa.RecordBatch]]:
    scan = AccessMethod("scan", "scan", (), None)
    relations = {
        n: Relation(n, tuple(Field(f.name, f.type) for f in t.schema), (scan,)) for n, t in tables.items()
    }
    catalog = Catalog(relations, {"memory": Source("memory")})
    query = understand(SQL, catalog)
    monkeypatch.setattr("mediator.assembly.policy_of", lambda *_: Curious())
    stages = Stages(query, verdicts_of(query, catalog), House(lambda: 0.0), Settings(kept=0))
    asks = {c.relation: c.number for c in stages.start().commands if isinstance(c, Ask)}
    answers: list[pa.RecordBatch] = []
    random = Random(6)
    for name in ("r", "t", "s"):
        for batch in tables[name].to_batches(max_chunksize=random.choice((300, 1_000))):
            stages.admit(Arrived(asks[name], Landing(batch)))
            while not stages.idle:
                answers += stages.turn(4).answers
    for number in asks.values():
        stages.admit(Exhausted(number, SEED, landings=()))
    while not stages.finished:
        answers += stages.turn(4).answers
    return stages, answers


def _expected(tables: Mapping[str, pa.Table]) -> Counter[tuple[object, ...]]:
    connection = duckdb.connect()
    for name, table in tables.items():
        connection.register(name, table)
    return Counter(connection.execute(SQL).fetchall())


def _rows(answers: Sequence[pa.RecordBatch]) -> Counter[tuple[object, ...]]:
    return Counter(row for b in answers for row in zip(*(c.to_pylist() for c in b.columns), strict=True))


@pytest.mark.parametrize("told", [True, False])
def test_the_answers_are_the_same(told: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    tables = _tables(told)
    _, answers = _run(tables, monkeypatch)
    assert _rows(answers) == _expected(tables)


def test_rows_that_a_column_tells_apart_go_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    stages, _ = _run(_tables(told=True), monkeypatch)
    (eddy,) = stages.eddies().values()
    divided = eddy.contents.divided()
    assert list(divided) == [Signature(0b010)]
    parts = {s.part for s in eddy.routing.arrays() if s.spanned == 0b010}
    assert {1, 2} <= parts, "each part has a routing array of its own"


def test_a_part_stays_a_part_on_its_way(monkeypatch: pytest.MonkeyPatch) -> None:
    stages, _ = _run(_tables(told=True), monkeypatch)
    (eddy,) = stages.eddies().values()
    wider = {s.part for s in eddy.routing.arrays() if s.spanned.bit_count() > 1 and s.spanned & 0b010}
    assert wider & {1, 2}
