"""Rows from web pages: tables, pages about one thing, whatever repeats."""

import pytest
from pydantic import ValidationError

from mediator.errors import SchemaChanged, Unreadable
from tests.wrappers.replies import ISBN, PRICE, YEAR, reply
from wrappers import HtmlReader
from wrappers.parsed import Parsed

TABLE = HtmlReader(kind="html", table="//table[@id='b']", nothing="//p[@id='none']", fields={"isbn": "ISBN"})


def _rows(parsed: Parsed) -> list[list[object]]:
    return [c.to_pylist() for c in parsed.columns]


def test_a_table_is_read_by_its_headers() -> None:
    page = """<table id=b><tr><th>year<th>  ISBN </th><th>other</tr>
        <tr><td>1999</td><td> <b>1</b> &amp; 2 </td><td>x</td></tr><tr><td></td><td>3</td></tr></table>"""
    parsed = TABLE.parse("books", (ISBN, YEAR), reply(page))
    assert _rows(parsed) == [["1 & 2", "3"], [1999, None]]


SPANNED = HtmlReader(kind="html", table="//table", optional=("isbn", "year"))


@pytest.mark.parametrize(
    ("page", "rows"),
    [
        ("<tr><th>isbn<th>year<tr><td rowspan=2>a<td>1<tr><td>2<tr><td>b<td>3", [["a", "a", "b"], [1, 2, 3]]),
        ("<tr><th colspan=2>name<th>isbn<th>year<tr><td>x<td>y<td>a<td>1", [["a"], [1]]),
        (
            "<tr><th>isbn<th>year<th>x<tr><td>a<td colspan=2>1<tr><td>b<td colspan=' 0999'>2",
            [["a", "b"], [1, 2]],
        ),
        (
            "<tr><th>isbn<th>year<tr><td rowspan=0>a<td>1<tr><td>2<tbody><tr><td>b<td>3",
            [["a", "a", "b"], [1, 2, 3]],
        ),
        (
            "<tr><th>isbn<th>year<tr><td>a<td rowspan=2>1<tr><td>b<tr><td>c<td rowspan=x>2",
            [["a", "b", "c"], [1, 1, 2]],
        ),
        ("<tr><th rowspan=2>isbn<th colspan=2>when<tr><th>year<th>day<tr><td>a<td>1<td>5", [["a"], [1]]),
        ("<tr><th>isbn<th>year<tr><td rowspan=2>a<td rowspan=2>1<tr><tr><td>b", [["a", "b"], [1, None]]),
    ],
)
def test_a_cell_stands_in_every_place_that_it_spans(page: str, rows: list[list[object]]) -> None:
    assert _rows(SPANNED.parse("books", (ISBN, YEAR), reply(f"<table>{page}</table>"))) == rows


def test_a_cell_behind_the_columns_is_nobody_s() -> None:
    page = "<table><tr><th>isbn<th>year<tr><td>a<td>1<td><button>buy</button></table>"
    parsed = SPANNED.parse("books", (ISBN, YEAR), reply(page))
    assert [column.to_pylist() for column in parsed.columns] == [["a"], [1]]


@pytest.mark.parametrize(
    ("page", "said"),
    [
        (
            "<tr><th>isbn<th>year<tr><td>a<td colspan=1>1<td>more",
            "more cells than there are headers: 'more'",
        ),
        (
            "<tr><th>isbn<th>year<tr><td rowspan=2>a<td>1<tr><td>2<td>b",
            "more cells than there are headers: 'b'",
        ),
        (
            "<tr><th>isbn<th>year<tr><td colspan=2>1999",
            "a line is one cell across all columns, and no row: '1999'",
        ),
        ("<tr><th colspan=2>isbn<th>year<tr><td>a<td>b<td>1", "two columns have the header 'isbn'"),
        ("<tr>" + "<th colspan=1000000000>isbn" * 3, "books: more than 2,000 columns"),
    ],
)
def test_a_table_that_does_not_fit_its_headers_has_changed(page: str, said: str) -> None:
    with pytest.raises(SchemaChanged, match=said):
        SPANNED.parse("books", (ISBN, YEAR), reply(f"<table>{page}</table>"))


@pytest.mark.timeout(20)
@pytest.mark.parametrize("span", ["65534", "1000000000", "9" * 10_000])
def test_few_cells_cannot_span_so_many_places_that_they_fill_the_memory(span: str) -> None:
    page = "<tr><th colspan=1000>x<th>isbn" + f"<tr><td rowspan={span} colspan={span}>y" + "<tr><td>" * 60_000
    with pytest.raises(Unreadable, match="its cells span too many places"):
        SPANNED.parse("books", (ISBN,), reply(f"<table>{page}</table>"))


@pytest.mark.parametrize(
    ("head", "base"), [("", ""), ("<base target=_top>", ""), ("<base href=' /x/ '><base href=/y/>", "/x/")]
)
def test_a_page_says_where_its_links_begin(head: str, base: str) -> None:
    page = f"<head>{head}</head><table id=b><tr><th>ISBN<th>year</table>"
    assert TABLE.parse("books", (ISBN, YEAR), reply(page)).base == base


def test_a_page_can_say_that_there_is_nothing() -> None:
    assert TABLE.parse("books", (ISBN, YEAR), reply("<p id=none>Nothing.</p>")).count == 0
    assert TABLE.parse("books", (ISBN, YEAR), reply("<table id=b><tr><th>ISBN<th>year</table>")).count == 0


@pytest.mark.parametrize(
    ("page", "said"),
    [
        (
            "<p>Welcome to our new site!</p>",
            r"books: expected //table\[@id='b'\] on the page, found nothing there",
        ),
        ("<table id=b><tr><th>ISBN<th>when</table>", r"books\.year: expected .* found only: ISBN, when"),
        ("<table id=b><tr><td>1<td>2</table>", r"books\.isbn: expected .* found only: nothing"),
        ("<table id=b><tr><th>ISBN<th>year<tr><td>1</table>", r"books\.year: expected .* found only: ISBN"),
        (
            "<table id=b><tr><th>ISBN<th>year<tr><td>1<td>old</table>",
            r"books\.year: expected int32, found str 'old'",
        ),
    ],
)
def test_a_page_that_changed_is_not_an_empty_one(page: str, said: str) -> None:
    with pytest.raises(SchemaChanged, match=said):
        TABLE.parse("books", (ISBN, YEAR), reply(page))


@pytest.mark.parametrize("body", ["", b"\xff\xfe\xfa"])
def test_what_is_no_page_is_unreadable(body: str | bytes) -> None:
    with pytest.raises(Unreadable, match="books: not a web page"):
        TABLE.parse("books", (ISBN,), reply(body))


@pytest.mark.parametrize(
    "page",
    [
        "<dl><dt>ISBN:</dt><dd>1</dd><dt>year</dt><dd></dd></dl>",
        "<dl><div><dt>ISBN</dt><dd>1</dd></div><div><dt>year</dt><dd> </dd></div></dl>",
        "<dl><table><tr><th>ISBN</th><td>1</td></tr><tr><th>year</th><td></td></tr></table></dl>",
    ],
)
def test_a_page_about_one_thing_is_read_by_its_labels(page: str) -> None:
    reader = HtmlReader(kind="html", details="//dl", fields={"isbn": "ISBN"})
    assert _rows(reader.parse("books", (ISBN, YEAR), reply(page))) == [["1"], [None]]


def test_whatever_repeats_is_read_by_xpath() -> None:
    reader = HtmlReader(
        kind="html",
        rows="//li",
        fields={"isbn": "@data-isbn", "price": "number(.//b)", "year": "i"},
        optional=("year",),
    )
    page = """<ul><li data-isbn=1><b>5.5</b><i>1999</i><li data-isbn=2><b>6</b></ul>
        <a href='?p=2' rel=next>more</a>"""
    parsed = reader.parse("books", (ISBN, PRICE, YEAR), reply(page))
    assert _rows(parsed) == [["1", "2"], [5.5, 6.0], [1999, None]]
    assert parsed.find("//a[@rel='next']/@href") == "?p=2"
    assert parsed.find("count(//li)") == "2"


def test_another_charset_is_honoured() -> None:
    body = "<table id=b><tr><th>ISBN<tr><td>é</table>".encode("latin-1")
    assert _rows(TABLE.parse("books", (ISBN,), reply(body, "text/html; charset=ISO-8859-1"))) == [["é"]]


@pytest.mark.parametrize(
    "layout",
    [
        {},
        {"table": "//table", "rows": "//tr"},
        {"table": "//table["},
        {"rows": "//tr", "fields": {"isbn": "td[["}},
    ],
)
def test_a_reader_has_one_layout_of_valid_xpaths(layout: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        HtmlReader.model_validate({"kind": "html", **layout})


def test_places_can_be_given_in_css() -> None:
    reader = HtmlReader(
        kind="html",
        rows="css:ul.books > li:not(.sold)",
        fields={"isbn": "css:a::attr(data-isbn)", "price": "css:b.price", "year": ".//i"},
    )
    page = """<ul class="big books"><li><a data-isbn=1></a><b class=price>5</b><i>1999</i>
        <li class=sold><a data-isbn=2></a><li><p><a data-isbn=3></a><b class=price>6</b><i>2000</i></ul>
        <a class=next href='?p=2'>more</a>"""
    parsed = reader.parse("books", (ISBN, PRICE, YEAR), reply(page))
    assert _rows(parsed) == [["1", "3"], [5.0, 6.0], [1999, 2000]]
    assert parsed.find("css:a.next::attr(href)") == "?p=2"


@pytest.mark.parametrize("layout", ["table", "details"])
def test_every_layout_can_be_given_in_css(layout: str) -> None:
    page = "<table id=b><tr><th>ISBN<tr><td>1</table>" if layout == "table" else "<dl id=b><dt>ISBN<dd>1</dl>"
    reader = HtmlReader.model_validate({"kind": "html", layout: "css:#b", "fields": {"isbn": "ISBN"}})
    assert _rows(reader.parse("books", (ISBN,), reply(page))) == [["1"]]


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("css:li..b", "is not a CSS selector"),
        ("css:", "is not a CSS selector"),
        ("css:li::before", "is not a CSS selector|not an XPath"),
        ("#b", "is not an XPath: write css:#b if it is CSS"),
        ("ul > li", "finds no elements: write css:ul > li if it is CSS"),
        ("//b[", "is not an XPath"),
        ("nowhere()", "is not an XPath"),
        ("x:b", "is not an XPath"),
    ],
)
def test_a_place_that_is_none_is_told(place: str, said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        HtmlReader(kind="html", rows=place)
