"""The generated data: valid, consistent, the same again, and worth asking."""

from typing import Any

import duckdb
import numpy as np
import pytest

from fixtures.isbn import book_number, isbns
from fixtures.papers_data import Papers
from fixtures.trade_data import Trade


def _scalar(trade: Trade, sql: str) -> Any:
    with duckdb.connect() as db:
        for name, table in trade.tables.items():
            db.register(name, table)
        row = db.execute(sql).fetchone()
    assert row is not None
    return row[0]


def test_isbns_are_valid_distinct_and_lead_back() -> None:
    numbers = np.array([0, 1, 77, 123_456, 999_999_999])
    texts = isbns(numbers).to_pylist()
    for number, text in zip(numbers, texts, strict=True):
        assert sum(int(c) * (3 if i % 2 else 1) for i, c in enumerate(text)) % 10 == 0
        assert book_number(text) == number
    assert len(set(isbns(np.arange(10_000)).to_pylist())) == 10_000


@pytest.mark.parametrize("text", ["", "978", "9781415926537", "1234567890123", "978141592653x"])
def test_what_is_no_isbn_leads_nowhere(text: str) -> None:
    assert book_number(text) is None


def test_the_same_seed_gives_the_same_rows_and_another_one_does_not() -> None:
    for name, table in Trade(200, seed=3).tables.items():
        assert table.equals(Trade(200, seed=3).tables[name])
    assert not Trade(200, seed=3).tables["books"].equals(Trade(200, seed=4).tables["books"])


def test_one_row_is_what_it_is_in_the_whole_table() -> None:
    trade = Trade(200)
    assert trade.books(np.array([123])).to_pylist() == trade.tables["books"].slice(123, 1).to_pylist()
    isbn = isbns(np.array([123]))[0].as_py()
    whole = [row for row in trade.tables["offers"].to_pylist() if row["isbn"] == isbn]
    assert trade.offers(np.array([123])).to_pylist() == whole


@pytest.mark.parametrize(
    ("relation", "key"),
    [
        ("books", "isbn"),
        ("authors", "id"),
        ("offers", "(isbn, shop)"),
        ("reviews", "(isbn, reviewer)"),
        ("libraries", "library_id"),
        ("holdings", "(isbn, library_id)"),
        ("prizes", "(prize, year)"),
    ],
)
def test_declared_keys_are_keys(relation: str, key: str) -> None:
    assert _scalar(Trade(2_000), f"SELECT count(*) = count(DISTINCT {key}) FROM {relation}")


@pytest.mark.parametrize("size", [40, 200, 1_000])
def test_five_relations_have_common_answers(size: int) -> None:
    joined = """SELECT count(*) FROM books JOIN authors ON author_id = id JOIN offers USING (isbn)
        JOIN reviews USING (isbn) JOIN prizes USING (isbn)"""
    assert _scalar(Trade(size), joined) > 0


def test_every_city_has_a_library_that_holds_some_book() -> None:
    sql = (
        "SELECT count(DISTINCT city) FROM libraries JOIN holdings USING (library_id) JOIN books USING (isbn)"
    )
    assert _scalar(Trade(200), sql) == 12


def test_a_zip_is_in_one_city_and_a_city_has_several() -> None:
    trade = Trade(10)
    assert (
        _scalar(trade, "SELECT max(n) FROM (SELECT count(DISTINCT city) n FROM libraries GROUP BY zip)") == 1
    )
    assert (
        _scalar(trade, "SELECT max(n) FROM (SELECT count(DISTINCT zip) n FROM libraries GROUP BY city)") > 1
    )


def test_popularity_is_skewed_and_some_things_are_unknown() -> None:
    trade = Trade(2_000)
    counts = "(SELECT count(*) n FROM offers GROUP BY isbn)"
    assert _scalar(trade, f"SELECT max(n) > 4 * avg(n) FROM {counts}")
    for relation, field in [
        ("books", "year"),
        ("books", "author_id"),
        ("prizes", "isbn"),
        ("reviews", "stars"),
    ]:
        share = f"SELECT avg(({field} IS NULL)::int) BETWEEN 0.005 AND 0.2 FROM {relation}"
        assert _scalar(trade, share), (relation, field)
    outside = "SELECT count(*) FROM offers WHERE isbn NOT IN (SELECT isbn FROM books)"
    assert _scalar(trade, outside) > 0


def test_the_papers_sources() -> None:
    papers = Papers()
    a = papers.r["a"].to_pylist()
    assert papers.r.num_rows == 1_000
    assert sorted(set(a)) == list(range(250))
    assert papers.s["x"].equals(papers.s["y"])
    assert set(a) <= set(papers.s["x"].to_pylist())
    assert sorted(papers.t["key"].to_pylist()) == sorted(papers.r["key"].to_pylist())
    with pytest.raises(ValueError, match="cannot have 250 values"):
        Papers(rows=100)
