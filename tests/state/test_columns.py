"""Whatever goes into a column comes out of it, by any row ids; equal values have equal codes."""

from __future__ import annotations

import datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from mediator.state.columns import column_of

LONG = "a string that does not fit into two words"
VALUES: list[tuple[pa.DataType, list[object]]] = [
    (pa.int64(), [1, -5, None, 2**62, 0]),
    (pa.int32(), [1, -5, None, 7]),
    (pa.uint64(), [1, None, 2**64 - 1]),
    (pa.int8(), [1, -5, 7]),
    (pa.float64(), [1.5, None, -0.0, float("inf")]),
    (pa.float32(), [1.5, None, 2.0]),
    (pa.bool_(), [True, False, None, True]),
    (pa.date32(), [datetime.date(2020, 1, 1), None]),
    (pa.timestamp("us"), [datetime.datetime(2020, 1, 1, 3, 4), None]),
    (pa.string(), ["", "a", None, "abcd", "twelve chars", "thirteen char", LONG, "ö€😀", LONG]),
    (pa.large_string(), ["x", None, LONG]),
    (pa.string_view(), ["x", None, LONG]),
    (pa.binary(), [b"", b"\x00\xff", None, LONG.encode()]),
    (pa.decimal128(10, 2), [Decimal("1.50"), None, Decimal("-3.25")]),
    (pa.list_(pa.int64()), [[1, 2], None, []]),
    (pa.struct([("a", pa.int64())]), [{"a": 1}, None]),
    (pa.dictionary(pa.int32(), pa.string()), ["x", None, "y"]),
]


@pytest.mark.parametrize(("type_", "values"), VALUES, ids=[str(t) for t, _ in VALUES])
def test_values_come_back(type_: pa.DataType, values: list[object]) -> None:
    column = column_of(type_)
    array = pa.array(values, type_)
    column.append(array.slice(1))
    column.append(array.slice(0, 0))
    column.append(array)
    expected = values[1:] + values
    rows = np.array([3 % len(expected), 0, len(expected) - 1, 0], np.int32)
    assert column.gather(range(len(expected))).to_pylist() == expected
    assert column.gather(range(1, 2)).to_pylist() == expected[1:2]
    assert column.gather(rows).to_pylist() == [expected[r] for r in rows]
    assert column.gather(rows).type == type_
    column.gather(rows).validate(full=True)


@pytest.mark.parametrize(("type_", "values"), VALUES, ids=[str(t) for t, _ in VALUES])
def test_equal_values_are_the_same_key_and_others_are_not(type_: pa.DataType, values: list[object]) -> None:
    left, right = column_of(type_), column_of(type_)
    left.append(pa.array(values, type_))
    right.append(pa.array(list(reversed(values)), type_))
    one, other = left.keyed(), right.keyed()
    valid = one.valid
    for a, value in enumerate(values):
        assert (valid is None or bool(valid[a])) == (value is not None)
        for b, second in enumerate(reversed(values)):
            if value is None or second is None:
                continue
            out = np.ones(1, np.bool_)
            one.same(np.array([a], np.int32), other, np.array([b], np.int32), out)
            same = bool(out[0]) and one.codes()[a] == other.codes()[b]
            assert same == (value == second)
            if one.exact:
                assert (one.codes()[a] == other.codes()[b]) == (value == second)


def test_both_zeros_are_one_key_and_all_nans_are_one() -> None:
    column = column_of(pa.float64())
    column.append(pa.array([0.0, -0.0, float("nan"), -float("nan")]))
    codes = column.keyed().codes()
    assert codes[0] == codes[1]
    assert codes[2] == codes[3]


def test_integers_of_any_width_are_one_key_type() -> None:
    narrow, wide = column_of(pa.int8()), column_of(pa.int64())
    narrow.append(pa.array([-3, 4], pa.int8()))
    wide.append(pa.array([-3, 4], pa.int64()))
    assert narrow.keyed().codes().tolist() == wide.keyed().codes().tolist()
