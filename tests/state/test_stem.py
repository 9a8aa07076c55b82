"""A SteM stores a row once, knows what it covers, and serves nothing that has gone stale."""

from __future__ import annotations

from collections.abc import Sequence

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


def test_a_landing_that_another_stem_has_stored_too_has_places_of_its_own_in_each() -> None:
    before, after, landing = SteM(_relation(SCAN)), SteM(_relation(SCAN)), _landing((1, "a"), (2, "b"))
    before.build(_landing((9, "z")), 0.0)
    for _ in range(2):
        assert after.build(landing, 0.0) == range(2)
        assert before.build(landing, 0.0) == range(1, 3)
    assert (before.store.n, after.store.n) == (3, 2)


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
    landing = _landing((1, "a"))
    stem.receive(landing)
    stem.promise(("k",), [(1,)], Entry(Known.COMPLETE), [landing])
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
    assert coverage.covering(("k",), (1,), 5.0) == (("k",), (1,), Entry(Known.COMPLETE, 3.0, 10.0)), (
        "the newest"
    )
    assert coverage.covering(("k",), (1,), 10.1) == ((), (), Entry(Known.COMPLETE)), (
        "the newest that is fresh"
    )
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


def _answered(
    stem: SteM,
    bind_set: tuple[str, ...],
    *bindings: tuple[object, ...],
    at: float,
    landings: Sequence[Landing],
) -> None:
    for landing in landings:
        stem.receive(landing)
    stem.promise(bind_set, bindings, Entry(Known.COMPLETE, at), landings)


def _served(
    stem: SteM, bind_set: tuple[str, ...], binding: tuple[object, ...], max_age: float = 1000.0
) -> list[tuple[object, ...]]:
    found = stem.covered(bind_set, binding, 200.0, max_age)
    assert found is not None
    return sorted(_stored(stem)[row] for row in stem.vouched(*found))


@pytest.mark.parametrize("key", [(), ("k",)])
def test_a_row_that_its_site_dropped_is_not_served_as_fresh(key: tuple[str, ...]) -> None:
    stem = SteM(_relation(INDEX, key=key))
    _answered(stem, ("k",), (1,), (2,), at=0.0, landings=[_landing((1, "old"), (2, "kept"))])
    _answered(stem, ("k",), (1,), (2,), at=10.0, landings=[_landing((2, "kept"), (1, "new"))])
    assert _served(stem, ("k",), (1,)) == [(1, "new")]
    assert _served(stem, ("k",), (2,)) == [(2, "kept")]


@pytest.mark.parametrize("key", [(), ("k",)])
def test_a_row_that_came_after_an_end_is_none_of_its_rows(key: tuple[str, ...]) -> None:
    """The newest lookup answers where there is one; the older scan as it was, and no mixture of both."""
    stem = SteM(_relation(SCAN, INDEX, key=key))
    _answered(stem, (), (), at=0.0, landings=[_landing((1, "a")), _landing((2, "b"))])
    _answered(stem, ("k",), (1,), at=100.0, landings=[_landing((1, "z"))])
    assert _served(stem, (), ()) == [(1, "a"), (2, "b")]
    assert _served(stem, ("k",), (1,)) == [(1, "z")]
    assert _served(stem, ("k",), (2,)) == [(1, "a"), (2, "b")], "the scan answers, with all that it brought"


def test_a_row_that_went_away_and_came_back_is_not_of_the_lookup_that_missed_it() -> None:
    stem = SteM(_relation(SCAN, INDEX))
    _answered(stem, ("k",), (1,), at=0.0, landings=[_landing((1, "a"))])
    _answered(stem, (), (), at=10.0, landings=[_landing((1, "z"))])
    _answered(stem, ("k",), (1,), at=20.0, landings=[_landing((1, "a"))])
    assert _served(stem, (), ()) == [(1, "z")]
    assert _served(stem, ("k",), (1,)) == [(1, "a")]


def test_lookups_under_way_at_the_same_time_do_not_lend_each_other_rows() -> None:
    stem, early = SteM(_relation(SCAN, INDEX)), _landing((1, "a"))
    stem.receive(early)
    _answered(stem, ("k",), (1,), at=5.0, landings=[_landing((1, "z"))])
    _answered(stem, (), (), at=0.0, landings=[early, _landing((2, "b"))])
    assert _served(stem, (), ()) == [(1, "a"), (2, "b")]
    assert _served(stem, ("k",), (1,)) == [(1, "z")]


def test_an_end_that_is_told_late_does_not_take_the_place_of_a_newer_one() -> None:
    stem, late = SteM(_relation(INDEX)), _landing((1, "old"))
    _answered(stem, ("k",), (1,), at=0.0, landings=[late])
    _answered(stem, ("k",), (1,), at=10.0, landings=[_landing((1, "new"))])
    _answered(stem, ("k",), (1,), at=0.0, landings=[late])
    assert _served(stem, ("k",), (1,)) == [(1, "new")]


def test_a_lookup_without_rows_vouches_for_none() -> None:
    stem = SteM(_relation(SCAN, INDEX))
    _answered(stem, (), (), at=0.0, landings=[_landing((1, "a"))])
    _answered(stem, ("k",), (1,), at=10.0, landings=[])
    assert _served(stem, ("k",), (1,)) == []


def test_of_rows_beyond_what_was_asked_only_those_that_match_are_vouched_for() -> None:
    stem = SteM(_relation(INDEX))
    _answered(stem, ("k",), (1,), (3,), at=0.0, landings=[_landing((3, "c"), (1, "a"), (2, "b"), (1, "a"))])
    assert _served(stem, ("k",), (1,)) == [(1, "a")]
    assert _served(stem, ("k",), (3,)) == [(3, "c")]


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
