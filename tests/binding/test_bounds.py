"""Providers with bounds: which are there, which comes first, what is pushed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mediator.binding import explain
from mediator.binding.model import Provider
from mediator.catalog.bindfields import follows
from mediator.catalog.model import Catalog
from mediator.errors import Unanswerable
from tests.binding.trade import SCAN, block_of, catalog, method, relation, verdict_of

FIELDS = "isbn:s title:s price:f year:n"
BOOKS = relation("books", "isbn:s printed:n", SCAN)


def shop(*methods: object) -> Catalog:
    return catalog(BOOKS, relation("offers", FIELDS, *methods))  # type: ignore[arg-type]


def chosen(sql: str, trade: Catalog) -> Provider:
    """Of the last alias."""
    return verdict_of(sql, trade).chosen[-1]


def inputs(provider: Provider) -> dict[str, object]:
    return {i.field: i.constant if i.column is None else i.column for i in provider.inputs}


def test_a_required_bound_is_an_input_like_any_other() -> None:
    trade = shop(method("cheap", required="price<="))
    assert inputs(chosen("SELECT * FROM offers WHERE price < 10", trade)) == {"price<=": 10.0}
    with pytest.raises(Unanswerable, match=r"offers needs price <= \.\.\. \(access method cheap\)"):
        chosen("SELECT * FROM offers WHERE price > 10", trade)


def test_a_bound_that_a_row_would_give_is_none() -> None:
    trade = shop(method("since", required="year>="))
    with pytest.raises(Unanswerable):
        chosen("SELECT * FROM books b, offers o WHERE o.year >= b.printed", trade)


def test_all_optional_bounds_that_are_known_are_pushed_but_those_that_follow_from_others() -> None:
    trade = shop(method("by_isbn", required="isbn", optional="price< price<= year> title^="))
    found = chosen("SELECT * FROM offers WHERE isbn = 'x' AND price < 10 AND title LIKE 'D%'", trade)
    assert found.bind_set == ("isbn", "price<", "title^=")
    assert inputs(found) == {"isbn": "x", "price<": 10.0, "title^=": "D"}


@pytest.mark.parametrize(
    ("condition", "bound"),
    [
        ("year < 10", {"year<": 10}),
        ("year <= 10", {"year<=": 10}),
        ("year = 10", {"year<=": 10, "year>=": 10}),
        ("year > 3 AND year <= 10 AND year < 20", {"year>": 3, "year<=": 10}),
        ("title = 'D'", {"title<=": "D", "title>=": "D"}),
        ("title LIKE 'D%'", {"title^=": "D"}),
        ("title LIKE 'D%' AND title < 'E'", {"title^=": "D", "title<": "E"}),
    ],
)
def test_of_all_operators_those_that_say_most_are_pushed(condition: str, bound: dict[str, object]) -> None:
    operators = ("<", "<=", ">", ">=")
    optional = " ".join((*(f + o for f in ("year", "title") for o in operators), "title^="))
    trade = shop(method("scan", "scan", optional=optional))
    assert inputs(chosen(f"SELECT * FROM offers WHERE {condition}", trade)) == bound


WORDS = st.text("ab\x00\uffff\U0001f4d6", max_size=4)


@given(value=WORDS, start=WORDS.filter(bool), least=WORDS, most=WORDS)
def test_what_is_between_two_that_start_so_starts_so(value: str, start: str, least: str, most: str) -> None:
    """And nothing is said of what is not between such."""
    least, most = sorted((start + least, start + most))
    ends = {("title", ">="): least, ("title", "<"): most}
    assert follows("title^=", start, ends)
    assert value.startswith(start) or not least <= value < most
    assert not follows("title^=", start, {("title", ">="): least, ("title", ">"): least})
    assert not follows("title^=", start + "c", ends)


def test_a_value_makes_its_bounds_needless() -> None:
    trade = shop(method("by_isbn", required="isbn", optional="year year>= year<="))
    assert chosen("SELECT * FROM offers WHERE isbn = 'x' AND year = 2000", trade).bind_set == ("isbn", "year")
    trade = shop(method("by_year", required="year", optional="year>= year<="))
    assert chosen("SELECT * FROM offers WHERE year = 2000", trade).bind_set == ("year",)


def test_any_of_may_be_a_bound() -> None:
    trade = shop(method("search", any_of="isbn title^="))
    assert chosen("SELECT * FROM offers WHERE title LIKE 'D%'", trade).bind_set == ("title^=",)
    assert chosen("SELECT o.* FROM books b JOIN offers o USING (isbn)", trade).bind_set == ("isbn",)
    with pytest.raises(Unanswerable, match=r"needs one of isbn, title starts with \.\.\."):
        chosen("SELECT * FROM offers", trade)


def test_many_optional_bind_fields_cost_nothing() -> None:
    names = [f"f{n}" for n in range(40)]
    optional = " ".join(f"{name}{o}" for name in names for o in ("", "<", "<=", ">", ">="))
    wide = relation(
        "wide", " ".join(f"{name}:n" for name in names), method("scan", "scan", optional=optional)
    )
    sql = f"SELECT * FROM wide WHERE {' AND '.join(f'{name} > 5' for name in names)}"
    assert len(chosen(sql, catalog(wide)).bind_set) == 40


def test_what_proves_all_comes_before_what_does_not() -> None:
    best = replace(method("best", required="title^="), proves="some")
    trade = shop(best, method("by_isbn", required="isbn"))
    sql = "SELECT * FROM books b JOIN offers o USING (isbn) WHERE o.title LIKE 'D%'"
    assert chosen(sql, trade).method.name == "by_isbn"
    alone = "SELECT * FROM offers o WHERE o.title LIKE 'D%'"
    assert chosen(alone, trade).method.name == "best"
    assert explain(block_of(alone, trade), verdict_of(alone, trade)) == [
        "offers (o): index best, title starts with 'D', which may not bring all rows"
    ]


def test_what_does_not_prove_all_is_taken_where_others_depend_on_it() -> None:
    """Only for the alias that has nothing else: the others are then reached in ways that prove all."""
    some = replace(method("best", required="title^="), proves="some")
    trade = catalog(
        relation("offers", FIELDS, some),
        relation("books", "isbn:s title:s", method("by_isbn", required="isbn"), some),
    )
    sql = "SELECT * FROM offers o JOIN books b USING (isbn) WHERE o.title LIKE 'D%' AND b.title LIKE 'D%'"
    found = verdict_of(sql, trade)
    assert [p.method.name for p in found.chosen] == ["best", "by_isbn"]
