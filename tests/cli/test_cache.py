"""`mediator query --store` and `mediator cache`: what was asked once is kept, shown, expired and exported."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from api.durations import length, seconds_of
from api.exits import Mistake
from fixtures import Web
from tests.cli.kit import at, bag, called, truth

BOOKS = "SELECT title, isbn FROM books"
AUTHORS = "SELECT name FROM authors WHERE id IN (1001, 1002)"


def kept(web: Web, store: Path, *statements: str) -> int:
    """How many requests it took to answer these."""
    before = web.requests
    for sql in statements:
        assert called("query", sql, *at(web), "--store", str(store), "--quiet").exit_code == 0
    return web.requests - before


def cache(*arguments: object) -> str:
    result = called("cache", *map(str, arguments))
    assert result.exit_code == 0, result.stderr
    return result.stdout


def refused(*arguments: object) -> str:
    result = called(*map(str, arguments))
    assert result.exit_code == 2
    return " ".join(result.stderr.split())


def test_the_same_query_again_asks_nothing(trade: Web, tmp_path: Path) -> None:
    first = called("query", BOOKS, *at(trade), "--store", str(tmp_path))
    asked = trade.requests
    again = called("query", BOOKS, *at(trade), "--store", str(tmp_path))
    assert trade.requests == asked
    assert bag(first.stdout.splitlines()) == bag(again.stdout.splitlines())


def test_without_a_store_everything_is_asked_again(trade: Web) -> None:
    for _ in range(2):
        before = trade.requests
        assert called("query", BOOKS, *at(trade)).exit_code == 0
        assert trade.requests == before + 3


@pytest.mark.parametrize("sql", [BOOKS, AUTHORS])
def test_max_age_asks_again_what_is_older(trade: Web, tmp_path: Path, sql: str) -> None:
    asked = kept(trade, tmp_path, sql)
    options = [*at(trade), "--store", str(tmp_path), "--max-age"]
    assert called("query", sql, *options, "1h").exit_code == 0
    assert trade.requests == asked
    assert called("query", sql, *options, "0").exit_code == 0
    assert trade.requests == 2 * asked


def test_show_has_a_line_for_each_relation(trade: Web, tmp_path: Path) -> None:
    kept(trade, tmp_path, BOOKS, AUTHORS)
    authors, books = cache("show", "--store", tmp_path).splitlines()
    assert authors.startswith("authors: 2 rows in 1 segment, ")
    assert "2 bindings of id, asked 0 s ago, fresh for ever" in authors.replace("1 s ago", "0 s ago")
    assert books.startswith("books: 60 rows in ")
    assert "all rows, asked" in books


def test_explain_tells_the_fields_and_what_is_covered(trade: Web, tmp_path: Path) -> None:
    kept(trade, tmp_path, AUTHORS)
    first, fields, size, ends = cache("explain", "authors", "--store", tmp_path).splitlines()
    assert first == "authors   key: id"
    assert fields.startswith("  id BIGINT, name VARCHAR")
    assert size.startswith("  2 rows in 1 segment")
    assert ends.startswith("  2 bindings of id, asked")


def test_what_was_expired_is_asked_again(trade: Web, tmp_path: Path) -> None:
    kept(trade, tmp_path, BOOKS)
    asked = kept(trade, tmp_path, AUTHORS)
    assert cache("expire", "authors", "--store", tmp_path) == "authors: 2 entries and 2 rows forgotten\n"
    assert kept(trade, tmp_path, BOOKS) == 0
    assert kept(trade, tmp_path, AUTHORS) == asked
    assert "books: 1 entry and 60 rows forgotten" in cache("expire", "--store", tmp_path)
    assert cache("show", "--store", tmp_path) == "nothing is kept\n"


def test_what_is_younger_than_was_said_is_not_expired(trade: Web, tmp_path: Path) -> None:
    kept(trade, tmp_path, AUTHORS)
    said = cache("expire", "--older-than", "2h", "--store", tmp_path)
    assert said == "authors: 0 entries and 0 rows forgotten\n"
    assert kept(trade, tmp_path, AUTHORS) == 0


def test_rows_are_exported_as_parquet(trade: Web, tmp_path: Path) -> None:
    store, file = tmp_path / "store", tmp_path / "books.parquet"
    kept(trade, store, BOOKS)
    assert cache("export", "books", file, "--store", store) == f"60 rows of books in {file}\n"
    assert bag(pq.read_table(file).to_pylist()) == bag(truth(trade, "SELECT * FROM books").to_pylist())


def test_mistakes_are_told_in_one_sentence(trade: Web, tmp_path: Path) -> None:
    store = tmp_path / "store"
    assert "is no store: `mediator query --store" in refused("cache", "show", "--store", store)
    kept(trade, store, AUTHORS)
    assert "holds nothing of 'autors'; there is authors" in refused(
        "cache", "explain", "autors", "--store", store
    )
    assert "ends in .parquet" in refused("cache", "export", "authors", tmp_path / "a.csv", "--store", store)
    assert "cannot be written" in refused(
        "cache", "export", "authors", tmp_path / "none" / "a.parquet", "--store", store
    )
    assert "--older-than soon: expected a length of time" in refused(
        "cache", "expire", "--older-than", "soon", "--store", store
    )
    file = tmp_path / "file"
    file.touch()
    assert "is a file: name a folder" in refused("query", AUTHORS, *at(trade), "--store", file)
    assert "--max-age old: expected a length of time" in refused(
        "query", AUTHORS, *at(trade), "--max-age", "old"
    )


def test_lengths_of_time_are_read_and_written() -> None:
    assert [seconds_of("--x", t) for t in ("90", "1.5m", "2 h", "3d", "0s")] == [90, 90, 7_200, 259_200, 0]
    assert [length(s) for s in (4, 900, 7_200, 259_200, float("inf"), -1)] == [
        "4 s",
        "15 min",
        "2 h",
        "3 days",
        "ever",
        "0 s",
    ]
    for bad in ("", "h", "-1", "1w", "1h30m", "١"):
        with pytest.raises(Mistake, match="expected a length of time"):
            seconds_of("--x", bad)
