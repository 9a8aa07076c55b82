"""Every built-in declaration reads back exactly what its site holds."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

import sources
from fixtures import Web, book_trade_web, papers_web
from fixtures.virtual import VirtualTransport, run
from mediator.catalog.wrapper import Binding

BOOKS = 60


async def _fetch(
    web: Web, relation: str, method: str, bind_set: tuple[str, ...], bindings: Sequence[Binding]
) -> pa.Table:
    """All pages of one lookup, from each mirror; the mirrors agree."""
    way = web.catalog.relations[relation].method(method)
    wrapper, transport = way.wrapper, VirtualTransport(web)
    assert wrapper is not None
    tables = []
    for mirror in way.mirrors:
        due, batches = [wrapper.request(bind_set, bindings)], []
        while due:
            request = due.pop(0)
            reply = await transport.send(mirror, request)
            assert reply.status == 200 or reply.status in wrapper.empty_statuses, reply
            page = wrapper.read(request, bind_set, bindings, reply)
            assert page.rows.schema == web.catalog.relations[relation].schema
            batches.append(page.rows)
            due += page.then
        tables.append(pa.Table.from_batches(batches))
    assert all(table.equals(tables[0]) for table in tables)
    return tables[0]


def _held(web: Web, relation: str, **wanted: object) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = web.tables[relation].to_pylist()
    return [row for row in rows if all(row[f] == v for f, v in wanted.items())]


@pytest.fixture(scope="module")
def trade() -> Web:
    return book_trade_web(BOOKS, book_page=7, review_page=2)


@pytest.mark.parametrize("relation", ["books", "prizes"])
def test_scans_of_the_book_trade(trade: Web, relation: str) -> None:
    assert run(_fetch(trade, relation, "all", (), [()])).to_pylist() == _held(trade, relation)


@pytest.mark.parametrize("relation", ["offers", "reviews"])
def test_what_goes_with_a_book(trade: Web, relation: str) -> None:
    for isbn in trade.tables["books"]["isbn"].to_pylist():
        found = run(_fetch(trade, relation, "by_isbn", ("isbn",), [(isbn,)])).to_pylist()
        assert found == _held(trade, relation, isbn=isbn)


def test_twenty_offers_lookups_are_one_request(trade: Web) -> None:
    isbns = trade.tables["books"]["isbn"].to_pylist()[:20]
    before = trade.counters["offers_north"].requests
    found = run(_fetch(trade, "offers", "by_isbn", ("isbn",), [(isbn,) for isbn in isbns]))
    assert trade.counters["offers_north"].requests == before + 1
    assert found.to_pylist() == [row for isbn in isbns for row in _held(trade, "offers", isbn=isbn)]


def test_every_author_and_nobody(trade: Web) -> None:
    for row in _held(trade, "authors"):
        assert run(_fetch(trade, "authors", "by_id", ("id",), [(row["id"],)])).to_pylist() == [row]
    assert run(_fetch(trade, "authors", "by_id", ("id",), [(1,)])).num_rows == 0


@pytest.mark.parametrize("field", ["city", "zip"])
def test_libraries_of_a_place(trade: Web, field: str) -> None:
    for value in {str(row[field]) for row in _held(trade, "libraries")}:
        found = run(_fetch(trade, "libraries", "by_place", (field,), [(value,)])).to_pylist()
        assert found == _held(trade, "libraries", **{field: value})
    assert run(_fetch(trade, "libraries", "by_place", (field,), [("Atlantis",)])).num_rows == 0


def test_holdings_of_a_book_in_every_library(trade: Web) -> None:
    isbn = _held(trade, "holdings")[0]["isbn"]
    both = ("isbn", "library_id")
    found = [
        row
        for library in _held(trade, "libraries")
        for row in run(
            _fetch(trade, "holdings", "by_book_and_library", both, [(isbn, library["library_id"])])
        ).to_pylist()
    ]
    assert sorted(found, key=str) == sorted(_held(trade, "holdings", isbn=isbn), key=str)


def test_the_papers_sources() -> None:
    web = papers_web()
    for relation in ("r", "t"):
        assert run(_fetch(web, relation, "scan", (), [()])).to_pylist() == _held(web, relation)
    for relation, field in (("s", "x"), ("s", "y"), ("t", "key")):
        found = run(_fetch(web, relation, f"by_{field}", (field,), [(249,)])).to_pylist()
        assert found == _held(web, relation, **{field: 249})
        assert len(found) == 1


def test_a_declaration_fits_on_a_page() -> None:
    files = sorted(Path(sources.__file__).parent.glob("*/*.yaml"))
    assert len(files) == 10
    assert all(len(file.read_text().splitlines()) <= 40 for file in files)
