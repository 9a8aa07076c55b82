"""Strings that two words cannot hold: copied, compared and hashed eight bytes at a time, whatever is left over."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from mediator.state.columns import TextColumn
from mediator.state.kernels.text import SHORT, copy_bytes, long_code, same_bytes

SIZES = range(SHORT + 1, SHORT + 30)


def _bytes(size: int) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    return np.arange(1, size + 1, dtype=np.uint8)


@pytest.mark.parametrize("size", SIZES)
def test_a_copy_is_whole_and_no_larger(size: int) -> None:
    target = np.zeros(size + 20, np.uint8)
    copy_bytes(np.concatenate([[0, 0, 0], _bytes(size)]).astype(np.uint8), 3, target, 10, size)
    assert target[10 : 10 + size].tolist() == _bytes(size).tolist()
    assert not target[:10].any()
    assert not target[10 + size :].any()


@pytest.mark.parametrize("size", SIZES)
def test_every_byte_counts(size: int) -> None:
    """And none that stands around them."""
    left = np.concatenate([np.full(5, 7), _bytes(size), np.full(9, 7)]).astype(np.uint8)
    right = np.concatenate([np.full(2, 8), _bytes(size), np.full(9, 8)]).astype(np.uint8)
    assert same_bytes(left, 5, right, 2, size)
    code = long_code(left, 5, size)
    assert long_code(right, 2, size) == code
    for byte in range(size):
        other = right.copy()
        other[2 + byte] ^= 0x80
        assert not same_bytes(left, 5, other, 2, size)
        assert long_code(other, 2, size) != code


def test_they_come_back_from_a_column_in_any_order() -> None:
    texts = ["x" * n + str(n) for n in (*SIZES, 0, 3, 11, 12, 500)] * 20
    column = TextColumn(pa.string())
    for start in range(0, len(texts), 7):
        column.append(pa.array(texts[start : start + 7]))
    ids = np.random.default_rng(1).permutation(len(texts)).astype(np.int32)
    assert column.gather(ids).to_pylist() == [texts[n] for n in ids]
