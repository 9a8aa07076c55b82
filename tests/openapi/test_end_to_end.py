"""From a document to answers: a draft as it was written, a real site, and the answers that DuckDB gives."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import sources
from mediator.answering import answer
from sources.openapi import drafted, read, written
from tests.cli.kit import bag, called
from tests.openapi.typed_shop import TypedShop
from tests.wrappers.http_site import served

DOCUMENT = Path(__file__).parent / "documents" / "typed_shop.json"
QUERIES = {
    "a scan": (
        "SELECT isbn, title, year, author_id, price_amount, price_currency, CAST(seen AS TIMESTAMP) AS seen, "
        "CAST(published AS DATE) AS published FROM books"
    ),
    "lookups": "SELECT title, price_amount FROM books WHERE isbn IN ('978-003', '978-012', '978-999')",
    "of an author": "SELECT isbn FROM books WHERE author_id = 3",
    "a join with lists of ids": "SELECT b.isbn, a.name FROM books b JOIN authors a ON a.id = b.author_id",
    "a join with pages": (
        "SELECT b.isbn, r.reviewer, r.stars FROM books b JOIN books_reviews r ON r.isbn = b.isbn "
        "WHERE b.author_id = 4 AND r.stars > 3"
    ),
    "all three": (
        "SELECT a.name, count(*) AS n, avg(r.stars) AS stars FROM books b JOIN authors a ON a.id = b.author_id "
        "JOIN books_reviews r ON r.isbn = b.isbn WHERE b.price_currency = 'EUR' GROUP BY a.name"
    ),
}


@pytest.mark.parametrize("query", QUERIES)
def test_the_draft_answers_as_the_rows_say(query: str, tmp_path: Path) -> None:
    sql = QUERIES[query]
    shop = TypedShop()
    with served(shop.answer) as address:
        draft = drafted(read(DOCUMENT.name, DOCUMENT.read_bytes()), "shop", address)
        (tmp_path / "shop.yaml").write_text(written(draft))
        table, report = answer(sql, sources.load(tmp_path / "shop.yaml"))
    assert report.complete, report.lines()
    with duckdb.connect() as connection:
        for name, rows in shop.tables().items():
            connection.register(name, rows)
        truth = connection.sql(sql).to_arrow_table()
    assert truth.num_rows > 0
    assert bag(table.select(truth.column_names).to_pylist()) == bag(truth.to_pylist())


def test_the_draft_as_it_is_passes_the_checks_with_its_site(tmp_path: Path) -> None:
    shop, file = TypedShop(), tmp_path / "shop.yaml"
    with served(shop.answer) as address:
        spec = ["--openapi", str(DOCUMENT), "--base", address, "--output", str(file)]
        assert called("wrapper", "new", "shop", *spec).exit_code == 0
        result = called("wrapper", "check", "--catalog", str(file))
    assert result.exit_code == 0, result.stdout
    assert " 0 failed, " in result.stdout
    assert len(shop.asked) > 10


def test_as_many_ids_as_the_document_allows_are_one_request(tmp_path: Path) -> None:
    shop = TypedShop()
    with served(shop.answer) as address:
        (tmp_path / "shop.yaml").write_text(
            written(drafted(read("x", DOCUMENT.read_bytes()), "shop", address))
        )
        ids = ", ".join(str(n) for n in range(8))
        table, report = answer(f"SELECT name FROM authors WHERE id IN ({ids})", sources.load(tmp_path))
    assert (table.num_rows, report.complete, len(shop.asked)) == (8, True, 1)


def test_an_address_that_was_named_may_be_private_and_one_from_the_document_not() -> None:
    document = DOCUMENT.read_bytes().replace(b'"info"', b'"servers": [{"url": "http://10.0.0.1"}], "info"', 1)
    named = drafted(read("x", document), "shop", "http://127.0.0.1:80").content["sources"]["shop"]
    assert named == {"base": "http://127.0.0.1:80", "allow_private": True}
    assert drafted(read("x", document), "shop").content["sources"]["shop"] == {"base": "http://10.0.0.1"}
