"""Whatever a site sends, a reader gives rows or says what is wrong: it does not crash, hang, or swallow memory."""

from __future__ import annotations

import tracemalloc
from itertools import chain

import pytest

from mediator.errors import SchemaChanged, Unreadable
from tests.wrappers import hostile_bodies
from tests.wrappers.replies import ISBN, PRICE, YEAR, reply
from wrappers import CsvReader, HtmlReader, JsonReader, NdjsonReader, Reader

FIELDS = (ISBN, YEAR, PRICE)
TABLE = HtmlReader(kind="html", table="//table[@id='b']")
BODIES: dict[str, tuple[Reader, dict[str, bytes]]] = {
    "json": (JsonReader(kind="json"), hostile_bodies.JSON),
    "html": (TABLE, hostile_bodies.HTML),
    "csv": (CsvReader(kind="csv"), hostile_bodies.CSV),
    "ndjson": (NdjsonReader(kind="ndjson"), hostile_bodies.NDJSON),
}
CASES = [
    pytest.param(reader, body, id=f"{kind}: {name}")
    for kind, (reader, bodies) in BODIES.items()
    for name, body in bodies.items()
]


def test_there_are_many_ways_to_be_hostile() -> None:
    assert len(CASES) >= 150


@pytest.mark.timeout(20)
@pytest.mark.parametrize(("reader", "body"), CASES)
def test_a_hostile_body_is_a_classified_failure(reader: Reader, body: bytes) -> None:
    with pytest.raises((Unreadable, SchemaChanged), match=r"\Abooks[.:]") as caught:
        reader.parse("books", FIELDS, reply(body, "text/plain"))
    assert len(str(caught.value)) < 1_500  # it is read by people


@pytest.mark.timeout(20)
@pytest.mark.parametrize("kind", ["html", "csv"])
@pytest.mark.parametrize("charset", hostile_bodies.CHARSETS)
def test_a_charset_that_is_none_or_lies_is_a_classified_failure(kind: str, charset: str) -> None:
    reader, _ = BODIES[kind]
    body = "é" * 50_001 if charset else b"\xff"
    with pytest.raises((Unreadable, SchemaChanged), match=r"\Abooks[.:]"):
        reader.parse("books", FIELDS, reply(body, f"text/plain; charset={charset}"))


@pytest.mark.parametrize("charset", ["utf-16", "utf-16-le", "utf-32", "klingon", "punycode"])
def test_json_that_is_not_in_the_charset_it_names_is_unreadable(charset: str) -> None:
    with pytest.raises(Unreadable, match=r"\Abooks: not JSON"):
        JsonReader(kind="json").parse("books", FIELDS, reply(b'["\xff"]', f"text/json; charset={charset}"))


@pytest.mark.parametrize(
    ("charset", "written"),
    [
        ("utf-8", "utf-8"),
        ("utf-8", "utf-8-sig"),
        ("iso-8859-1", "utf-8"),  # a server's default, and wrong: JSON is UTF-8
        ("iso-8859-1", "iso-8859-1"),
        ("utf-16", "utf-16"),
        ("utf-16-le", "utf-16-le"),
    ],
)
def test_json_is_read_in_the_charset_that_it_has(charset: str, written: str) -> None:
    body = '[{"isbn": "é"}]'.encode(written)
    parsed = JsonReader(kind="json").parse("books", (ISBN,), reply(body, f"text/json; charset={charset}"))
    assert parsed.columns[0].to_pylist() == ["é"]


def test_a_page_may_name_its_charset_itself() -> None:
    page = "<meta charset=iso-8859-1><table id=b><tr><th>isbn<tr><td>é</table>".encode("latin-1")
    assert TABLE.parse("books", (ISBN,), reply(page, "text/html")).columns[0].to_pylist() == ["é"]


@pytest.mark.parametrize(
    "body",
    [
        '[{"isbn": "\\"a\\": \\"b\\"", "x": {"isbn": 1}}]',
        '[{"isbn": ":", "x": [{"isbn": 1}, {"isbn": 2}]}]',
        '[{"isbn": "\\\\", "x\\"": 1, "{": "}"}]',
    ],
)
def test_what_only_looks_like_a_key_twice_is_read(body: str) -> None:
    assert JsonReader(kind="json").parse("books", (ISBN,), reply(body)).count == 1


@pytest.mark.parametrize(
    "page",
    [
        "<script>" + "if (a <b c d) " * 1_000 + "</script>",
        "<!-- <p " + "a " * 1_000 + "-->",
        "<p " + "".join(f"a{i}='b c d e f g'" for i in range(400)) + ">",
        "<p title='" + "a=1 " * 10_000 + "'>",
    ],
)
def test_what_only_looks_like_too_many_attributes_is_read(page: str) -> None:
    table = "<table id=b><tr><th>isbn<tr><td>1</table>"
    assert TABLE.parse("books", (ISBN,), reply(page + table)).count == 1


@pytest.mark.parametrize("layout", ["details", "rows", "table"])
def test_things_that_lie_in_each_other_are_not_read_again_and_again(layout: str) -> None:
    page = "<body>" + "<dl><dt>isbn</dt><dd>" * 60 + "x" * 2_000_000
    if layout == "table":
        page = "<body>" + "<table><tr><th>isbn<tr><td>" * 45 + "x " * 1_000_000
    place = {"details": "//dl", "rows": "//dd", "table": "//table"}[layout]
    reader = HtmlReader.model_validate(
        {"kind": "html", layout: place, "fields": {"isbn": "."} if layout == "rows" else {}}
    )
    with pytest.raises(Unreadable, match="books: the page is larger inside than outside"):
        reader.parse("books", (ISBN,), reply(page))


@pytest.mark.timeout(20)
def test_labels_without_values_take_no_quadratic_time() -> None:
    reader = HtmlReader(kind="html", details="//dl")
    with pytest.raises(SchemaChanged, match=r"books\.isbn: expected"):
        reader.parse("books", (ISBN,), reply("<dl>" + "<dt>x</dt>" * 200_000))


def test_a_table_inside_a_cell_has_rows_of_its_own() -> None:
    page = "<table id=b><tr><th>isbn<tr><td>1<table><tr><th>x<tr><td>2</table></table>"
    assert TABLE.parse("books", (ISBN,), reply(page)).columns[0].to_pylist() == ["1x2"]


@pytest.mark.timeout(60)
def test_hostile_bodies_take_little_memory() -> None:
    """Of Python's own; the parsers' C heaps are bounded by the size of the body."""
    largest = 0
    tracemalloc.start()
    try:
        for reader, body in chain.from_iterable(
            ((reader, body) for body in bodies.values()) for reader, bodies in BODIES.values()
        ):
            tracemalloc.reset_peak()
            before, _ = tracemalloc.get_traced_memory()
            with pytest.raises((Unreadable, SchemaChanged)):
                reader.parse("books", FIELDS, reply(body, "text/plain"))
            largest = max(largest, tracemalloc.get_traced_memory()[1] - before)
    finally:
        tracemalloc.stop()
    assert largest < 64 << 20


@pytest.mark.parametrize("kind", ["html", "csv"])
@pytest.mark.parametrize("codec", ["idna", "punycode", "utf-7", "unicode_escape", "raw_unicode_escape"])
def test_a_codec_that_is_no_charset_of_the_web_is_not_used(kind: str, codec: str) -> None:
    """Python has them, and some take quadratic time."""
    reader, _ = BODIES[kind]
    body = (
        "isbn,year,price\n1,1,1\n" if kind == "csv" else "<table id=b><tr><th>isbn<th>year<th>price</table>"
    )
    assert reader.parse("books", FIELDS, reply(body, "text/plain; charset=us-ascii")).count < 2
    with pytest.raises(Unreadable, match=f"unknown encoding: {codec}"):
        reader.parse("books", FIELDS, reply(body, f"text/plain; charset={codec}"))
