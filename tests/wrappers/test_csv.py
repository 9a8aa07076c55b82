"""Rows from CSV."""

import pyarrow as pa
import pytest

from mediator.catalog.model import Field
from mediator.errors import SchemaChanged, Unreadable
from tests.wrappers.replies import ISBN, SOLD, YEAR, reply
from wrappers import CsvReader

READER = CsvReader(kind="csv", fields={"year": "Year won"}, optional=("sold",))


def _rows(body: str | bytes, reader: CsvReader = READER, charset: str = "utf-8") -> list[list[object]]:
    parsed = reader.parse("prizes", (ISBN, YEAR, SOLD), reply(body, f"text/csv; charset={charset}"))
    assert all(len(c) == parsed.count for c in parsed.columns)
    return [c.to_pylist() for c in parsed.columns]


def test_columns_are_found_by_their_headers() -> None:
    body = 'Year won,ignored,isbn\n1999,x,"1,\n2"\n,y,007\n'
    assert _rows(body) == [["1,\n2", "007"], [1999, None], [None, None]]


def test_a_file_may_have_a_mark_another_delimiter_and_another_charset() -> None:
    reader = CsvReader(kind="csv", fields={"year": "année"}, delimiter=";", optional=("sold",))
    assert _rows("\ufeffisbn;année\n1;2\n", reader) == [["1"], [2], [None]]
    assert _rows("isbn;année\n1;2\n".encode("latin-1"), reader, "iso-8859-1") == [["1"], [2], [None]]


@pytest.mark.parametrize("end", ["\n", "", "\r\n", "\r"])
def test_headers_alone_are_no_rows(end: str) -> None:
    assert _rows(f"isbn,Year won{end}") == [[], [], []]
    assert _rows(f'\ufeff"isbn","Year won"{end}') == [[], [], []]


def test_the_last_line_need_not_end() -> None:
    assert _rows("isbn,Year won\n1,2") == [["1"], [2], [None]]
    assert _rows("isbn,Year won\n1,") == [["1"], [None], [None]]
    assert _rows('Year won,isbn\n2,"1\n"') == [["1\n"], [2], [None]]


@pytest.mark.parametrize("body", ["", "isbn,Year won\n1\n2,3\n", b"isbn,Year won\n\xff,1\n"])
def test_what_is_not_csv_is_unreadable(body: str | bytes) -> None:
    with pytest.raises(Unreadable, match="prizes: not CSV"):
        _rows(body)


def test_a_charset_that_does_not_exist_is_unreadable() -> None:
    with pytest.raises(Unreadable, match="prizes: not CSV: unknown encoding"):
        _rows("isbn\n", charset="klingon")


def test_what_is_not_as_declared_is_named() -> None:
    with pytest.raises(
        SchemaChanged, match=r"prizes\.year: expected a field of type int32, found only: isbn, y"
    ):
        _rows("isbn,y\n1,2\n")
    with pytest.raises(SchemaChanged, match=r"prizes\.year: expected int32, found str 'MMXX'"):
        _rows("isbn,Year won\n1,2020\n2,MMXX\n")


@pytest.mark.parametrize("text", ["NaN", "inf", "-Infinity"])
def test_a_number_that_is_none_is_not_as_declared(text: str) -> None:
    reader = CsvReader()
    with pytest.raises(SchemaChanged, match=rf"expected double, found str '{text}'"):
        reader.parse("offers", [Field("price", pa.float64())], reply(f"price\n1.5\n\n{text}\n", "text/csv"))
