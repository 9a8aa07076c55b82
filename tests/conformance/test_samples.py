"""Bindings to try: where they come from, and what nobody can have."""

from __future__ import annotations

from datetime import date, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sources
from mediator.catalog.model import Catalog
from mediator.errors import CatalogError
from wrappers.conformance.samples import in_other_case, needed, samples, strange, unknown

_VALUES = st.one_of(
    st.text(min_size=1, max_size=30),
    st.integers(-(2**31), 2**62),
    st.floats(-1e9, 1e9),
    st.dates(),
    st.datetimes(),
)


@given(_VALUES, st.integers(1, 50))
def test_a_strange_value_is_another_one_of_the_same_type(value: object, nth: int) -> None:
    other = strange(value, nth)
    assert type(other) is type(value)
    assert other != value


@given(st.text("abcXYZ019-", min_size=6, max_size=20), st.integers(1, 20))
def test_a_strange_text_has_the_same_shape(text: str, nth: int) -> None:
    other = strange(text, nth)
    assert isinstance(other, str)
    if any(c.isalnum() for c in text):
        assert [(c.isdigit(), c.isupper()) for c in other] == [(c.isdigit(), c.isupper()) for c in text]


@given(st.integers(0, 2**31 - 1), st.integers(1, 100))
def test_a_strange_small_number_stays_small(value: int, nth: int) -> None:
    other = strange(value, nth)
    assert isinstance(other, int)
    assert -(2**31) <= other < 2**31


def test_truth_values_and_ranges_stay_as_they_are() -> None:
    assert unknown(("open",), (True,)) is None
    assert unknown(("year>=",), (1990,)) is None
    assert unknown(("open", "city"), (True, "Ulm"))[0] is True  # type: ignore[index]
    assert unknown(("city", "year>="), ("Ulm", 1990))[1] == 1990  # type: ignore[index]


def test_other_case() -> None:
    assert in_other_case(("aB-1", 7)) == ("Ab-1", 7)
    assert in_other_case(("123", 7)) is None


_SHOP = """\
sources: {shop: {base: "http://shop.example"}}
relations:
  books:
    fields: {isbn: string, year: int32, seen: date, at: timestamp, used: bool, price: float64}
    methods:
      all: {mirrors: [shop], request: {path: /books}, reply: {kind: json}}
      by_isbn:
        mirrors: [shop]
        required: [isbn]
        request: {path: /find, query: {isbn: "{isbn}"}}
        reply: {kind: json}
        examples: EXAMPLES
  reviews:
    fields: {isbn: string, stars: int32}
    methods:
      by_isbn:
        mirrors: [shop]
        required: [isbn]
        request: {path: /reviews, query: {isbn: "{isbn}"}}
        reply: {kind: json}
"""


def _catalog(folder: Path, examples: str = "[]", text: str = _SHOP) -> Catalog:
    file = folder / "shop.yaml"
    file.write_text(text.replace("EXAMPLES", examples))
    return sources.load(file)


def _row(isbn: str | None) -> tuple[object, ...]:
    return (isbn, 1990, None, None, None, None)


def test_examples_go_first_and_rows_fill_up(tmp_path: Path) -> None:
    catalog = _catalog(tmp_path, '[{isbn: "1"}]')
    books = catalog.relations["books"]
    rows = {"books": [_row("2"), _row(None), _row("3"), _row("4"), _row("5")]}
    found = samples(catalog, books, books.method("by_isbn"), ("isbn",), rows)
    assert found.bindings == (("1",), ("2",), ("4",))
    assert found.origin == "examples, rows of books"
    assert found.sure


def test_others_lend_what_has_the_same_name_and_type(tmp_path: Path) -> None:
    catalog = _catalog(tmp_path)
    reviews = catalog.relations["reviews"]
    method = reviews.method("by_isbn")
    found = samples(catalog, reviews, method, ("isbn",), {"books": [_row("2"), _row("3")]})
    assert found.bindings == (("2",), ("3",))
    assert found.origin == "rows of books"
    assert not found.sure
    assert not samples(catalog, reviews, method, ("isbn",), {})
    assert needed(method, reviews, ("isbn",)).startswith('add examples: [{isbn: "..."}] to reviews.by_isbn')


def test_an_example_has_values_of_its_fields_types(tmp_path: Path) -> None:
    text = _SHOP.replace("required: [isbn]", "required: [isbn, year, seen, at, used, price]", 1).replace(
        '{isbn: "{isbn}"}',
        '{isbn: "{isbn}", y: "{year}", s: "{seen}", a: "{at}", u: "{used}", p: "{price}"}',
        1,
    )
    said = '[{isbn: "1", year: 1990, seen: 2020-02-29, at: "2020-02-29T10:00:00", used: true, price: 3}]'
    (example,) = _catalog(tmp_path, said, text).relations["books"].method("by_isbn").examples
    assert example == {
        "isbn": "1",
        "year": 1990,
        "seen": date(2020, 2, 29),
        "at": datetime(2020, 2, 29, 10),
        "used": True,
        "price": 3.0,
    }
    assert type(example["price"]) is float


@pytest.mark.parametrize(
    ("examples", "said"),
    [
        ("[{isbn: 978}]", 'expected a string, found int 978: put it in quotes, "978"'),
        ("[{isbm: x}]", "unknown bind-field 'isbm': did you mean 'isbn'?"),
        ("[{year: 1990}]", "unknown bind-field 'year'"),
        ("[{}]", "'isbn' has to be bound: give it a value here too"),
        ('[{isbn: "1"}, {isbn: [1]}]', "examples.1.isbn: expected a string, found list [1]"),
        ("{isbn: x}", "examples"),
        ("[{isbn: }]", "isbn"),
    ],
)
def test_an_example_that_cannot_be_tried_is_told(tmp_path: Path, examples: str, said: str) -> None:
    with pytest.raises(CatalogError) as error:
        _catalog(tmp_path, examples)
    assert "shop.yaml:12: relations.books.methods.by_isbn.examples" in str(error.value)
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("type_", "value"), [("int32", "2147483648"), ("date", '"2020-02-30"'), ("int32", "1.5")]
)
def test_an_example_past_its_type_is_told(tmp_path: Path, type_: str, value: str) -> None:
    text = _SHOP.replace("isbn: string, year", f"isbn: {type_}, year", 1)
    with pytest.raises(CatalogError, match="expected"):
        _catalog(tmp_path, f"[{{isbn: {value}}}]", text)


def test_examples_change_no_method(tmp_path: Path) -> None:
    with_it = _catalog(tmp_path, '[{isbn: "1"}]').relations["books"].method("by_isbn")
    without = _catalog(tmp_path).relations["books"].method("by_isbn")
    assert with_it == without
    assert with_it.examples != without.examples
    assert pa.scalar(with_it.examples[0]["isbn"]).type == pa.string()
