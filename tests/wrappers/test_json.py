"""Rows from JSON, and what is said when there are none to be had."""

from datetime import date, datetime

import pyarrow as pa
import pytest

from mediator.catalog.model import Field
from mediator.errors import SchemaChanged, Unreadable
from tests.wrappers.replies import DAY, ISBN, PRICE, SOLD, YEAR, reply
from wrappers import JsonReader

SEEN = Field("seen", pa.timestamp("us"))
READER = JsonReader(kind="json", rows="/data/books", fields={"price": "/offer/price"}, optional=("sold",))
FIELDS = (ISBN, YEAR, PRICE, SOLD)


def _rows(
    body: str | bytes, fields: tuple[Field, ...] = FIELDS, reader: JsonReader = READER
) -> list[list[object]]:
    return [c.to_pylist() for c in reader.parse("books", fields, reply(body)).columns]


def test_fields_are_read_from_their_places() -> None:
    body = """{"data": {"books": [
        {"isbn": "1", "year": 1999, "offer": {"price": 5}, "sold": true},
        {"isbn": "2", "year": null, "offer": {"price": 5.5}}]}}"""
    assert _rows(body) == [["1", "2"], [1999, None], [5.0, 5.5], [True, None]]


def test_dots_are_as_good_as_slashes_and_one_record_is_a_row() -> None:
    reader = JsonReader(kind="json", rows="data.0", fields={"isbn": "id.isbn"})
    assert _rows('{"data": [{"id": {"isbn": "1"}}]}', (ISBN,), reader) == [["1"]]


def test_days_are_read_from_texts() -> None:
    body = '[{"day": "2026-02-03"}, {"day": null}]'
    assert _rows(body, (DAY,), JsonReader(kind="json")) == [[date(2026, 2, 3), None]]


@pytest.mark.parametrize(
    "written", ["2026-02-03T04:05:06Z", "2026-02-03T06:05:06+02:00", "2026-02-03T04:05:06"]
)
def test_times_that_name_a_zone_are_in_utc(written: str) -> None:
    body = f'[{{"seen": "{written}"}}, {{"seen": null}}]'
    assert _rows(body, (SEEN,), JsonReader(kind="json")) == [[datetime(2026, 2, 3, 4, 5, 6), None]]


@pytest.mark.parametrize("other", ["2026-02-03T04:05:06", "soon", "2026-02-03T04:05:06Zoo"])
def test_times_of_which_only_some_name_a_zone_are_told(other: str) -> None:
    body = f'[{{"seen": "2026-02-03T04:05:06Z"}}, {{"seen": "{other}"}}]'
    with pytest.raises(SchemaChanged, match=r"books\.seen: expected timestamp\[us\], found str '"):
        _rows(body, (SEEN,), JsonReader(kind="json"))


@pytest.mark.parametrize("body", ["", "<html>", "[NaN]", '{"data": ', b'{"data": "\xff"}'])
def test_what_is_not_json_is_unreadable(body: str | bytes) -> None:
    with pytest.raises(Unreadable, match="books: not JSON"):
        _rows(body)


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ('"isbn": "1"', r"books\.year: expected a field of type int32, found only: isbn"),
        ('"isbn": 1, "year": 1', r"books\.isbn: expected string, found int 1"),
        ('"isbn": "1", "year": "1999"', r"books\.year: expected int32, found str '1999'"),
        ('"isbn": "1", "year": 1.5', r"books\.year: expected int32, found float 1\.5"),
        ('"isbn": "1", "year": true', r"books\.year: expected int32, found bool True"),
        ('"isbn": "1", "year": 9999999999', r"books\.year: expected int32, found int 9999999999"),
        ('"isbn": "1", "year": {"of": 1}', r"books\.year: expected int32, found dict \{'of': 1\}"),
    ],
)
def test_what_is_not_as_declared_is_named(record: str, said: str) -> None:
    with pytest.raises(SchemaChanged, match=said):
        _rows(f'[{{"isbn": "0", "year": 1}}, {{{record}}}]', (ISBN, YEAR), JsonReader(kind="json"))


def test_a_day_that_is_none_is_named() -> None:
    with pytest.raises(SchemaChanged, match=r"books\.day: expected date32\[day\], found str 'soon'"):
        _rows('[{"day": "2026-02-03"}, {"day": "soon"}]', (DAY,), JsonReader(kind="json"))


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('{"items": []}', "expected records at '/data/books', found nothing"),
        ('{"data": {"books": 3}}', "expected records at '/data/books', found int"),
        ('{"data": {"books": [3]}}', "expected a record, found int"),
    ],
)
def test_records_that_are_not_there_are_no_empty_answer(body: str, said: str) -> None:
    with pytest.raises(SchemaChanged, match=said):
        _rows(body)
