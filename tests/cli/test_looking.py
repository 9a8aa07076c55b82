"""`mediator explain` and `mediator sources`: nothing is asked, everything is said."""

from __future__ import annotations

import subprocess
import sys

from fixtures import Web
from tests.cli.kit import at, called


def test_explain_says_who_provides_what_and_asks_nothing(trade: Web) -> None:
    sql = (
        "SELECT b.title, count(*) AS n FROM books b JOIN offers o ON o.isbn = b.isbn GROUP BY 1 "
        "ORDER BY n DESC LIMIT 3"
    )
    result = called("explain", sql, *at(trade))
    assert result.exit_code == 0
    assert "This query can be answered." in result.stdout
    assert "books (b): scan all" in result.stdout
    assert "offers (o): index by_isbn, isbn from b.isbn, 20 bindings per request, 2 mirrors" in result.stdout
    assert "its answer comes at the end" in result.stdout
    assert trade.requests == 0


def test_explain_warns_of_cross_products(trade: Web) -> None:
    plain = called("explain", "SELECT * FROM books, prizes", *at(trade)).stdout
    assert "warning: nothing joins books and prizes" in plain
    asked = (
        "SELECT copies FROM books b, libraries l, holdings h "
        "WHERE l.city = 'Dunnock' AND h.isbn = b.isbn AND h.library_id = l.library_id"
    )
    calls = called("explain", asked, *at(trade)).stdout
    assert "every combination of their rows will be asked for" in calls


def test_explain_of_what_is_never_true(trade: Web) -> None:
    result = called("explain", "SELECT title FROM books WHERE 1 = 2", *at(trade))
    assert result.exit_code == 0
    assert "nothing is asked" in result.stdout


def test_sources_lists_fields_methods_and_mirrors(trade: Web) -> None:
    said = called("sources", *at(trade)).stdout
    assert "offers   key: isbn, shop\n  isbn VARCHAR, shop VARCHAR, price DOUBLE" in said
    assert "index by_isbn: needs isbn; 20 bindings per request; 2 mirrors" in said
    assert f"from prices_south, {trade.url}/prices-south" in said
    assert "index by_place: needs one of city, zip" in said
    assert "index by_book_and_library: needs isbn and library_id" in said
    assert trade.requests == 0


def test_the_demo_can_be_looked_at() -> None:
    assert "reviews   key: isbn, reviewer" in called("sources", "--demo").stdout
    assert "can be answered" in called("explain", "SELECT title FROM books", "--demo").stdout


def test_help_names_the_exit_codes() -> None:
    for command in ([], ["query"]):
        said = called(*command, "--help").stdout
        for code in ("0 ", "3 ", "2 ", "1 ", "130 ", "141 "):
            assert f" {code} " in said


def test_help_does_not_load_the_engine() -> None:
    heavy = ("numba", "pyarrow", "duckdb", "aiohttp", "sqlglot", "mediator.answering")
    script = f"import sys, api.cli; print([m for m in {heavy!r} if m in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == "[]"
