"""Where further pages are, and when there are too many."""

import pytest

from mediator.catalog.wrapper import Request
from mediator.errors import Endless, SchemaChanged
from wrappers import LinkedPages, NumberedPages, Parsed
from wrappers.columns import ABSENT
from wrappers.paging import Leaf, followed

SIDE_BY_SIDE = NumberedPages(param="page", total="/pages")
LINKED = LinkedPages(next="/next")


def _parsed(found: object, count: int = 1) -> Parsed:
    return Parsed((), count, lambda path: found)


def _leaf(relation: str, request: Request, parsed: Parsed) -> Leaf:
    return Leaf(relation, request, parsed, {}, 10)


def _numbers(requests: tuple[Request, ...]) -> list[str]:
    return [dict(r.query)["page"] for r in requests]


@pytest.mark.parametrize("total", [4, "4"])
def test_the_first_page_names_all_the_others(total: object) -> None:
    first = SIDE_BY_SIDE.begin(Request("/books", (("q", "x"),)))
    assert first.query == (("q", "x"), ("page", "1"))
    others = SIDE_BY_SIDE.after(_leaf("books", first, _parsed(total)))
    assert _numbers(others) == ["2", "3", "4"]
    assert SIDE_BY_SIDE.after(_leaf("books", others[0], _parsed(total))) == ()


def test_pages_may_be_counted_from_zero() -> None:
    pages = NumberedPages(param="page", first=0, total="/pages")
    assert _numbers(pages.after(_leaf("books", pages.begin(Request("/b")), _parsed(3)))) == ["1", "2"]


def test_without_a_total_the_first_page_without_rows_is_the_last() -> None:
    pages = NumberedPages(param="page")
    (second,) = pages.after(_leaf("books", pages.begin(Request("/b")), _parsed(ABSENT)))
    assert _numbers((second,)) == ["2"]
    assert pages.after(_leaf("books", second, _parsed(ABSENT, count=0))) == ()


def test_of_a_billion_pages_only_as_many_are_named_as_show_that_it_is_too_many() -> None:
    more = SIDE_BY_SIDE.after(_leaf("books", SIDE_BY_SIDE.begin(Request("/b")), _parsed(10**9)))
    assert _numbers(more) == [str(n) for n in range(2, 12)]


@pytest.mark.parametrize("found", [ABSENT, None, "many", True, 1.5])
def test_a_total_that_is_none_is_named(found: object) -> None:
    with pytest.raises(SchemaChanged, match="books: expected the number of pages at '/pages', found"):
        SIDE_BY_SIDE.after(_leaf("books", SIDE_BY_SIDE.begin(Request("/b")), _parsed(found)))


@pytest.mark.parametrize("found", [ABSENT, None, ""])
def test_the_last_page_has_no_link(found: object) -> None:
    assert LINKED.after(_leaf("reviews", Request("/r"), _parsed(found))) == ()


def test_a_page_that_leads_to_itself_is_endless() -> None:
    with pytest.raises(Endless, match="names itself"):
        LINKED.after(_leaf("reviews", Request("/r", (("a", "1"),)), _parsed("?a=1")))


@pytest.mark.parametrize("found", [7, "javascript:next()", "x:@else.example/"])
def test_what_is_no_link_is_named(found: object) -> None:
    with pytest.raises(SchemaChanged, match="reviews: expected a link at '/next', found"):
        LINKED.after(_leaf("reviews", Request("/r"), _parsed(found)))


@pytest.mark.parametrize(
    ("link", "request_"),
    [
        ("?a=1&b=%C3%BC", Request("/v1/list", (("a", "1"), ("b", "ü")))),
        ("page2", Request("/v1/page2")),
        ("/other?c=", Request("/other", (("c", ""),), rooted=True)),
        ("//else.example/x", Request("//else.example/x", rooted=True)),
        ("https://else.example/x?d=1#top", Request("https://else.example/x", (("d", "1"),))),
    ],
)
def test_links_mean_what_they_mean_to_a_browser(link: str, request_: Request) -> None:
    assert followed(Request("/v1/list", (("old", "1"),)), link) == request_


def test_following_a_link_from_a_form_is_a_plain_get() -> None:
    form = Request("/f", method="POST", headers=(("Content-Type", "x"), ("Accept", "y")), body=b"a=1")
    assert followed(form, "?p=2") == Request("/f", (("p", "2"),), headers=(("Accept", "y"),))
