"""What a site is asked with: Python's own values, or a word about why not."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pytest

from mediator.eddy.feeding import _plain
from mediator.errors import MediatorError


@pytest.mark.parametrize(
    ("kind", "beyond", "text"),
    [
        (pa.date32(), -719_529, "-0001-12-31|0000-"),
        (pa.date32(), 2_932_897, "10000-01-01"),
        (pa.timestamp("us"), 253_402_300_800_000_000, "10000-01-01"),
    ],
)
def test_a_moment_that_python_does_not_know_is_named(kind: pa.DataType, beyond: int, text: str) -> None:
    whole = pa.int32() if kind == pa.date32() else pa.int64()
    values = pa.array([0, None, beyond], whole).cast(kind)
    with pytest.raises(MediatorError, match=f"trips.day cannot be asked with ({text})"):
        _plain(values, "trips.day")


def test_all_others_are_plain() -> None:
    day = datetime.date(2024, 1, 31)
    assert _plain(pa.array([day, None]), "trips.day") == [day, None]
