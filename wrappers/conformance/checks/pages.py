"""Further pages: they end, do not overlap, leave nothing out, and are as many as the site says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import orjson

from mediator.catalog.statement import Result
from mediator.catalog.wrapper import Reply
from mediator.errors import Endless, Miscounted
from wrappers.conformance.asking import Exchange, Lookup
from wrappers.conformance.checks.rows import key_of
from wrappers.conformance.evidence import Evidence, cut_of, request_of, said
from wrappers.conformance.finding import PASSED, Check, Look, failed, not_for, skipped
from wrappers.paging import NumberedPages, OffsetPages
from wrappers.paging.turning import Paged, start_of

_MORE = frozenset(
    {
        "next",
        "nextpage",
        "nextpagetoken",
        "nexttoken",
        "nextcursor",
        "nexturl",
        "nextlink",
        "hasmore",
        "hasnext",
        "hasnextpage",
        "more",
        "truncated",
        "istruncated",
    }
)
_TOTALS = frozenset(
    {
        "total",
        "totalcount",
        "totalresults",
        "totalhits",
        "totalitems",
        "totalrows",
        "numfound",
        "count",
        "matches",
        "found",
        "hits",
        "resultcount",
    }
)
_ROUND = frozenset(
    {
        10,
        20,
        25,
        30,
        40,
        50,
        60,
        75,
        100,
        120,
        150,
        200,
        250,
        300,
        400,
        500,
        1_000,
        2_000,
        2_500,
        5_000,
        10_000,
        50_000,
        100_000,
    }
)


def _paging_ends(e: Evidence) -> Look:
    if not _turns(e):
        return not_for("there are no further pages")
    for lookup, error in e.failures():
        if isinstance(error, Endless):
            return failed(error.message, request_of(lookup))
    for lookup in e.turned:
        pages = [page.rows for page in lookup.pages if page.rows]
        for one, two, three in zip(pages, pages[1:], pages[2:], strict=False):
            if one == two == three:
                return failed("page after page holds the same rows", request_of(lookup))
    if any(lookup.whole and len(lookup.pages) > 1 for lookup in e.turned):
        return PASSED
    if any(lookup.whole for lookup in e.turned):
        return skipped("no lookup had a second page", "add an example that has one")
    cut = cut_of(e.good)
    return skipped(cut, "add an example with fewer pages") if cut else e.nothing_read()


def _pages_disjoint(e: Evidence) -> Look:
    if not _turns(e):
        return not_for("there are no further pages")
    several = [lookup for lookup in e.turned if sum(bool(p.rows) for p in lookup.pages) > 1]
    if not several:
        return e.nothing_read() if not e.good else skipped("no lookup had a second page with rows")
    doubtful = ""
    for lookup in several:
        seen: dict[object, int] = {}
        for number, page in enumerate(lookup.pages, 1):
            again = [row for row in page.rows if key_of(e, row) in seen]
            if again:
                what = f"{said(again[0])} is on pages {seen[key_of(e, again[0])]} and {number}"
                if e.relation.key or len(again) == len(page.rows):
                    return failed(what, page.request)
                doubtful = what
            seen |= {key_of(e, row): number for row in page.rows}
    return skipped(f"{doubtful}: without a key that may be right", "declare a key") if doubtful else PASSED


def _page_size(e: Evidence) -> Look:
    paging = _paging(e)
    if not isinstance(paging, OffsetPages) or not paging.limit:
        return not_for("no number of rows is asked for")
    for lookup in e.good:
        pages = sorted(
            (p for p in lookup.pages if isinstance(p.request, Paged)), key=lambda p: start_of(p.request)
        )
        if not pages:
            continue
        first, came = pages[0], len(pages[0].rows)
        if came > paging.size:
            return failed(f"{paging.size} rows were asked for, {came} came", first.request)
        if came < paging.size and any(p.rows for p in pages[1:]):
            return failed(
                f"{paging.size} rows were asked for, {came} came, and there were more",
                first.request,
                f"declare size: {came}, which is what the site sends",
            )
    return PASSED if e.good else e.nothing_read()


def _total_agrees(e: Evidence) -> Look:
    paging = _paging(e)
    for lookup, error in e.failures():
        if isinstance(error, Miscounted):
            return failed(error.message, request_of(lookup))
    if not isinstance(paging, NumberedPages | OffsetPages) or not paging.total:
        return not_for("no total is declared")
    for lookup in e.good:
        empty = [p for p in lookup.pages[1:] if not p.rows]
        if isinstance(paging, NumberedPages) and empty:
            return failed(
                f"the site says that there are {len(lookup.pages)} pages, but this one has no rows",
                empty[0].request,
            )
    if not any(lookup.whole for lookup in e.good):
        return e.nothing_read()
    return PASSED


def _nothing_left_out(e: Evidence) -> Look:
    if not isinstance(_paging(e), NumberedPages | OffsetPages):
        return not_for("pages have no numbers")
    for outside in e.outside:
        here = {key_of(e, row) for row in outside.inside.rows}
        new = [row for row in outside.lookup.rows if key_of(e, row) not in here]
        if outside.lookup.good and new:
            remedy = (
                "declare the first page that the site counts from in pages.first"
                if outside.where == "before the first"
                else "the total is not what pages.total takes it for: name another place, or leave it out"
            )
            return failed(f"{said(new[0])} is on a page {outside.where}", request_of(outside.lookup), remedy)
    if any(o.lookup.exchanges for o in e.outside):
        return PASSED
    return e.nothing_read() if not e.good else skipped(cut_of(e.good) or "no lookup was read to its end")


def _listing_whole(e: Evidence) -> Look:
    """Signs that a site has more rows than it sent, and does not say so where it was looked for."""
    if not e.good:
        return e.nothing_read()
    if any(isinstance(page.reply, Result) for lookup in e.good for page in lookup.pages):
        return not_for("a database sends all that it is asked for")
    if e.method.proves == "some" or e.method.at_most is not None:
        return not_for("it is declared that there may be more")
    for lookup in e.good:
        if lookup.whole and (look := _more_promised(e, lookup)) is not None:
            return look
    if _turns(e):
        return PASSED
    counts = Counter(len(lookup.rows) for lookup in e.good if lookup.mirror == e.method.mirrors[0])
    most = max(counts)
    if most in _ROUND and e.method.kind == "index" and counts[most] > 1:
        lookup = next(x for x in e.good if len(x.rows) == most)
        return failed(
            f"{counts[most]} lookups bring exactly {most} rows each, as if they were cut off",
            request_of(lookup),
        )
    if most in _ROUND:
        return skipped(
            f"exactly {most} rows came: if that is as many as the site sends at once, there are more",
            "find out whether there are further pages, and declare them",
        )
    return PASSED


def _more_promised(e: Evidence, lookup: Lookup) -> Look | None:
    last = lookup.pages[-1]
    assert last.reply is not None, "a page was read from a reply"
    if not _turns(e) and (what := _next_named(last.reply)):
        return failed(f"the reply names a further page ({what}), but no pages are declared", last.request)
    rows = len(lookup.rows)
    for page in lookup.pages[:1]:
        for name, total in _totals(page):
            if total > rows:
                return failed(f"the site says {name}: {total:,}, but {rows:,} rows came", page.request)
    return None


def _next_named(reply: Reply) -> str:
    link = next((v for k, v in reply.headers.items() if k.lower() == "link"), "")
    if 'rel="next"' in link.lower() or "rel=next" in link.lower():
        return "Link: rel=next"
    for name, value in _beside(reply):
        if _plain(name) in _MORE and value not in (None, False, "", 0, [], {}):
            return str(name)
    return ""


def _totals(page: Exchange) -> Iterator[tuple[str, int]]:
    assert page.reply is not None
    for name, value in _beside(page.reply):
        if _plain(name) in _TOTALS and isinstance(value, int) and not isinstance(value, bool):
            yield name, value


def _beside(reply: Reply) -> Iterator[tuple[str, Any]]:
    """What a JSON document says beside its rows: at the top, and one step further down."""
    try:
        document = orjson.loads(reply.body)
    except orjson.JSONDecodeError:
        return
    if not isinstance(document, dict):
        return
    yield from document.items()
    for value in document.values():
        if isinstance(value, dict):
            yield from value.items()


def _plain(name: str) -> str:
    return "".join(c for c in name.lower() if c.isalnum())


def _paging(e: Evidence) -> object:
    return getattr(e.wrapper, "paging", None)


def _turns(e: Evidence) -> bool:
    """Whether there may be further pages: declared, or asked for by code."""
    return _paging(e) is not None or any(p.page is not None and p.page.then for x in e.known for p in x.pages)


def checks() -> Iterator[Check]:
    yield Check(
        "paging-ends",
        "the pages of a lookup come to an end",
        "look at what the site says on its last page, and at the name of the parameter that turns pages",
        _paging_ends,
        after=("throttling-declared", "pace-borne"),
    )
    yield Check(
        "pages-disjoint",
        "no row is on two pages",
        "ask for a stable order; with offsets, look at what first and size declare",
        _pages_disjoint,
        after=("paging-ends",),
    )
    yield Check(
        "page-size",
        "a page has as many rows as were asked for",
        "look at the name of the parameter in limit",
        _page_size,
    )
    yield Check(
        "total-agrees",
        "there are as many pages or rows as the site says",
        "name the place of the right number in pages.total, or leave it out",
        _total_agrees,
    )
    yield Check(
        "nothing-left-out",
        "no rows lie before the first page or after the last",
        "look at pages.first and pages.total",
        _nothing_left_out,
        after=("paging-ends", "pages-disjoint"),
    )
    yield Check(
        "listing-whole",
        "where no more rows come, the site has no more",
        "declare pages; if the site never sends more than so many, say so in what the method proves",
        _listing_whole,
        after=("bindings-echo", "error-in-disguise", "nothing-left-out", "total-agrees"),
    )
