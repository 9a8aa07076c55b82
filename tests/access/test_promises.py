"""Promises about the rows of a lookup, held against what comes."""

from __future__ import annotations

import pytest

from fixtures.virtual import run
from mediator.access import Access
from mediator.catalog.model import Catalog, Source
from mediator.catalog.wrapper import Reply, Request
from tests.access.access_kit import (
    Listener,
    Scripted,
    answered,
    asked_for,
    catalog,
    lookups,
    page,
    rows_for,
    steady,
)
from tests.access.access_kit import scan as whole


def heard(network: Scripted, declared: Catalog, *keys: int) -> Listener:
    """What a visit hears that asks for these keys, or for all."""

    async def main() -> Listener:
        async with Access(declared, transport=network) as access:
            return await answered(access, lookups(*keys) if keys else whole())

    return run(main())


def stray(request: Request) -> Reply:
    """What was asked for, and a row more."""
    return page([*([k, f"v{k}"] for k in asked_for(request)), [9, "v9"]])


def test_a_row_that_was_not_asked_for_breaks_the_promise_of_an_exact_site() -> None:
    found = heard(steady(answer=stray), catalog(exact=True), 1)
    assert found.cause == (
        "not as declared: r.by_k at site: a row has k = 9 where k = 1 was asked for, "
        "and none but those may come (exact)"
    )
    assert not found.rows, "what such a site says of its rows is not believed"


def test_each_row_of_a_batch_is_one_that_some_binding_asked_for() -> None:
    found = heard(steady(answer=rows_for), catalog(exact=True, batch_size=3), 1, 2, 3)
    assert found.exhausted == [(1,), (2,), (3,)]
    assert found.keys == [1, 2, 3]
    found = heard(steady(answer=stray), catalog(exact=True, batch_size=3), 1, 2, 3)
    assert "a row has k = 9 where one of 3 others was asked for" in found.cause
    assert len(found.failed) == 3


def test_a_row_without_a_value_was_not_asked_for() -> None:
    found = heard(steady(answer=lambda _: page([[1, "v1"], [None, "v"]])), catalog(exact=True), 1)
    assert "a row has k = None where k = 1 was asked for" in found.cause


@pytest.mark.parametrize("exact", [None, False])
def test_where_nothing_is_promised_more_rows_are_rows_like_any_others(exact: bool | None) -> None:
    found = heard(steady(answer=stray), catalog(exact=exact), 1)
    assert found.keys == [1, 9]
    assert found.exhausted == [(1,)]


def test_a_scan_asks_for_everything() -> None:
    found = heard(steady(answer=lambda _: page([[1, "v1"], [2, "v2"]])), catalog(exact=True))
    assert found.exhausted == [()]
    assert found.keys == [1, 2]


def chained(request: Request) -> Reply:
    """Pages of two rows without end."""
    number = int(request.path.removeprefix("/p") or 0) if request.path.startswith("/p") else 0
    return page([[number, "a"], [number, "b"]], [f"/p{number + 1}"])


@pytest.mark.parametrize(("most", "pages"), [(1, 1), (2, 1), (3, 2), (4, 2), (9, 5)])
def test_as_soon_as_so_many_rows_came_no_further_page_is_asked_for(most: int, pages: int) -> None:
    network = steady(answer=chained)
    found = heard(network, catalog(at_most=most), 1)
    assert len(network.sent) == pages
    assert len(found.rows) == 2 * pages, "what came is kept"
    assert found.cause == (
        f"cut short: r.by_k at site: {2 * pages} rows came, and at_most says that no more than {most} do"
    )


def test_a_lookup_with_fewer_rows_is_whole() -> None:
    found = heard(steady(answer=lambda _: page([[1, "a"], [1, "b"]])), catalog(at_most=3), 1)
    assert found.exhausted == [(1,)]
    assert len(found.rows) == 2


def test_no_mirror_is_asked_for_what_another_has_cut_short() -> None:
    """They are alike."""
    network = steady(answer=chained)
    found = heard(network, catalog(Source("a"), Source("b"), at_most=4), 1)
    assert found.cause.startswith("cut short: r.by_k at ")
    assert len(set(network.sources)) == 1


def test_pages_keep_their_places_however_they_come() -> None:
    def pages(request: Request) -> Reply:
        number = int(request.path[2:]) if request.path.startswith("/p") else 0
        return page(
            [[number, "a"]] if number != 2 else [], [f"/p{n}" for n in range(1, 5)] if not number else []
        )

    found = heard(steady(answer=pages), catalog(order=("k",)))
    assert sorted((landing.place, landing.rows.num_rows) for landing in found.landings) == [
        (0, 1), (1, 1), (2, 0), (3, 1), (4, 1),
    ]  # fmt: skip
