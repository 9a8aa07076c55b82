"""Which column tells rows apart that should go different ways, and whether any does."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa
import pytest

from mediator.eddy.dividing import Division, best_division
from mediator.query.model import Column

ROWS = 600
PRICE = np.array([1.0, 1.0])
HALF = np.random.default_rng(1).permutation(
    np.arange(ROWS) % 2 == 0
)  # of the rows match here, the others there
OPPOSED = np.stack([np.where(HALF, 5.0, 0.0), np.where(HALF, 0.0, 5.0)], axis=1)


def _column(name: str) -> Column:
    return Column(0, name)


def _decoys() -> dict[Column, pa.Array]:
    random = np.random.default_rng(2)
    return {
        _column("number"): pa.array(random.integers(0, 1_000, ROWS)),
        _column("word"): pa.array(random.choice(["ash", "elm", "oak"], ROWS).tolist()),
        _column("empty"): pa.nulls(ROWS, pa.string()),
        _column("list"): pa.array([[1]] * ROWS),
    }


TELLING = {
    "a number": pa.array(np.where(HALF, 3, 900) + np.arange(ROWS) % 50),
    "a real number": pa.array(np.where(HALF, 0.25, 0.75)),
    "a word": pa.array(np.where(HALF, "in", "out").tolist()),
    "a date": pa.array([datetime.date(2020 + 3 * int(h), 1, 1 + n % 28) for n, h in enumerate(HALF)]),
    "yes or no": pa.array(HALF.tolist()),
    "NULL or not": pa.array([1 if h else None for h in HALF], pa.int64()),
}


@pytest.mark.parametrize("kind", [k for k in TELLING if k != "NULL or not"])
def test_the_column_that_tells_is_found_between_others_that_do_not(kind: str) -> None:
    told = _column("told")
    found = best_division({**_decoys(), told: TELLING[kind]}, OPPOSED, PRICE)
    assert found is not None
    division, saved = found
    assert division.column == told
    labels = division.label(TELLING[kind])
    assert len(set(labels[HALF])) == len(set(labels[~HALF])) == 1
    assert labels[HALF][0] != labels[~HALF][0]
    assert saved > 1.0, "each second row is spared five useless matches"


def test_where_nothing_tells_them_apart_nothing_is_divided() -> None:
    assert best_division(_decoys(), OPPOSED, PRICE) is None


def test_where_all_should_go_the_same_way_nothing_is_divided() -> None:
    alike = np.stack([np.full(ROWS, 0.1), np.full(ROWS, 2.0)], axis=1)
    assert best_division({**_decoys(), _column("told"): TELLING["a word"]}, alike, PRICE) is None


def test_what_is_right_most_of_the_time_is_worth_it_too() -> None:
    mostly = np.where(np.random.default_rng(3).random(ROWS) < 0.1, ~HALF, HALF)
    found = best_division({_column("told"): pa.array(mostly.astype(int))}, OPPOSED, PRICE)
    assert found is not None


def test_several_values_are_put_together_by_where_they_should_go() -> None:
    words = np.array(["a", "b", "c", "d", "e", "f"])
    at = np.random.default_rng(4).integers(0, 6, ROWS)
    counts = np.where((at < 3)[:, None], [5.0, 0.0], [0.0, 5.0])
    values = pa.array(words[at].tolist())
    found = best_division({_column("told"): values}, counts, PRICE)
    assert found is not None
    labels = found[0].label(values)
    assert found[0].parts == 2
    assert len(set(labels[at < 3])) == len(set(labels[at >= 3])) == 1


def test_four_destinations_are_no_trouble() -> None:
    price = np.ones(4)
    counts = np.concatenate([OPPOSED, np.ones((ROWS, 2))], axis=1)
    found = best_division({_column("told"): TELLING["a number"]}, counts, price)
    assert found is not None


def test_every_row_has_a_part_whatever_comes() -> None:
    by_range = Division(_column("n"), 2, below=10)
    assert by_range.label(pa.array([3, None, 12, 10])).tolist() == [2, 1, 1, 1]
    by_value = Division(_column("w"), 3, groups=(("in",), ("out", "off")))
    assert by_value.label(pa.array(["in", "new", None, "off"])).tolist() == [2, 1, 1, 3]


def test_a_division_can_be_read() -> None:
    assert Division(_column("n"), 2, below=10).text == "n < 10"
    assert Division(_column("w"), 2, groups=(("a", "b", "c", "d"),)).text == "w in a, b, c, ..."


@pytest.mark.parametrize("unit", ["us", "ns"])
def test_values_that_python_cannot_say_divide_nothing(unit: str) -> None:
    """Some ten thousand years off, or finer than a microsecond."""
    far = 2**62 if unit == "us" else 1
    times = pa.array([far + 2 * int(h) + 1 for h in HALF], pa.int64()).cast(pa.timestamp(unit))
    assert best_division({_column("time"): times}, OPPOSED, PRICE) is None
