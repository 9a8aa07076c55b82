"""Bindings as text and back."""

from __future__ import annotations

import math
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mediator.store.bindings import read, written

VALUES: dict[str, tuple[pa.DataType, st.SearchStrategy[object]]] = {
    "s": (pa.string(), st.text()),
    "i": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "n": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "f": (pa.float64(), st.floats(allow_nan=False) | st.just(math.nan)),
    "b": (pa.bool_(), st.booleans()),
    "d": (pa.date32(), st.dates()),
    "t": (pa.timestamp("us"), st.datetimes()),
    "x": (pa.binary(), st.binary()),
    "m": (
        pa.decimal128(20, 3),
        st.decimals(-1_000_000, 1_000_000, places=3, allow_nan=False, allow_infinity=False),
    ),
}
SCHEMA = pa.schema([(name, type_) for name, (type_, _) in VALUES.items()])
BIND_SET = tuple(VALUES)


@given(st.lists(st.tuples(*(values for _, values in VALUES.values()))))
def test_every_binding_comes_back_as_it_was(bindings: list[tuple[object, ...]]) -> None:
    texts = written(SCHEMA, BIND_SET, bindings)
    assert read(SCHEMA, BIND_SET, texts) == bindings
    assert len(set(texts)) >= len(set(bindings))


def test_the_one_binding_of_a_scan_is_empty() -> None:
    assert read(SCHEMA, (), written(SCHEMA, (), [(), ()])) == [(), ()]


@pytest.mark.parametrize(
    ("field", "one", "same"),
    [("f", 1, 1.0), ("m", Decimal("1.5"), Decimal("1.500"))],
)
def test_equal_values_have_equal_texts(field: str, one: object, same: object) -> None:
    assert written(SCHEMA, (field,), [(one,)]) == written(SCHEMA, (field,), [(same,)])
