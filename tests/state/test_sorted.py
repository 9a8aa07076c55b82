"""Sorted runs find what a nested loop finds."""

from __future__ import annotations

import operator
from random import Random

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from mediator.state.index import Visible
from mediator.state.rowstore import RowStore
from mediator.state.sorted import SortedRuns

OPS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
WANTED = st.lists(st.integers(-6, 6), min_size=4, max_size=4)
VALUE = st.one_of(st.none(), st.integers(-5, 5))


@settings(max_examples=200)
@given(
    st.lists(st.lists(VALUE, max_size=12), min_size=1, max_size=6),
    st.lists(st.tuples(st.sampled_from(sorted(OPS)), WANTED), min_size=1, max_size=2),
    st.integers(1, 30),
    st.integers(0, 99),
)
def test_a_band_finds_every_visible_row_once(
    chunks: list[list[int | None]], band: list[tuple[str, list[int]]], room: int, seed: int
) -> None:
    random, store = Random(seed), RowStore(pa.schema([("x", pa.int64())]))
    runs = SortedRuns(store, "x")
    values: list[int | None] = []
    for chunk in chunks:
        store.append(pa.RecordBatch.from_arrays([pa.array(chunk, pa.int64())], schema=store.schema))
        values += chunk
        places = random.sample(range(len(values)), len(values))
        limit = random.randint(0, len(values))
        visible = Visible(limit, 0, np.array(places, np.int32))
        nulls = np.array([False, True, False, False])
        bounds = [(op, np.array(wanted, np.int64)) for op, wanted in band]
        found, start = [], 0
        while start < 4:
            part = runs.probe(bounds, nulls, visible, start, room)
            found += list(zip(part.at.tolist(), part.rows.tolist(), strict=True))
            assert part.next > start
            start = part.next
        expected = [
            (i, r)
            for i in range(4)
            for r, value in enumerate(values)
            if not nulls[i]
            and value is not None
            and places[r] < limit
            and all(OPS[op](value, wanted[i]) for op, wanted in band)
        ]
        assert sorted(found) == expected
