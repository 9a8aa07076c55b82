"""An index finds what a nested loop finds, whatever its keys, its growth, and wherever its probes are cut short."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from mediator.state.index import Index, Visible
from mediator.state.keys import Part, keys_of
from mediator.state.places import Direct, Hashed
from mediator.state.rowstore import RowStore

ALL = Visible(np.iinfo(np.int32).max)
LONG = "a string that does not fit into two words "
INTS = st.one_of(
    st.integers(-3, 3), st.integers(-(10**6), 10**6), st.sampled_from([2**63 - 1, -(2**63), 2**40])
)
KEYS = {
    "int": (pa.int64(), INTS),
    "text": (
        pa.string(),
        st.one_of(st.sampled_from(["", "a", "b"]), st.integers(0, 4).map(lambda n: f"{LONG}{n}")),
    ),
    "float": (pa.float64(), st.sampled_from([0.0, -0.0, 1.5, float("inf")])),
}


@st.composite
def _chunks(draw: st.DrawFn) -> tuple[pa.Schema, list[list[tuple[object, ...]]]]:
    kinds = draw(st.lists(st.sampled_from(sorted(KEYS)), min_size=1, max_size=2))
    schema = pa.schema([pa.field(f"c{n}", KEYS[k][0]) for n, k in enumerate(kinds)])
    row = st.tuples(*(st.one_of(st.none(), KEYS[k][1]) for k in kinds))
    return schema, draw(st.lists(st.lists(row, max_size=30), min_size=1, max_size=5))


@settings(max_examples=300)
@given(
    _chunks(),
    st.lists(st.integers(1, 40), min_size=1, max_size=4),
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_a_probe_finds_every_visible_match_once(
    drawn: tuple[pa.Schema, list[list[tuple[object, ...]]]], rooms: list[int], mapped: bool, random
) -> None:
    schema, chunks = drawn
    stored, probing = RowStore(schema), RowStore(schema)
    index = Index(stored, tuple(schema.names))
    rows: list[tuple[object, ...]] = []
    for chunk in chunks:
        stored.append(_batch(schema, chunk))
        rows += chunk
        wanted = [random.choice(rows) for _ in range(min(5, len(rows)))]
        start = probing.n
        probing.append(_batch(schema, wanted))
        keys = keys_of([Part(probing.column(f).keyed(), range(start, probing.n)) for f in schema.names])
        limit, since = random.randint(0, len(rows)), random.choice([0, random.randint(0, len(rows))])
        places = random.sample(range(len(rows)), len(rows)) if mapped else list(range(len(rows)))
        visible = Visible(limit, since, np.array(places, np.int32) if mapped else None)
        found, at, taken = [], 0, 0
        while at < len(wanted):
            part = index.probe(keys, visible, at, taken, random.choice(rooms))
            found += list(zip(part.at.tolist(), part.rows.tolist(), strict=True))
            assert (part.next, part.taken) > (at, taken)
            at, taken = part.next, part.taken
        expected = [
            (i, r)
            for i, key in enumerate(wanted)
            for r, row in enumerate(rows)
            if row == key and None not in key and since <= places[r] < limit
        ]
        assert sorted(found) == expected


def test_a_direct_index_becomes_a_hashed_one_and_back_without_losing_a_row() -> None:
    store = RowStore(pa.schema([("k", pa.int64())]))
    index = Index(store, ("k",))
    keys = [*range(100), 10**12, *range(10**4), *range(-(10**4), 0)]
    for i in range(0, len(keys), 37):
        store.append(_batch(store.schema, [(k,) for k in keys[i : i + 37]]))
        probe = keys_of([Part(store.column("k").keyed(), range(i, store.n))])
        found = index.probe(probe, Visible(store.n), 0, 0, 10**6)
        expected = sorted(
            (at, r) for at, k in enumerate(keys[i : store.n]) for r in range(store.n) if keys[r] == k
        )
        assert sorted(zip(found.at.tolist(), found.rows.tolist(), strict=True)) == expected


def test_hashed_keys_get_places_as_soon_as_those_pay() -> None:
    """Not only when their slots are full: until then each look costs several times as much."""
    store = RowStore(pa.schema([("k", pa.int64())]))
    index = Index(store, ("k",))
    keys = [int(k) for k in np.random.default_rng(1).permutation(160_000)]
    kinds = []
    for start in range(0, 16_000, 1_000):
        store.append(_batch(store.schema, [(k,) for k in keys[start : start + 1_000]]))
        found = index.probe(keys_of([Part(store.column("k").keyed(), range(store.n))]), ALL, 0, 0, 10**6)
        assert sorted(zip(found.at.tolist(), found.rows.tolist(), strict=True)) == [
            (n, n) for n in range(store.n)
        ]
        kinds.append(type(index._places))
    assert kinds == [Hashed] * 9 + [Direct] * 7, "ten thousand rows may have sixteen places each"


def _batch(schema: pa.Schema, rows: list[tuple[object, ...]]) -> pa.RecordBatch:
    columns = [[row[n] for row in rows] for n in range(len(schema))]
    return pa.RecordBatch.from_arrays(
        [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema
    )
