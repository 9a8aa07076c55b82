"""Rows from NDJSON."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mediator.errors import SchemaChanged, Unreadable
from tests.wrappers.replies import ISBN, PRICE, YEAR, reply
from wrappers import NdjsonReader
from wrappers.ndjson_reader import _lines

READER = NdjsonReader(kind="ndjson", fields={"price": "offer.price"}, optional=("price",))
FIELDS = (ISBN, YEAR, PRICE)


def test_every_line_is_a_record() -> None:
    body = '{"isbn": "1", "year": 1999, "offer": {"price": 2}}\n\n{"isbn": "2\\n", "year": null}\r\n'
    parsed = READER.parse("books", FIELDS, reply(body))
    assert [c.to_pylist() for c in parsed.columns] == [["1", "2\n"], [1999, None], [2.0, None]]


@pytest.mark.parametrize("body", ["", "\n\n", "\ufeff"])
def test_no_lines_are_no_rows(body: str) -> None:
    parsed = READER.parse("books", FIELDS, reply(body))
    assert (parsed.count, [len(c) for c in parsed.columns]) == (0, [0, 0, 0])


def test_a_line_that_was_cut_off_is_told_by_its_number() -> None:
    with pytest.raises(Unreadable, match="books: not NDJSON: line 3: "):
        READER.parse("books", FIELDS, reply('{"isbn": "1", "year": 1}\n\n{"isbn": "2", "ye'))


def test_what_is_not_as_declared_is_named() -> None:
    with pytest.raises(SchemaChanged, match=r"books\.year: expected a field of type int32, found only: isbn"):
        READER.parse("books", FIELDS, reply('{"isbn": "1"}\n'))


def test_what_stands_beside_the_rows_is_in_the_first_line() -> None:
    sent = reply('{"isbn": "1", "year": 1, "next": "/2"}\n{"isbn": "2", "year": 1}\n')
    assert READER.parse("books", FIELDS, sent).find("/next") == "/2"
    assert READER.look(sent, "next") == "/2"


@given(
    st.lists(
        st.sampled_from(["{}", '{"k":1}', "{},{}", '{"a":[1', "2]}", "[1", "2]", '"x', 'y"', "", "]", ","]),
        max_size=6,
    )
)
@example(["{},{}", '{"a":[1', "2]}"])
def test_lines_that_are_something_together_are_none_by_themselves(lines: list[str]) -> None:
    sent = reply("\n".join(lines))
    try:
        meant = [json.loads(line) for line in lines if line]
    except ValueError:
        with pytest.raises(Unreadable, match=r"line \d: "):
            _lines("r", sent)
    else:
        assert _lines("r", sent) == meant
