"""What a query may spend, what it would cost, and what was measured: on the command line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fixtures import Behaviour, Fixed, Web, book_trade
from tests.cli.kit import BOOK_TRADE, at, called

OFFERS = "SELECT b.title, o.price FROM books b JOIN offers o ON o.isbn = b.isbn"
AUTHORS = "SELECT b.title, a.name FROM books b JOIN authors a ON a.id = b.author_id"


class TestCeilings:
    def test_of_the_whole_query(self, trade: Web) -> None:
        result = called("query", AUTHORS, *at(trade), "--max-calls", "5")
        assert result.exit_code == 3
        assert trade.requests == 5
        assert "ceiling: the query may send 5 requests (max_calls), and needs more" in result.stderr

    def test_of_one_source_and_others_go_on(self, trade: Web) -> None:
        result = called("query", AUTHORS, *at(trade), "--max-calls", "who_is_who=2")
        assert result.exit_code == 3
        assert trade.counters["authors"].requests == 2
        assert trade.counters["books"].requests == 3
        said = "ceiling: the query may send 2 requests to who_is_who (max_calls), and needs more"
        assert said in " ".join(result.stderr.split())
        assert "books: 1 asked, 1 answered, 60 rows" in result.stderr

    def test_bytes_and_seconds(self, trade: Web) -> None:
        result = called("query", AUTHORS, *at(trade), "--max-bytes", "catalogue=1kB")
        assert result.exit_code == 3
        assert "may read 1,000 bytes from catalogue (max_bytes)" in result.stderr
        trade.behave("authors", Behaviour(latency=Fixed(20.0)))
        result = called("query", AUTHORS, *at(trade), "--max-seconds", "who_is_who=0.1")
        assert result.exit_code == 3
        assert "may spend 0.1 s with requests to who_is_who (max_seconds)" in result.stderr

    def test_enough_is_enough(self, trade: Web) -> None:
        arguments = ["--max-calls", "1000", "--max-calls", "who_is_who=60", "--max-bytes", "1GiB"]
        result = called("query", AUTHORS, *at(trade), *arguments, "--max-seconds", "5m")
        assert result.exit_code == 0

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (["--max-calls", "many"], "--max-calls many: expected a number of requests, 0 or more"),
            (["--max-calls", "-1"], "expected a number of requests, 0 or more"),
            (["--max-calls", "=3"], "--max-calls =3: expected SOURCE=N, or N alone"),
            (["--max-calls", "3", "--max-calls", "4"], "--max-calls 4: said twice"),
            (["--max-bytes", "10 pounds"], "expected a number of bytes: 500000, 500kB, 10MB or 1GiB"),
            (["--max-seconds", "soon"], "--max-seconds soon: expected a length of time"),
            (["--max-calls", "whoiswho=3"], "'whoiswho', which is no source: did you mean 'who_is_who'?"),
        ],
    )
    def test_what_cannot_be_meant_is_told(self, calm: Web, arguments: list[str], said: str) -> None:
        for command in ("query", "explain"):
            result = called(command, "SELECT title FROM books", *at(calm), *arguments)
            assert result.exit_code == 2
            assert said in " ".join(result.stderr.split())


class TestEstimates:
    def test_without_anything_known_they_are_guesses(self, trade: Web) -> None:
        said = called("explain", OFFERS, *at(trade)).stdout
        assert "Estimate" in said
        assert "(guess)" in said
        assert trade.requests == 0

    def test_what_was_measured_and_what_is_stored_counts(self, trade: Web, tmp_path: Path) -> None:
        store = ["--store", str(tmp_path / "store")]
        assert called("query", OFFERS, *at(trade), *store).exit_code == 0
        trade.reset()
        held = called("explain", OFFERS, *at(trade), *store).stdout
        assert "books (b): 60 rows, nothing to ask (stored)" in held
        assert "in all: nothing to ask" in held
        anew = called("explain", OFFERS, *at(trade), *store, "--max-age", "0").stdout
        assert re.search(r"books \(b\): 2 to \d calls, 54 to 66 rows, .* \(measured in 1 lookup\)", anew), (
            anew
        )
        assert "(measured in 60 lookups)" in anew
        assert trade.requests == 0

    def test_the_estimate_is_borne_out(self, trade: Web, tmp_path: Path) -> None:
        store = ["--store", str(tmp_path / "store")]
        called("query", AUTHORS, *at(trade), *store)
        said = called("explain", AUTHORS, *at(trade), *store, "--max-age", "0").stdout
        found = re.search(r"in all: (\d+) to (\d+) calls", said)
        assert found is not None
        trade.reset()
        called("query", AUTHORS, *at(trade), *store, "--max-age", "0")
        assert int(found[1]) <= trade.requests <= int(found[2])

    def test_a_ceiling_that_it_will_not_keep_is_warned_of(self, trade: Web, tmp_path: Path) -> None:
        store = ["--store", str(tmp_path / "store")]
        called("query", AUTHORS, *at(trade), *store)
        said = called("explain", AUTHORS, *at(trade), *store, "--max-age", "0", "--max-calls", "1").stdout
        assert "warning: this will probably exceed max_calls 1 (estimate " in said

    def test_a_folder_that_is_no_store_is_told_and_left_alone(self, calm: Web, tmp_path: Path) -> None:
        for command in (["explain", OFFERS], ["sources"]):
            result = called(*command, *at(calm), "--store", str(tmp_path))
            assert result.exit_code == 2
            assert "is no store" in result.stderr
        assert not list(tmp_path.iterdir())


class TestSources:
    def test_show_what_was_measured(self, trade: Web, tmp_path: Path) -> None:
        store = ["--store", str(tmp_path / "store")]
        called("query", "SELECT r.stars FROM books b JOIN reviews r ON r.isbn = b.isbn", *at(trade), *store)
        said = called("sources", *at(trade), *store).stdout
        reviews = said[said.index("reviews   key") :]
        assert re.search(r"p50 .* m?s, p95 .* m?s, p99 .* m?s; 0\.0% of \d+ requests failed; ", reviews)
        assert re.search(r"rows per lookup \(± .*; 60 lookups of about \d+ different bindings", reviews)
        assert "never asked" in said
        assert "never asked" not in called("sources", *at(trade)).stdout

    def test_show_the_limits_and_what_is_left_of_the_day(self, tmp_path: Path) -> None:
        text = (BOOK_TRADE / "books.yaml").read_text()
        assert text.count("base: ${book_trade}/catalogue\n") == 1
        limited = text.replace(
            "base: ${book_trade}/catalogue\n",
            "base: ${book_trade}/catalogue\n    daily: 4\n    per_query: {calls: 50, bytes: 10MB, seconds: 20}\n",
        )
        (tmp_path / "books.yaml").write_text(limited)
        store = ["--store", str(tmp_path / "store")]
        with book_trade(60, book_page=20) as web:
            known = ["--catalog", str(tmp_path / "books.yaml"), "--set", f"book_trade={web.url}"]
            before = called("sources", *known).stdout
            assert (
                "4 a day, of which 4 are left today, 50 requests a query, 10,000,000 bytes a query" in before
            )
            assert called("query", "SELECT title FROM books", *known, *store).exit_code == 0
            assert "4 a day, of which 1 are left today" in called("sources", *known, *store).stdout
            shown = called("cache", "show", *store).stdout
            assert "requests today: 3 to catalogue" in shown
            explained = called("explain", "SELECT title FROM books", *known, *store, "--max-age", "0").stdout
            assert "exceed what catalogue takes today, which is 1" in explained
            result = called("query", "SELECT title FROM books", *known, *store, "--max-age", "0")
            assert result.exit_code == 3
            assert "daily budget is renewed at" in " ".join(result.stderr.split())
            assert web.requests == 4
