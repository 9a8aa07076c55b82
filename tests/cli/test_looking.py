"""`mediator explain` and `mediator sources`: nothing is asked, everything is said."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from fixtures import Web
from pipeline import packages
from pipeline.errors import NoSpark
from pipeline.packages import Need
from pipeline.spread import auto, explaining
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


class TestEngines:
    sql = "SELECT b.isbn, a.name FROM books b JOIN authors a ON a.id = b.author_id ORDER BY a.name"

    @pytest.fixture
    def no_java(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def none() -> None:
            raise NoSpark("Spark needs Java 17 or newer, and there is none here")

        for module in (explaining, auto):
            monkeypatch.setattr(module, "find_java", none)

    @pytest.mark.usefixtures("no_java")
    def test_explain_says_how_it_would_be_cut_on_spark(self, trade: Web, tmp_path: Path) -> None:
        store = ["--store", str(tmp_path / "store")]
        assert called("query", self.sql, *at(trade), *store).exit_code == 0
        requests = trade.requests
        result = called("explain", self.sql, *at(trade), *store, "--engine", "spark")
        assert result.exit_code == 0
        _, estimate, said = re.split("^Estimate$|^On Spark$", result.stdout, flags=re.MULTILINE)
        assert "in all: nothing to ask" in estimate
        assert re.search(r"^  block: \d cells?, about \d+ rows", said, re.MULTILINE)
        assert re.search(r"^    (not )?cut by (a.id = b.author_id|b.author_id = a.id)", said, re.MULTILINE)
        assert "\n    books (b): about 60 rows (measured)\n" in said
        assert "\n  answer is made by Spark, of all rows of block\n" in said
        assert "warning: Spark needs Java" in said
        assert trade.requests == requests

    def test_explain_says_what_decides(self, trade: Web) -> None:
        said = called("explain", self.sql, *at(trade), "--engine", "auto").stdout
        assert "\nHere or on Spark\n  here at first: " in said
        assert "On Spark" not in called("explain", self.sql, *at(trade)).stdout
        assert trade.requests == 0

    @pytest.mark.usefixtures("no_java")
    def test_explain_says_that_it_cannot_move(self, trade: Web) -> None:
        stays = called("explain", self.sql, *at(trade), "--engine", "auto").stdout
        assert "\n  here, however large it grows: Spark cannot be used\nwarning: Spark needs Java" in stays

    def test_explain_without_pyspark_says_so(self, calm: Web, monkeypatch: pytest.MonkeyPatch) -> None:
        missing = [Need("mediator-no-such-package", "", "spark")]
        monkeypatch.setattr(packages, "needs", lambda: missing)
        result = called("explain", self.sql, *at(calm), "--engine", "spark")
        assert result.exit_code == 2
        assert "Spark cannot be used: mediator-no-such-package is not installed" in result.stderr

    def test_what_runs_here_is_not_run_there(self, calm: Web) -> None:
        result = called("explain", self.sql, *at(calm), "--live", "--engine", "spark")
        assert result.exit_code == 2
        assert "leave out --engine, or --live" in result.stderr


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
