"""Whatever way a site turns its pages, each row is read once, and a site that never ends is left."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mediator.catalog.wrapper import Reply, Request
from mediator.errors import Endless, SchemaChanged
from tests.wrappers.paged_site import Answer, PagedSite, answer, read_all, wrapper
from wrappers import CursorPages, HeaderPages, LinkedPages, NumberedPages, OffsetPages, Paging

KINDS: dict[str, tuple[Paging, Callable[[PagedSite], Answer], dict[str, object]]] = {
    "page number": (NumberedPages(param="page"), lambda s: s.by_number, {}),
    "page number, total": (NumberedPages(param="page", total="/pages"), lambda s: s.by_number, {}),
    "page number in a form": (
        NumberedPages(param="page", place="form"),
        lambda s: s.by_number,
        {"form": {"q": "x"}},
    ),
    "offset": (OffsetPages(offset="offset"), lambda s: s.by_offset, {}),
    "offset, limit": (OffsetPages(offset="offset", limit="limit", size=7), lambda s: s.by_offset, {}),
    "offset, limit, total": (
        OffsetPages(offset="offset", limit="limit", size=7, total="/total"),
        lambda s: s.by_offset,
        {},
    ),
    "offset in JSON": (
        OffsetPages(offset="/page/offset", limit="/page/limit", size=9, place="json"),
        lambda s: s.by_offset,
        {"json": {"page": {}}},
    ),
    "cursor": (CursorPages(cursor="/cursor", param="after"), lambda s: s.by_cursor, {}),
    "cursor, more": (
        CursorPages(cursor="/cursor", param="after", more="/more"),
        lambda s: s.by_cursor,
        {},
    ),
    "cursor in JSON": (
        CursorPages(cursor="/cursor", param="page.after", place="json"),
        lambda s: s.by_cursor,
        {"json": {"page": {}}},
    ),
    "link": (LinkedPages(next="/next"), lambda s: s.by_link, {}),
    "Link header": (HeaderPages(rel="next"), lambda s: s.by_header, {}),
}


@pytest.mark.parametrize("kind", KINDS)
@given(count=st.integers(0, 60), size=st.integers(1, 25))
def test_each_row_is_read_once_whatever_the_size_of_the_pages(kind: str, count: int, size: int) -> None:
    paging, way, template = KINDS[kind]
    site = PagedSite(count, size)
    assert sorted(read_all(wrapper(paging, template), way(site))) == list(range(count))
    assert site.requests <= count // min(size, 7) + 2


def test_a_site_that_sends_fewer_rows_than_asked_for_is_asked_for_the_others() -> None:
    """And one that does so on some of the pages only."""

    def moody(request: Request) -> Reply:
        start, limit = (int(dict(request.query)[name]) for name in ("offset", "limit"))
        fewer = limit if start in (0, 20) else max(1, limit // 3)
        return answer([{"n": n} for n in range(start, min(start + fewer, 95))], total=95)

    paging = OffsetPages(offset="offset", limit="limit", size=10, total="/total")
    assert sorted(read_all(wrapper(paging), moody)) == list(range(95))


@pytest.mark.parametrize("start", [0, 30])
def test_a_total_that_promises_too_much_is_told(start: int) -> None:
    def liar(request: Request) -> Reply:
        here = int(dict(request.query)["offset"])
        return answer([{"n": n} for n in range(here, min(here + 10, start))], total=95)

    with pytest.raises(
        SchemaChanged, match=f"numbers: '/total' promises rows from {start} on, but none came"
    ):
        read_all(wrapper(OffsetPages(offset="offset", total="/total")), liar)


@pytest.mark.parametrize(
    "paging",
    [
        NumberedPages(param="page"),
        NumberedPages(param="page", total="/total"),
        OffsetPages(offset="offset"),
        OffsetPages(offset="offset", total="/total"),
    ],
)
def test_a_site_that_takes_no_notice_of_the_parameter_is_noticed(paging: Paging) -> None:
    with pytest.raises(Endless, match=r"the site takes no notice of '(page|offset)'"):
        read_all(wrapper(paging), lambda request: answer([{"n": 1}, {"n": 2}], total=50))


def test_two_pages_may_hold_the_same_rows() -> None:
    held = {1: 5, 2: 5, 3: 6, 4: 6}

    def repeating(request: Request) -> Reply:
        number = int(dict(request.query)["page"])
        return answer([{"n": held[number]}] if number in held else [])

    assert read_all(wrapper(NumberedPages(param="page")), repeating) == [5, 5, 6, 6]


def test_cursors_that_go_round_are_noticed() -> None:
    def round_and_round(request: Request) -> Reply:
        mark = int(dict(request.query).get("after", "0"))
        return answer([{"n": mark}], cursor=(mark + 1) % 3 or 3)

    with pytest.raises(Endless):
        read_all(wrapper(CursorPages(cursor="/cursor", param="after")), round_and_round)


def test_a_cursor_that_names_itself_is_endless() -> None:
    with pytest.raises(Endless, match="the page at after = 'c' names itself as the next one"):
        read_all(
            wrapper(CursorPages(cursor="/cursor", param="after")),
            lambda request: answer([{"n": 1}], cursor="c"),
        )


def test_new_cursors_without_new_rows_are_endless() -> None:
    def busy(request: Request) -> Reply:
        return answer([{"n": 1}], cursor=int(dict(request.query).get("after", "0")) + 1)

    with pytest.raises(Endless, match="3 pages in a row hold the same rows"):
        read_all(wrapper(CursorPages(cursor="/cursor", param="after")), busy)


@pytest.mark.parametrize("mark", [True, 1.5, {}, [], "x" * 10_000])
def test_what_is_no_cursor_is_named(mark: object) -> None:
    with pytest.raises(SchemaChanged, match="expected the cursor of the next page at '/cursor', found"):
        read_all(
            wrapper(CursorPages(cursor="/cursor", param="after")),
            lambda request: answer([{"n": 1}], cursor=mark),
        )


def test_more_without_a_cursor_is_told() -> None:
    with pytest.raises(SchemaChanged, match=r"expected the cursor .* found nothing"):
        read_all(
            wrapper(CursorPages(cursor="/cursor", param="after", more="/more")),
            lambda request: answer([{"n": 1}], more=True),
        )


@pytest.mark.parametrize(
    "paging", [NumberedPages(param="p"), OffsetPages(offset="p"), LinkedPages(next="/next")]
)
def test_pages_without_end_are_left(paging: Paging) -> None:
    turned = iter(range(10_000))
    asked = 0

    def endless(request: Request) -> Reply:
        nonlocal asked
        asked += 1
        n = next(turned)
        return answer([{"n": n}], next=f"?p={n}")

    with pytest.raises(Endless):
        read_all(wrapper(paging, most=50), endless)
    assert asked == 50


def test_links_that_lead_to_the_same_rows_under_ever_new_names_are_noticed() -> None:
    turned = iter(range(10_000))
    with pytest.raises(Endless, match="hold the same rows: the site takes no notice of its own links"):
        read_all(
            wrapper(LinkedPages(next="/next"), most=50),
            lambda request: answer([{"n": 1}, {"n": 2}], next=f"?p={next(turned)}"),
        )
    assert next(turned) == 3


def _headed(link: str) -> Answer:
    """A site whose first page has this header."""
    return lambda request: Reply(
        200, {} if request.query or "2" in request.path else {"Link": link}, b'{"rows": []}'
    )


@pytest.mark.parametrize(
    "link",
    [
        "<?p=2>; rel=next",
        '<?p=2>; rel="next"',
        '<?p=2>;rel="NEXT"',
        '<?p=2> ; rel = "prev next"',
        "<a>; rel=prev, <?p=2>; rel=next",
        '<a>; title="<b>; rel=\\"next\\", "; rel=prev,<?p=2>; rel=next',
        "<?p=2>; rel=next; rel=prev",
        "<?p=2>; rel=next; title*=UTF-8''x%2C",
        ', <?p=2>; rel="next",',
        "<?p=2>; crossorigin; rel=next",
        "</n2>; rel=next",
        "<https://numbers.example/n2>; rel=next",
    ],
)
def test_link_headers_are_read_as_they_are_written(link: str) -> None:
    asked = 0

    def counted(request: Request) -> Reply:
        nonlocal asked
        asked += 1
        return _headed(link)(request)

    read_all(wrapper(HeaderPages(rel="next")), counted)
    assert asked == 2


@pytest.mark.parametrize(
    "link", ["", "<?p=2>", "<?p=2>; rel=prev", "<?p=2>; rel=prev; rel=next", '<?p=2>; title="rel=next"']
)
def test_without_a_next_link_a_page_is_the_last(link: str) -> None:
    assert read_all(wrapper(HeaderPages(rel="next")), _headed(link)) == []


@pytest.mark.parametrize(
    "link",
    [
        "next",
        "<?p=2; rel=next",
        '<?p=2>; rel="next',
        "<?p=2>; rel=next <?p=3>; rel=next",
        "<?p=2>; rel=next, <?p=3>; rel=next",
        "<javascript:next()>; rel=next",
        "<http://[>; rel=next",
        "<" * 30_000,
        "<a>; x, " * 20_000,
        "<a>" + '; a="' * 10_001,
    ],
)
@pytest.mark.timeout(20)
def test_link_headers_that_are_none_are_told(link: str) -> None:
    with pytest.raises(SchemaChanged, match=r"numbers: .*[Ll]ink"):
        read_all(wrapper(HeaderPages(rel="next")), _headed(link))
