"""Columns that number their strings together find what a nested loop finds, and none learns another's by mistake."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mediator.errors import MediatorError
from mediator.state.columns import TextColumn, column_of
from mediator.state.index import Index, Visible
from mediator.state.kernels import numbers as kernels
from mediator.state.keys import Part, keys_of
from mediator.state.rowstore import RowStore
from mediator.state.vocabulary import Vocabulary, share

SCHEMA = pa.schema([("x", pa.string())])
LONG = "a string that does not fit into two words "
TWELVE = "abcdefghijkl"
# Alike in their first bytes, in their lengths, or in all but one byte.
STRINGS = st.one_of(
    st.none(),
    st.sampled_from(
        ["", "a", "b", TWELVE, TWELVE[:-1], f"{TWELVE}m", f"{LONG}1", f"{LONG}2", "\x00", "\x00\x00"]
    ),
    st.integers(0, 5_000).map(str),
    st.integers(0, 50).map(lambda n: f"{LONG}{n}"),
)
CHUNKS = st.lists(st.lists(STRINGS, max_size=40), max_size=6)


def _text(values: Sequence[str | None] = ()) -> TextColumn:
    column = column_of(pa.string())
    assert isinstance(column, TextColumn)
    column.append(pa.array(values, pa.string()))
    return column


def _store(values: Sequence[str | None]) -> RowStore:
    return RowStore.of(SCHEMA, pa.RecordBatch.from_arrays([pa.array(values, pa.string())], schema=SCHEMA))


def _append(store: RowStore, values: Sequence[str | None]) -> None:
    store.append(pa.RecordBatch.from_arrays([pa.array(values, pa.string())], schema=SCHEMA))


def _share(*stores: RowStore) -> None:
    columns = [store.bare("x") for store in stores]
    share([c for c in columns if isinstance(c, TextColumn)])


def _matches(stored: RowStore, asking: RowStore, index: Index) -> set[tuple[int, int]]:
    keys = keys_of([Part(asking.column("x").keyed(), range(asking.n))])
    found, pairs, start, taken = None, set(), 0, 0
    while start < len(keys):
        found = index.probe(keys, Visible(stored.n), start, taken, 50)
        pairs |= set(zip(found.at.tolist(), found.rows.tolist(), strict=True))
        start, taken = found.next, found.taken
    return pairs


def _nested_loop(left: Sequence[str | None], right: Sequence[str | None]) -> set[tuple[int, int]]:
    return {(i, j) for i, a in enumerate(left) for j, b in enumerate(right) if a is not None and a == b}


@settings(max_examples=200)
@given(st.lists(st.tuples(st.integers(0, 2), st.lists(STRINGS, max_size=60)), max_size=8))
def test_equal_strings_have_one_number_and_others_another(chunks: list[tuple[int, list[str | None]]]) -> None:
    columns = [_text() for _ in range(3)]
    share(columns)
    held: list[list[str | None]] = [[], [], []]
    known: dict[str | None, int] = {None: -1}
    for number, values in chunks:
        columns[number].append(pa.array(values, pa.string()))
        held[number] += values
        for value, code in zip(held[number], columns[number].numbers().tolist(), strict=True):
            assert known.setdefault(value, code) == code
    codes = sorted(known.values())
    assert codes == list(range(-1, len(codes) - 1))  # dense, and no two the same


@settings(max_examples=200)
@given(CHUNKS, CHUNKS, st.booleans(), st.booleans())
def test_a_probe_finds_what_a_nested_loop_finds(
    left: list[list[str | None]], right: list[list[str | None]], shared: bool, late: bool
) -> None:
    """From a column of the same vocabulary or of none; whether the index was there before the vocabulary or not."""
    stored, asking, third = _store([]), _store([]), _store(["a", None])
    index = Index(stored, ("x",))
    if not late:
        _share(stored, asking if shared else third)
    rows: list[str | None] = []
    wanted: list[str | None] = []
    for n in range(max(len(left), len(right))):
        for chunks, store, all_ in ((left, stored, rows), (right, asking, wanted)):
            if n < len(chunks):
                _append(store, chunks[n])
                all_ += chunks[n]
        if late and n == 1:
            _share(stored, asking if shared else third)
        assert _matches(stored, asking, index) == _nested_loop(wanted, rows)


def test_numbers_that_come_late_find_places_behind_the_others() -> None:
    """An index grows with the vocabulary, also where most of that are another column's strings."""
    stored, other = _store([]), _store([])
    _share(stored, other)
    index = Index(stored, ("x",))
    rows: list[str | None] = []
    for n in range(12):
        _append(other, [f"other {n} {k}" for k in range(3_000)])
        _share_numbers(other)
        fresh = [f"{n}-{k}" for k in range(7)] + [None]
        _append(stored, fresh)
        rows += fresh
        assert _matches(stored, _store(rows), index) == _nested_loop(rows, rows)


def _share_numbers(store: RowStore) -> None:
    column = store.bare("x")
    assert isinstance(column, TextColumn)
    column.numbers()


def test_a_column_keeps_the_vocabulary_that_it_has() -> None:
    a, b, c, d = (_text(["x", "y"]) for _ in range(4))
    share([a, b])
    share([c, d])
    first, second = a.vocabulary, c.vocabulary
    share([b, c])
    assert (b.vocabulary, c.vocabulary) == (first, second)
    e = _text()
    share([e, c])
    assert e.vocabulary is second


@pytest.mark.parametrize("times", [0, 1, 2])
def test_a_column_by_itself_needs_none(times: int) -> None:
    a = _text(["x"])
    share([a] * times)
    assert a.vocabulary is None


def test_a_vocabulary_is_gone_with_its_columns() -> None:
    a, b = _text(["x"]), _text(["y"])
    share([a, b])
    a.numbers()
    vocabulary = weakref.ref(a.vocabulary)
    kept = b.numbers()
    del a
    assert vocabulary() is not None
    del b
    gc.collect()
    assert vocabulary() is None
    assert kept.tolist() == [1]


def test_settling_numbers_what_all_columns_have() -> None:
    a, b = _text(["x", "y"]), _text(["y", None, "z"])
    share([a, b])
    assert a.vocabulary is not None
    a.vocabulary.settle()
    assert a.vocabulary.count == 3


def test_what_it_does_not_know_has_no_number() -> None:
    vocabulary, column = Vocabulary(), _text(["a", LONG, None])
    assert vocabulary.find(column, range(3)).tolist() == [-1, -1, -1]
    other = _text([LONG, "b"])
    share([column, other])
    other.numbers()
    assert column.vocabulary is not None
    assert column.vocabulary.find(column, np.array([2, 1, 0], np.int32)).tolist() == [-1, 0, -1]


def test_too_many_different_strings_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "MOST", 3)
    a, b = _text(["a", "b"]), _text(["c", "d"])
    share([a, b])
    a.numbers()
    with pytest.raises(MediatorError, match="3 different strings"):
        b.numbers()
