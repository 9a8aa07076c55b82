"""Where further pages are, and when there are too many."""

import pytest

from mediator.access.web.transport import address
from mediator.catalog.model import Mirror
from mediator.catalog.wrapper import Request
from mediator.errors import Endless, SchemaChanged
from wrappers import HeaderPages, LinkedPages, NumberedPages, Parsed
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
        ("?a=1&b=x-y", Request("/v1/list", (("a", "1"), ("b", "x-y")))),
        (" \n?a=1 ", Request("/v1/list", (("a", "1"),))),
        ("page2", Request("/v1/page2")),
        ("/other?c=", Request("/other", (("c", ""),), rooted=True)),
        ("//else.example/x", Request("//else.example/x", rooted=True)),
        ("https://else.example/x?d=1#top", Request("https://else.example/x", (("d", "1"),))),
    ],
)
def test_links_mean_what_they_mean_to_a_browser(link: str, request_: Request) -> None:
    assert followed(Request("/v1/list", (("old", "1"),)), link) == request_


@pytest.mark.parametrize(
    ("query", "sent"),
    [
        ("q=M%FCller&page=2", "q=M%FCller&page=2"),
        ("abc", "abc"),
        ("a=1&", "a=1&"),
        ("&&a=1", "&&a=1"),
        ("a=1;b=2", "a=1;b=2"),
        ("q=a+b%20c", "q=a+b%20c"),
        ("sig=a%2fb/c=", "sig=a%2fb/c="),
        ("a[b]=100%", "a[b]=100%"),
        ("q=ü x", "q=%C3%BC%20x"),
        ('q="<', "q=%22%3C"),
        ("u=http://x?y", "u=http://x?y"),
    ],
)
def test_the_query_of_a_link_is_sent_as_it_is_written(query: str, sent: str) -> None:
    mirror = Mirror("site", "http://site.test/base")
    request = followed(Request("/list", (("old", "1"),)), f"?{query}")
    assert str(address(mirror, request)) == f"http://site.test/base/list?{sent}"
    assert str(address(mirror, followed(request, "?b=1&c"))) == "http://site.test/base/list?b=1&c"


@pytest.mark.parametrize(
    ("led_to", "base", "link", "path", "rooted"),
    [
        ("/v2/list/", "", "page2", "/v2/list/page2", True),
        ("/v2/list?n=1", "", "?n=2", "/v2/list", True),
        ("", "/x/", "page2", "/x/page2", True),
        ("", "sub/", "page2", "/v1/sub/page2", False),
        ("/v2/list/", "sub/", "page2", "/v2/list/sub/page2", True),
        ("", "https://else.example/y/", "page2", "https://else.example/y/page2", False),
        ("", "https://else.example/y/", "/page2", "https://else.example/page2", False),
    ],
)
def test_links_begin_where_the_page_is_and_says(
    led_to: str, base: str, link: str, path: str, rooted: bool
) -> None:
    to = followed(Request("/v1/list"), link, led_to, base)
    assert (to.path, to.rooted) == (path, rooted)


@pytest.mark.parametrize("link", ["#", "#top", " #"])
def test_a_link_to_a_place_on_the_page_itself_is_no_next_page(link: str) -> None:
    assert LINKED.after(_leaf("reviews", Request("/r", (("n", "3"),)), _parsed(link))) == ()
    leaf = Leaf("reviews", Request("/r"), _parsed(ABSENT), {"link": f"<{link}>; rel=next"}, 10)
    assert HeaderPages(rel="next").after(leaf) == ()


def test_a_page_that_was_led_to_and_leads_to_itself_is_endless() -> None:
    leaf = Leaf("reviews", Request("/r"), _parsed("?n=1&x"), {}, 10, "/v2/r?n=1&x")
    with pytest.raises(Endless, match="names itself"):
        LINKED.after(leaf)


def test_a_parameter_is_set_once_also_in_a_query_that_the_site_wrote() -> None:
    first = NumberedPages(param="page").begin(Request("/r?q=M%FCller&page=7&p%61ge=8&x"))
    assert str(address(Mirror("site", "http://site.test"), first)) == "http://site.test/r?q=M%FCller&x&page=1"


def test_following_a_link_from_a_form_is_a_plain_get() -> None:
    form = Request("/f", method="POST", headers=(("Content-Type", "x"), ("Accept", "y")), body=b"a=1")
    assert followed(form, "?p=2") == Request("/f", (("p", "2"),), headers=(("Accept", "y"),))
