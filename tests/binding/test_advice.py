"""What cannot be answered is explained: which relation, which fields, and what to add."""

from __future__ import annotations

import pytest

from mediator.binding import explain, verdict
from mediator.errors import Unanswerable
from tests.binding.trade import block_of, verdict_of


def refusal(sql: str) -> Unanswerable:
    with pytest.raises(Unanswerable) as caught:
        verdict_of(sql)
    return caught.value


def test_one_field_is_missing() -> None:
    sql = "SELECT * FROM books JOIN holdings USING (isbn)"
    error = refusal(sql)
    assert error.message == (
        "holdings needs isbn and library_id (access method lookup), and nothing in the query gives library_id"
    )
    assert error.hint == (
        "To give library_id: join it with libraries (ON libraries.library_id = holdings.library_id); "
        "or add WHERE holdings.library_id = ..., or holdings.library_id IN (...)."
    )
    assert error.position == sql.index("holdings")


def test_alias_is_named_beside_the_relation() -> None:
    error = refusal("SELECT * FROM reviews r")
    assert error.message.startswith("reviews (r) needs isbn (access method by_isbn)")
    assert "join it with books (ON books.isbn = r.isbn)" in error.hint
    assert "add WHERE r.isbn = ..., or r.isbn IN (...)" in error.hint


def test_what_the_query_has_already_comes_before_what_the_catalog_has() -> None:
    error = refusal("SELECT * FROM books b, reviews r WHERE b.year > r.stars")
    assert error.hint.startswith("To give isbn: add b.isbn = r.isbn; or add WHERE r.isbn = ...")


def test_key_named_after_its_relation_is_found() -> None:
    assert "join it with books (ON books.author_id = a.id)" in refusal("SELECT * FROM authors a").hint


def test_any_of() -> None:
    error = refusal("SELECT * FROM libraries l")
    assert error.message == (
        "libraries (l) needs one of city, zip (access method search), "
        "and nothing in the query gives city or zip"
    )
    assert error.hint.splitlines() == [
        "To give city: add WHERE l.city = ..., or l.city IN (...).",
        "To give zip: add WHERE l.zip = ..., or l.zip IN (...).",
    ]


def test_cycle_says_who_waits_for_whom() -> None:
    error = refusal("SELECT * FROM offers o JOIN reviews r USING (isbn)")
    assert error.message.startswith("offers (o) needs isbn")
    assert "o.isbn would come from r.isbn, but reviews (r) cannot be asked itself." in error.hint
    assert error.hint.endswith("reviews (r) can be asked once that is mended.")


def test_two_relations_with_troubles_of_their_own() -> None:
    error = refusal("SELECT * FROM authors a, libraries l")
    assert "authors (a) needs id" in error.message
    assert "libraries (l) needs one of city, zip" in error.message
    assert "can be asked once" not in error.hint


def test_advice_when_taken_helps() -> None:
    """A verdict is given, where there was `Unanswerable` before."""
    assert verdict_of(
        "SELECT * FROM books JOIN holdings USING (isbn) "
        "JOIN libraries ON libraries.library_id = holdings.library_id WHERE libraries.city = 'Oslo'"
    )
    assert verdict_of("SELECT * FROM books JOIN holdings USING (isbn) WHERE holdings.library_id IN (1, 2)")


def explained(sql: str) -> list[str]:
    block = block_of(sql)
    return explain(block, verdict(block, sql))


def test_explain() -> None:
    assert explained("SELECT * FROM books b JOIN offers o USING (isbn)") == [
        "books (b): scan scan",
        "offers (o): index by_isbn, isbn from b.isbn, 20 bindings per request, 2 mirrors",
    ]


def test_explain_shows_alternatives() -> None:
    assert explained("SELECT * FROM prizes WHERE year = 1999") == [
        "prizes: index by_year, year = 1999",
        "  or scan scan",
    ]


def test_explain_warns_of_a_cross_product() -> None:
    lines = explained(
        "SELECT * FROM holdings h, books b, libraries l WHERE h.isbn = b.isbn "
        "AND h.library_id = l.library_id AND l.city = 'Oslo'"
    )
    assert lines[-1] == (
        "  warning: nothing joins books (b) and libraries (l), "
        "so every combination of their rows will be asked for"
    )


def test_explain_does_not_warn_where_something_joins_them() -> None:
    lines = explained(
        "SELECT * FROM holdings h, books b, libraries l WHERE h.isbn = b.isbn "
        "AND h.library_id = l.library_id AND l.city = 'Oslo' AND l.name < b.title"
    )
    assert not any("warning" in line for line in lines)


def test_explain_what_never_matches() -> None:
    assert explained("SELECT * FROM books WHERE year = 1 AND year = 2") == [
        "a condition is never true: no answers, and nothing is asked"
    ]
