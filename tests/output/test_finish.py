"""Finishers: what streams, what gathers, and when enough is enough."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from mediator.errors import TypeMismatch
from mediator.output import Finisher, finisher
from mediator.output.finish import Gathering
from mediator.query import understand
from mediator.query.model import SqlStage
from tests.query.naive import catalog_of

SCHEMA = pa.schema([("a", pa.int64()), ("s", pa.string())])


def stage(sql: str = "", **options: object) -> SqlStage:
    return SqlStage("answer", sql, ("block",), SCHEMA, **options)  # type: ignore[arg-type]


def begin(made: SqlStage) -> Finisher:
    return finisher(made, dict.fromkeys(made.reads, SCHEMA))


def batch(*rows: tuple[int | None, str | None]) -> pa.RecordBatch:
    columns = [[r[0] for r in rows], [r[1] for r in rows]]
    return pa.record_batch([pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA)


def rows(batches: list[pa.RecordBatch]) -> list[tuple[object, ...]]:
    return [tuple(r.values()) for b in batches for r in b.to_pylist()]


def test_projection_batch_by_batch() -> None:
    ending = begin(stage("SELECT a + 1 AS a, upper(s) AS s FROM block WHERE a > 0", rowwise=True))
    assert rows(ending.feed("block", batch((1, "x"), (0, "y"), (2, None)))) == [(2, "X"), (3, None)]
    assert rows(ending.feed("block", batch((0, "y")))) == []
    assert rows(ending.end()) == []
    assert ending.snapshot() is None


def test_nothing_to_compute_passes_rows_on() -> None:
    ending = begin(stage(rowwise=True))
    assert rows(ending.feed("block", batch((1, "x"), (1, "x")))) == [(1, "x"), (1, "x")]


def test_limit_and_offset_across_batches() -> None:
    ending = begin(stage(rowwise=True, limit=3, offset=2))
    assert rows(ending.feed("block", batch((1, "a")))) == []
    assert rows(ending.feed("block", batch((2, "b"), (3, "c")))) == [(3, "c")]
    assert not ending.done
    assert rows(ending.feed("block", batch((4, "d"), (5, "e"), (6, "f")))) == [(4, "d"), (5, "e")]
    assert ending.done
    assert rows(ending.feed("block", batch((7, "g")))) == []


def test_limit_zero_is_done_before_it_begins() -> None:
    assert begin(stage(rowwise=True, limit=0)).done


def test_distinct_across_batches_as_sql_has_it() -> None:
    ending = begin(stage(rowwise=True, distinct=True))
    assert rows(ending.feed("block", batch((1, "a"), (1, "a"), (None, None)))) == [(1, "a"), (None, None)]
    assert rows(ending.feed("block", batch((None, None), (1, None), (1, "a")))) == [(1, None)]


def test_distinct_of_floats_and_lists() -> None:
    schema = pa.schema([("f", pa.float64()), ("l", pa.list_(pa.int64()))])
    made = SqlStage("answer", "", ("block",), schema, rowwise=True, distinct=True)
    values = [[0.0, -0.0, float("nan"), float("nan"), 0.0], [[1], [1], None, None, [1, 2]]]
    fed = pa.record_batch([pa.array(v, f.type) for v, f in zip(values, schema, strict=True)], schema=schema)
    ending = finisher(made, {"block": schema})
    assert sum(b.num_rows for b in ending.feed("block", fed)) == 3
    assert ending.feed("block", fed) == []


def test_distinct_comes_before_limit() -> None:
    ending = begin(stage(rowwise=True, distinct=True, limit=2))
    assert rows(ending.feed("block", batch((1, "a"), (1, "a"), (1, "a"), (2, "b")))) == [(1, "a"), (2, "b")]
    assert ending.done


def test_gathering_answers_at_the_end_and_shows_how_it_stands() -> None:
    ending = begin(stage("SELECT sum(a)::BIGINT AS a, max(s) AS s FROM block"))
    assert ending.feed("block", batch((1, "x"))) == []
    snapshot = ending.snapshot()
    assert snapshot is not None
    assert snapshot.to_pylist() == [{"a": 1, "s": "x"}]
    ending.feed("block", batch((2, "y")))
    ending.feed("block", batch())
    assert rows(ending.end()) == [(3, "y")]


def test_gathering_nothing() -> None:
    assert rows(begin(stage("SELECT count(*) AS a, 'x' AS s FROM block")).end()) == [(0, "x")]


def test_gathering_reads_several_stages() -> None:
    made = SqlStage(
        "answer", "SELECT l.a, r.s FROM l LEFT JOIN r ON r.a = l.a ORDER BY 1", ("l", "r"), SCHEMA
    )
    ending = begin(made)
    ending.feed("r", batch((1, "one")))
    ending.feed("l", batch((2, "x"), (1, "y")))
    assert rows(ending.end()) == [(1, "one"), (2, None)]


def test_a_stage_that_reads_nothing() -> None:
    made = SqlStage("answer", "SELECT 1::BIGINT AS a, 'x' AS s", (), SCHEMA)
    assert rows(begin(made).end()) == [(1, "x")]


@pytest.mark.parametrize("order", ["a DESC", "a, s DESC NULLS LAST", "-a, s", "a % 7, a, s"])
def test_running_best_k_holds_few_rows_and_is_right(order: str) -> None:
    draw = random.Random(order)
    tables = {"r": pa.Table.from_batches([batch(*_drawn(draw, 30_000))])}
    sql = f"SELECT a, s FROM r ORDER BY {order} LIMIT 7 OFFSET 3"
    query = understand(sql, catalog_of(tables))
    made = query.stages[-1]
    assert isinstance(made, SqlStage)
    below = query.stages[0].schema
    ending = finisher(made, {query.stages[0].name: below})
    assert isinstance(ending, Gathering)
    most = 0
    for piece in tables["r"].to_batches(max_chunksize=1_000):
        ending.feed(query.stages[0].name, pa.RecordBatch.from_arrays(_columns(piece, below), schema=below))
        most = max(most, ending.held)
    assert most < 10_000
    best = sorted(_rows_of(tables["r"]), key=_keys(order))[3:10]
    assert [_keys(order)(r) for r in rows(ending.end())] == [_keys(order)(r) for r in best]


def _drawn(draw: random.Random, count: int) -> list[tuple[int, str]]:
    return [(draw.randrange(5_000), draw.choice("abcdefg") * draw.randint(1, 3)) for _ in range(count)]


def _rows_of(table: pa.Table) -> list[tuple[int, str]]:
    return list(zip(table["a"].to_pylist(), table["s"].to_pylist(), strict=True))


def _columns(piece: pa.RecordBatch, schema: pa.Schema) -> list[pa.Array]:
    return [piece.column(name.split(".")[1]) for name in schema.names]


def _keys(order: str):  # type: ignore[no-untyped-def]
    falling = {"a DESC", "-a, s"}
    if order in falling:
        return lambda r: (-r[0], r[1]) if "," in order else -r[0]
    if order == "a % 7, a, s":
        return lambda r: (r[0] % 7, r[0], r[1])
    return lambda r: (r[0], [-ord(c) for c in r[1].ljust(4)])


def test_failure_while_computing_names_the_reason() -> None:
    ending = begin(stage("SELECT CAST(s AS INTEGER)::BIGINT AS a, s FROM block", rowwise=True))
    assert rows(ending.feed("block", batch((1, "5")))) == [(5, "5")]
    with pytest.raises(TypeMismatch, match="Could not convert string 'x'"):
        ending.feed("block", batch((1, "x")))
