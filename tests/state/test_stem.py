"""A SteM stores a row once, knows what it covers, and serves nothing that has gone stale."""

from __future__ import annotations

import pyarrow as pa
import pytest

from mediator.catalog.model import AccessMethod, Field, Mirror, Relation
from mediator.errors import Cause
from mediator.flow.events import Landing
from mediator.state.coverage import Coverage, Entry, Known
from mediator.state.keys import Part, keys_of
from mediator.state.rowstore import RowStore
from mediator.state.stem import SteM
from mediator.state.view import View

FIELDS = (Field("k", pa.int64()), Field("v", pa.string()))
MIRROR = Mirror("site", "")
SCAN = AccessMethod("scan", "scan", (MIRROR,), None)
INDEX = AccessMethod("index", "index", (MIRROR,), None, required=("k",))
SCHEMA = pa.schema([(f.name, f.type) for f in FIELDS])


def _relation(*methods: AccessMethod, key: tuple[str, ...] = ()) -> Relation:
    return Relation("t", FIELDS, methods, key)


def _landing(*rows: tuple[int | None, str | None]) -> Landing:
    return Landing(pa.RecordBatch.from_pylist([{"k": k, "v": v} for k, v in rows], schema=SCHEMA))


def _stored(stem: SteM) -> list[tuple[object, ...]]:
    rows = stem.store.rows(range(stem.store.n))
    return list(zip(*(c.to_pylist() for c in rows.columns), strict=True))


def test_a_bag_keeps_equal_rows_and_a_set_does_not() -> None:
    bag, rows = SteM(_relation(SCAN)), ((1, "a"), (1, "a"), (None, None), (None, None))
    assert list(bag.build(_landing(*rows), 0.0)) == [0, 1, 2, 3]
    same = SteM(_relation(INDEX))
    assert list(same.build(_landing(*rows), 0.0)) == [0, 0, 1, 1]
    assert list(same.build(_landing((2, "a"), (1, "a"), (2, "a")), 1.0)) == [2, 0, 2]
    assert _stored(same) == [(1, "a"), (None, None), (2, "a")]


def test_a_landing_is_stored_once_whoever_builds_it() -> None:
    stem, landing = SteM(_relation(SCAN)), _landing((1, "a"), (2, "b"))
    assert stem.build(landing, 0.0) is stem.build(landing, 5.0)
    assert stem.store.n == 2


def test_text_that_runs_together_is_not_equal() -> None:
    fields = (Field("a", pa.string()), Field("b", pa.string()))
    stem = SteM(Relation("t", fields, (INDEX_ON_A,)))
    schema = pa.schema([(f.name, f.type) for f in fields])
    rows = [
        {"a": "x', 'y", "b": "z"},
        {"a": "x", "b": "y', 'z"},
        {"a": None, "b": "None"},
        {"a": "None", "b": None},
    ]
    assert list(stem.build(Landing(pa.RecordBatch.from_pylist(rows, schema=schema)), 0.0)) == [0, 1, 2, 3]


INDEX_ON_A = AccessMethod("index", "index", (MIRROR,), None, required=("a",))


def test_what_came_is_stored_before_its_end_counts() -> None:
    stem = SteM(_relation(INDEX))
    stem.receive(_landing((1, "a")))
    stem.promise(("k",), (1,), Entry(Known.COMPLETE))
    assert stem.store.n == 0
    assert stem.covered(("k",), (1,), 0.0, float("inf")) is not None
    assert stem.store.n == 1


def test_a_lookup_is_covered_by_one_that_binds_less() -> None:
    coverage = Coverage(SCHEMA)
    coverage.note(("k",), (1,), Entry(Known.COMPLETE, at=3.0, until=10.0))
    assert coverage.covering(("k", "v"), (1, "a"), 5.0) == (("k",), (1,), Entry(Known.COMPLETE, 3.0, 10.0))
    assert coverage.covering(("k", "v"), (2, "a"), 5.0) is None
    assert coverage.covering(("v",), ("a",), 5.0) is None
    assert coverage.covering(("k",), (1,), 10.1) is None
    coverage.note((), (), Entry(Known.COMPLETE))
    assert coverage.covering(("v",), ("a",), 5.0) == ((), (), Entry(Known.COMPLETE))
    assert coverage.whole


def test_a_failure_covers_nothing_and_says_why() -> None:
    coverage, cause = Coverage(SCHEMA), Cause("refused", "403")
    coverage.note(("k",), (1,), Entry(Known.FAILED, cause=cause))
    assert coverage.covering(("k",), (1,), 0.0) is None
    entry = coverage.get(("k",), (1,))
    assert entry is not None
    assert entry.cause is cause


def test_states_are_found_for_many_keys_at_once() -> None:
    coverage, store = Coverage(SCHEMA), RowStore(SCHEMA)
    for k, known in ((1, Known.ASKED), (2, Known.COMPLETE), (3, Known.FAILED)):
        coverage.note(("k",), (k,), Entry(known))
    coverage.note(("k",), (1,), Entry(Known.COMPLETE))
    store.append(_landing((3, ""), (2, ""), (9, ""), (1, ""), (3, "")).rows)
    keys = keys_of([Part(store.column("k").keyed(), range(store.n))])
    assert coverage.states(("k",), keys).tolist() == [3, 2, 0, 2, 3]
    assert coverage.states(("v",), keys).tolist() == [0, 0, 0, 0, 0]


@pytest.mark.parametrize("key", [(), ("k",)])
def test_a_row_that_its_site_dropped_is_not_served_as_fresh(key: tuple[str, ...]) -> None:
    stem = SteM(_relation(INDEX, key=key))
    stem.build(_landing((1, "old"), (2, "kept")), 0.0)
    stem.build(_landing((2, "kept"), (1, "new")), 10.0)
    rows = stem.matching(("k",), [(1,), (2,)], [10.0, 10.0])
    assert [_stored(stem)[r] for r in rows] == [(2, "kept"), (1, "new")]


def test_a_view_keeps_the_first_version_of_a_row_and_another_view_the_newer() -> None:
    stem = SteM(_relation(INDEX, key=("k",)))
    old, new = View(stem), View(stem)
    first = stem.build(_landing((1, "old")), 0.0)
    assert list(old.deliver(first)) == [0]
    second = stem.build(_landing((1, "new"), (1, "newer still")), 1.0)
    assert list(old.deliver(second)) == []
    assert list(new.deliver(second)) == [1]
    assert (old.count, new.count) == (1, 1)


def test_a_view_counts_positions_in_the_order_of_delivery() -> None:
    stem = SteM(_relation(INDEX))
    view = View(stem)
    ids = stem.build(_landing((1, "a"), (2, "b"), (3, "c")), 0.0)
    assert list(view.deliver(ids[1:])) == [1, 2]
    assert list(view.deliver(ids)) == [0]
    assert list(view.deliver(ids)) == []
    visible = view.visible(2)
    assert visible.position is not None
    assert visible.position.tolist() == [2, 0, 1]
