"""What a lookup within bounds proves of another, against the rows themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mediator.catalog.bindfields import facts, follows, holds, parted, shown
from mediator.catalog.model import AccessMethod, Field, Mirror, Relation
from mediator.flow.events import Landing
from mediator.state.coverage import Coverage, Entry, Known
from mediator.state.stem import SteM
from mediator.store.claims import claimed
from mediator.store.records import LISTED, LOOKUPS, Covered, Declared

FIELDS = (Field("k", pa.int64()), Field("n", pa.int64()), Field("s", pa.string()))
SCHEMA = pa.schema([(f.name, f.type) for f in FIELDS])
NAMES = ("k", "n", "n<", "n<=", "n>", "n>=", "s", "s^=", "s<=")
WAY = AccessMethod("way", "scan", (Mirror("site", ""),), None, optional=NAMES)
RELATION = Relation("r", FIELDS, (WAY,))

_TEXTS = st.sampled_from(("", "a", "ab", "abc", "b", "ba"))
_ROWS = st.lists(
    st.tuples(st.integers(0, 2), st.none() | st.integers(0, 4), st.none() | _TEXTS), max_size=20, unique=True
)


@st.composite
def _lookups(draw: st.DrawFn) -> tuple[tuple[str, ...], tuple[Any, ...]]:
    names = tuple(sorted(draw(st.sets(st.sampled_from(NAMES), max_size=3))))
    return names, tuple(draw(_TEXTS if name[0] == "s" else st.integers(0, 4)) for name in names)


def _meets(row: tuple[Any, ...], bind_set: tuple[str, ...], binding: tuple[Any, ...]) -> bool:
    for name, bound in zip(bind_set, binding, strict=True):
        value = row["kns".index(name[0])]
        if value is None:
            return False
        met = {
            "": value == bound,
            "^=": name[1:] == "^=" and str(value).startswith(str(bound)),
            "<": value < bound,
            "<=": value <= bound,
            ">": value > bound,
            ">=": value >= bound,
        }
        if not met[name[1:]]:
            return False
    return True


def _table(rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([dict(zip("kns", row, strict=True)) for row in rows], schema=SCHEMA)


@given(wide=_lookups(), narrow=_lookups(), rows=_ROWS)
def test_what_covers_a_lookup_has_all_its_rows(
    wide: tuple[tuple[str, ...], tuple[Any, ...]],
    narrow: tuple[tuple[str, ...], tuple[Any, ...]],
    rows: list[tuple[Any, ...]],
) -> None:
    coverage = Coverage(SCHEMA)
    coverage.note(*wide, Entry(Known.COMPLETE))
    if coverage.covering(*narrow, now=0.0) is not None:
        assert all(_meets(row, *wide) for row in rows if _meets(row, *narrow))
    assert coverage.covering(*wide, now=0.0) is not None, "what was asked covers itself"


@given(lookups=st.lists(_lookups(), min_size=1, max_size=3), rows=_ROWS)
def test_rows_are_read_back_and_vouched_for_by_their_bounds(
    lookups: list[tuple[tuple[str, ...], tuple[Any, ...]]], rows: list[tuple[Any, ...]]
) -> None:
    stem = SteM(RELATION)
    stem.build(Landing(_table(rows)), now=1.0)
    none = np.zeros(0, np.int32)
    for bind_set, binding in lookups:
        ids = stem.vouched(bind_set, binding, Entry(Known.COMPLETE))
        assert {rows[i] for i in ids} == {row for row in rows if _meets(row, bind_set, binding)}
        assert not len(stem.vouched(bind_set, binding, Entry(Known.COMPLETE, brought=none)))
    kept = pa.Table.from_batches([_table(rows)], SCHEMA).append_column(
        LOOKUPS, pa.array([[1]] * len(rows), LISTED)
    )
    assert not len(claimed(Declared.of(RELATION), kept, [Covered(*lookups[0], at=0.5, until=9.0, lookup=2)]))
    covered = [Covered(*lookup, at=0.5, until=9.0, lookup=1) for lookup in lookups]
    vouched = claimed(Declared.of(RELATION), kept, covered).select(list("kns")).to_pylist()
    true = [row for row in rows if any(_meets(row, *lookup) for lookup in lookups)]
    assert [tuple(row.values()) for row in vouched] == true


@pytest.mark.parametrize(
    ("entry", "lookup", "covers"),
    [
        ("n<= 5", "n<= 5", True),
        ("n<= 5", "n<= 4", True),
        ("n<= 5", "n< 5", True),
        ("n<= 5", "n 5", True),
        ("n< 5", "n<= 5", False),
        ("n< 5", "n 5", False),
        ("n<= 5", "n<= 6", False),
        ("n<= 5", "n>= 4", False),
        ("n 5", "n<= 5", False),
    ],
)
def test_examples(entry: str, lookup: str, covers: bool) -> None:
    (name, bound), (known, value) = entry.split(), lookup.split()
    assert follows(name, int(bound), facts((known,), (int(value),))) is covers


def test_spelling() -> None:
    assert parted("year>=") == ("year", ">=")
    assert parted("year") == ("year", "=")
    assert parted("title^=") == ("title", "^=")
    assert parted("größe<") == ("größe", "<")
    assert shown("title^=", "'D'") == "title starts with 'D'"
    assert shown("year>=") == "year >= ..."


def test_nothing_is_known_of_null() -> None:
    found = holds("n<=", pa.array([1, None, 3]), pa.scalar(2))
    assert found.to_pylist() == [True, None, False]
