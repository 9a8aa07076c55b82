"""Rows out of several stores as one: the same values, whatever is read first and however often they are packed."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mediator.flow.batch import Rows
from mediator.state.rowstore import _DEEPEST, PackedRows, RowStore
from tests.state.test_columns import VALUES

SCHEMA = pa.schema(
    [
        ("number", pa.int64()),
        ("real", pa.float64()),
        ("text", pa.string()),
        ("flag", pa.bool_()),
        ("day", pa.date32()),
        ("many", pa.list_(pa.int32())),
    ]
)
DRAWN = {
    "number": st.integers(-(2**63), 2**63 - 1),
    "real": st.floats(allow_nan=False),
    "text": st.text(max_size=30),
    "flag": st.booleans(),
    "day": st.dates(),
    "many": st.lists(st.integers(0, 9), max_size=3),
}
ROWS = st.lists(
    st.fixed_dictionaries({name: st.none() | values for name, values in DRAWN.items()}), max_size=8
)


@settings(max_examples=150)
@given(st.data())
def test_they_are_the_rows_that_were_packed(data: st.DataObject) -> None:
    stores = [_store(data.draw(ROWS)) for _ in range(data.draw(st.integers(1, 3)))]
    for _ in range(data.draw(st.integers(1, 2 * _DEEPEST))):
        chosen = data.draw(st.lists(st.sampled_from(stores), min_size=1, max_size=3))
        parts = [(store, _ids(data, store)) for store in chosen]
        packed = PackedRows(parts)
        _compute(packed)
        expected = [row for store, ids in parts for row in _read(store, ids)]
        for name in data.draw(st.lists(st.sampled_from([*SCHEMA.names, "twice"]))):
            assert packed.gather(name, range(packed.n)).to_pylist() == [row[name] for row in expected]
        assert packed.n == len(expected)
        stores.append(packed)
    assert _read(packed, range(packed.n)) == expected


@pytest.mark.parametrize(("type_", "values"), VALUES, ids=[str(t) for t, _ in VALUES])
def test_of_any_type(type_: pa.DataType, values: list[object]) -> None:
    schema = pa.schema([("it", type_)])
    one, other = (
        RowStore.of(schema, pa.RecordBatch.from_arrays([pa.array(some, type_)], schema=schema))
        for some in (values, values[::-1])
    )
    packed = PackedRows([(one, range(1, one.n)), (other, np.array([0], np.int32))])
    assert packed.gather("it", range(packed.n)).to_pylist() == [*values[1:], values[-1]]
    assert packed.gather("it", range(packed.n)).type == type_


def _store(rows: list[dict[str, object]]) -> RowStore:
    store = RowStore.of(SCHEMA, pa.RecordBatch.from_pylist(rows, SCHEMA))
    _compute(store)
    return store


def _compute(store: RowStore) -> None:
    store.compute(
        "twice",
        pa.string(),
        ("text",),
        lambda rows: pa.array([t and t + t for t in rows["text"].to_pylist()]),
    )


def _ids(data: st.DataObject, store: RowStore) -> Rows:
    if data.draw(st.booleans()):
        first, last = sorted(data.draw(st.tuples(*[st.integers(0, store.n)] * 2)))
        return range(first, last)
    some = data.draw(st.lists(st.integers(0, store.n - 1), max_size=8)) if store.n else []
    return np.array(some, np.int32)


def _read(store: RowStore, ids: Rows) -> list[dict[str, object]]:
    columns = {name: store.gather(name, ids).to_pylist() for name in [*SCHEMA.names, "twice"]}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
