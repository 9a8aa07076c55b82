"""Sites that are asked by ranges, over real HTTP: what they are sent, and that the answers are DuckDB's."""

from __future__ import annotations

from pathlib import Path

import pytest

from mediator.answering import explain
from mediator.errors import Unanswerable
from tests.answering.kit import check_same, failures, of, truth
from tests.answering.shop_site import BOOKS, OFFERS, Shop, answers, declared, open_shop

TABLES = {"offers": OFFERS, "books": BOOKS}

CHEAP = "required: [price<=], request: {path: /offers, query: {max_price: '{price<=}'}}"
BELOW = "required: [price<], request: {path: /offers, query: {below_price: '{price<}'}}"
YEARS = (
    "required: [year>=, year<=], "
    "request: {path: /offers, query: {from_year: '{year>=}', to_year: '{year<=}'}}"
)
AFTER = "required: [year>], request: {path: /offers, query: {after_year: '{year>}'}}"
NAMED = "required: [title^=], request: {path: /offers, query: {title: '{title^=}'}}"
FRESH = "required: [since>=], request: {path: /offers, json: {from_day: '{since>=}'}}"
IN_PATH = "required: [year>=], request: {path: '/offers/from_year/{year>=}'}"
OF_BOOK = (
    "required: [isbn], optional: [price<=, year>=, title^=], "
    "request: {path: /offers, query: "
    "{isbn: '{isbn}', max_price: '{price<=}', from_year: '{year>=}', title: '{title^=}'}}"
)
ALL = (
    "optional: [price<=, year, year>=], request: {path: /offers, query: "
    "{max_price: '{price<=}', from_year: '{year>=}', to_year: '{year}'}}"
)

CASES: dict[str, tuple[str, str, list[dict[str, str]]]] = {
    "at most": (CHEAP, "SELECT * FROM offers WHERE price <= 9.5", [{"max_price": "9.5"}]),
    "less, asked for as at most": (CHEAP, "SELECT * FROM offers WHERE price < 10", [{"max_price": "10.0"}]),
    "less": (BELOW, "SELECT * FROM offers WHERE 10 > price", [{"below_price": "10.0"}]),
    "between": (
        YEARS,
        "SELECT * FROM offers WHERE year BETWEEN 1992 AND 1999",
        [{"from_year": "1992", "to_year": "1999"}],
    ),
    "a value is a range": (
        YEARS,
        "SELECT * FROM offers WHERE year = 1995",
        [{"from_year": "1995", "to_year": "1995"}],
    ),
    "several values are in a range": (
        YEARS,
        "SELECT * FROM offers WHERE year IN (1995, 1993, 1999)",
        [{"from_year": "1993", "to_year": "1999"}],
    ),
    "halves": (
        YEARS,
        "SELECT * FROM offers WHERE year > 1991.5 AND year < 1999.5",
        [{"from_year": "1992", "to_year": "1999"}],
    ),
    "the narrowest": (
        AFTER,
        "SELECT * FROM offers WHERE year > 1995 AND year > 2000 AND year >= 1999",
        [{"after_year": "2000"}],
    ),
    "at least, asked for as more": (
        AFTER,
        "SELECT * FROM offers WHERE year >= 2000",
        [{"after_year": "1999"}],
    ),
    "a start": (NAMED, "SELECT * FROM offers WHERE title LIKE 'Du%s'", [{"title": "Du"}]),
    "a start with a letter beyond ASCII": (
        NAMED,
        "SELECT * FROM offers WHERE title ^@ 'É'",
        [{"title": "É"}],
    ),
    "a day, in JSON": (
        FRESH,
        "SELECT * FROM offers WHERE since >= '2024-09-01'",
        [{"from_day": "2024-09-01"}],
    ),
    "a moment as a day": (
        FRESH,
        "SELECT * FROM offers WHERE since >= DATE '2024-10-01' - INTERVAL 1 MONTH",
        [{"from_day": "2024-09-01"}],
    ),
    "in the path": (IN_PATH, "SELECT * FROM offers WHERE year >= 2003", [{"from_year": "2003"}]),
    "beside a column of another table": (
        OF_BOOK,
        "SELECT o.* FROM books b JOIN offers o USING (isbn) WHERE b.printed < 1992 AND o.price <= 12",
        [{"isbn": f"b{n}", "max_price": "12.0"} for n in range(3)],
    ),
    "of a column that it equals": (
        YEARS,
        "SELECT o.title FROM books b JOIN offers o ON o.year = b.printed WHERE b.printed BETWEEN 1990 AND 1993",
        [{"from_year": "1990", "to_year": "1993"}],
    ),
    "of the right side of a LEFT JOIN": (
        CHEAP,
        "SELECT b.isbn, o.shop FROM books b LEFT JOIN offers o ON o.isbn = b.isbn AND o.price <= 3",
        [{"max_price": "3.0"}],
    ),
    "never of what is padded with NULLs": (
        ALL,
        "SELECT b.isbn, o.shop FROM books b LEFT JOIN offers o ON o.isbn = b.isbn WHERE o.price <= 3 OR o.isbn IS NULL",
        [{}],
    ),
    "of a sub-query": (
        CHEAP,
        "SELECT isbn FROM books b WHERE EXISTS (SELECT 1 FROM offers o WHERE o.isbn = b.isbn AND o.price < 4)",
        [{"max_price": "4.0"}],
    ),
    "of what NOT EXISTS looks for": (
        CHEAP,
        "SELECT isbn FROM books b WHERE NOT EXISTS (SELECT 1 FROM offers o WHERE o.isbn = b.isbn AND o.price < 4)",
        [{"max_price": "4.0"}],
    ),
    "of a common table": (
        CHEAP,
        "WITH cheap AS (SELECT * FROM offers WHERE price <= 5) SELECT shop, count(*) FROM cheap GROUP BY shop",
        [{"max_price": "5.0"}],
    ),
    "not where OR leaves a way out": (ALL, "SELECT * FROM offers WHERE price <= 3 OR year = 1995", [{}]),
    "not where NULL may pass": (ALL, "SELECT * FROM offers WHERE price <= 3 OR price IS NULL", [{}]),
    "a value makes its bounds needless": (
        ALL,
        "SELECT * FROM offers WHERE year = 1995",
        [{"to_year": "1995"}],
    ),
    "each alias by its own": (
        CHEAP,
        "SELECT a.shop, b.shop FROM offers a, offers b WHERE a.isbn = b.isbn AND a.price <= 3 AND b.price <= 6",
        [{"max_price": "3.0"}, {"max_price": "6.0"}],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_site_is_asked_for_no_more_than_what_the_query_needs(case: str, tmp_path: Path) -> None:
    method, sql, wanted = CASES[case]
    shop = Shop()
    with open_shop(shop) as address:
        ((found, report),) = answers(declared(tmp_path, address, method), sql)
    check_same(found, truth(TABLES, sql))
    assert report.complete, report.lines()
    assert sorted(map(repr, shop.asked)) == sorted(map(repr, wanted))


def test_bounds_may_be_parameters(tmp_path: Path) -> None:
    shop = Shop()
    with open_shop(shop) as address:
        catalog = declared(tmp_path, address, CHEAP)
        ((found, _),) = answers(catalog, "SELECT isbn FROM offers WHERE price < ?", parameters=[2.5])
    check_same(found, truth(TABLES, "SELECT isbn FROM offers WHERE price < 2.5"))
    assert shop.asked == [{"max_price": "2.5"}]


def test_what_a_query_was_sent_within_bounds_serves_those_with_narrower_ones_and_nobody_else(
    tmp_path: Path,
) -> None:
    statements = (
        "SELECT shop, price FROM offers WHERE price <= 10",
        "SELECT shop, price FROM offers WHERE price <= 10",
        "SELECT shop, price FROM offers WHERE price < 8 AND isbn = 'b1'",
        "SELECT shop, price FROM offers WHERE price = 4",
        "SELECT shop, price FROM offers WHERE price <= 10.5",
        "SELECT shop, price FROM offers WHERE isbn = 'b1'",
    )
    shop = Shop()
    with open_shop(shop) as address:
        found = answers(declared(tmp_path, address, CHEAP, OF_BOOK), *statements)
    for (table, report), sql in zip(found, statements, strict=True):
        check_same(table, truth(TABLES, sql))
        assert report.complete
    assert [of(report, "offers").asked for _, report in found] == [1, 0, 0, 0, 1, 1]
    assert shop.asked == [{"max_price": "10.0"}, {"max_price": "10.5"}, {"isbn": "b1"}]


def test_what_was_kept_within_bounds_serves_the_same_later(tmp_path: Path) -> None:
    """And vouches, in the store as well, for the rows within them alone."""
    shop, store = Shop(deaf=frozenset({"to_year"})), tmp_path / "store"
    with open_shop(shop) as address:
        catalog = declared(tmp_path, address, YEARS, OF_BOOK)
        answers(catalog, "SELECT * FROM offers WHERE year BETWEEN 1992 AND 1995", store=store)
        narrower = "SELECT * FROM offers WHERE year BETWEEN 1993 AND 1994"
        wider = "SELECT * FROM offers WHERE year BETWEEN 1992 AND 1996"
        asked = len(shop.asked)
        ((same, _),) = answers(catalog, narrower, store=store)
        assert len(shop.asked) == asked == 1
        ((more, _),) = answers(catalog, wider, store=store)
    assert len(shop.asked) == 2
    check_same(same, truth(TABLES, narrower))
    check_same(more, truth(TABLES, wider))


def test_a_required_range_that_the_query_does_not_give_is_advised(tmp_path: Path) -> None:
    catalog = declared(tmp_path, "http://shop.test", CHEAP, NAMED)
    with pytest.raises(Unanswerable) as caught:
        explain("SELECT * FROM offers WHERE price > 3", catalog)
    assert caught.value.message == (
        "offers needs price <= ... (access method way0), or title starts with ... (access method way1), "
        "and nothing in the query gives price <= ... or title starts with ..."
    )
    assert caught.value.hint.splitlines() == [
        "To give price <= ...: add WHERE offers.price <= ..., or offers.price = ....",
        "To give title starts with ...: add WHERE offers.title LIKE '...%', or offers.title = ....",
    ]


def test_explain_says_by_what_a_site_is_asked(tmp_path: Path) -> None:
    catalog = declared(tmp_path, "http://shop.test", OF_BOOK)
    sql = "SELECT o.shop FROM books b JOIN offers o USING (isbn) WHERE o.price < 7 AND o.title LIKE 'D%'"
    assert "  offers (o): index way0, isbn from b.isbn, price <= 7.0, title starts with 'D'" in explain(
        sql, catalog
    )


# exact


@pytest.mark.parametrize("exact", ["", ", exact: false"])
def test_rows_that_were_not_asked_for_do_no_harm(exact: str, tmp_path: Path) -> None:
    statements = (
        "SELECT * FROM offers WHERE title LIKE 'Du%'",
        "SELECT * FROM offers WHERE title LIKE 'D%'",
        "SELECT * FROM offers WHERE title LIKE 'Dub%'",
    )
    method = "required: [title^=], request: {path: /offers, query: {title_any_case: '{title^=}'}}" + exact
    shop = Shop()
    with open_shop(shop) as address:
        found = answers(declared(tmp_path, address, method), *statements)
    for (table, report), sql in zip(found, statements, strict=True):
        check_same(table, truth(TABLES, sql))
        assert report.complete
    assert [said["title_any_case"] for said in shop.asked] == ["Du", "D"]


@pytest.mark.parametrize(
    ("deaf", "said"),
    [
        ("max_price", "a row has price = 2.5 where price <= 2.0 was asked for"),
        ("isbn", "a row has isbn = 'b1' where isbn = 'b0' was asked for"),
    ],
)
def test_an_exact_site_that_takes_no_notice_of_a_parameter_has_failed(
    deaf: str, said: str, tmp_path: Path
) -> None:
    shop = Shop(deaf=frozenset({deaf}), rows=[{**row, "price": n / 2} for n, row in enumerate(Shop().rows)])
    shop.rows = [row for row in shop.rows if deaf == "isbn" or row["isbn"] == "b0" or row["price"] == 2.5]
    if deaf == "max_price":
        shop.rows = [{**row, "isbn": "b0"} for row in shop.rows]
    with open_shop(shop) as address:
        sql = "SELECT shop FROM offers WHERE isbn = 'b0' AND price <= 2"
        ((_, report),) = answers(declared(tmp_path, address, f"{OF_BOOK}, exact: true"), sql)
    ((relation, failure),) = failures(report)
    assert (relation, failure.cause.kind) == ("offers", "not as declared")
    assert said in failure.cause.message
    assert not report.complete


def test_an_exact_site_that_is_one_is_believed(tmp_path: Path) -> None:
    sql = "SELECT * FROM books JOIN offers USING (isbn) WHERE price <= 8 AND title LIKE 'D%'"
    shop = Shop()
    with open_shop(shop) as address:
        ((found, report),) = answers(declared(tmp_path, address, f"{OF_BOOK}, exact: true"), sql)
    check_same(found, truth(TABLES, sql))
    assert report.complete


# What the EOT proves


def test_a_site_that_never_promises_all_is_used_and_the_answer_is_partial(tmp_path: Path) -> None:
    shop = Shop(most=3)
    best = NAMED + ", proves: some"
    sql = "SELECT * FROM offers WHERE title LIKE 'D%'"
    with open_shop(shop) as address:
        catalog = declared(tmp_path, address, best)
        found = answers(catalog, sql, sql)
    true = truth(TABLES, sql).to_pylist()
    for table, report in found:
        assert len(table) == 3
        assert all(row in true for row in table.to_pylist())
        ((relation, failure),) = failures(report)
        assert not report.complete
        assert (of(report, relation).failed, of(report, relation).answered) == (0, 1)
        assert failure.line() == ("way0(title^=) for 'D': not all: offers.way0 does not promise all rows")
    assert len(shop.asked) == 2, "what is not known to be all is asked for again"


def test_a_site_that_promises_all_comes_before_one_that_does_not(tmp_path: Path) -> None:
    """Even where it costs more, and waits for others."""
    shop = Shop()
    sql = "SELECT o.* FROM books b JOIN offers o USING (isbn) WHERE o.title LIKE 'D%'"
    with open_shop(shop) as address:
        catalog = declared(tmp_path, address, NAMED + ", proves: some", OF_BOOK)
        ((found, report),) = answers(catalog, sql)
    check_same(found, truth(TABLES, sql))
    assert report.complete
    assert all("isbn" in said for said in shop.asked)


def test_a_lookup_that_brings_as_much_as_ever_comes_is_cut_short(tmp_path: Path) -> None:
    shop = Shop(most=5)
    capped = OF_BOOK + ", at_most: 5"
    sql = "SELECT * FROM offers WHERE isbn = 'b1'"
    with open_shop(shop) as address:
        ((found, report),) = answers(declared(tmp_path, address, capped), sql)
    assert len(found) == 5, "what came is used"
    ((_, failure),) = failures(report)
    assert failure.cause.kind == "cut short"
    assert failure.cause.message == (
        "offers.way0 at shop: 5 rows came, and at_most says that no more than 5 do: "
        "price <= ... or year >= ... or title starts with ... in the query would ask for fewer"
    )


def test_a_lookup_below_the_most_is_whole_and_one_at_it_turns_to_another_way(tmp_path: Path) -> None:
    capped = OF_BOOK + ", at_most: 5"
    narrow = "SELECT * FROM offers WHERE isbn = 'b1' AND price <= 8"
    shop = Shop(most=5)
    with open_shop(shop) as address:
        ((found, report),) = answers(declared(tmp_path, address, capped), narrow)
    check_same(found, truth(TABLES, narrow))
    assert report.complete
    wide = "SELECT * FROM offers WHERE isbn = 'b1' AND price >= 0"
    other = "required: [price>=], request: {path: /offers/all, query: {min_price: '{price>=}'}}"
    shop = Shop()
    with open_shop(shop) as address:
        ((found, report),) = answers(declared(tmp_path, address, OF_BOOK + ", at_most: 2", other), wide)
    check_same(found, truth(TABLES, wide))
    assert report.complete, report.lines()
    assert shop.asked == [{"isbn": "b1"}, {"min_price": "0.0"}]
