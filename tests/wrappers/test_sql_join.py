"""One query over PostgreSQL, SQLite and the web, against DuckDB over all that they hold."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from fixtures import Web, book_trade
from mediator.answering import Mediator
from mediator.catalog.model import Catalog
from sources.joining import joined
from tests.answering.kit import ask, check_same, truth
from tests.sql_kit import Shop, declared, sqlite_file

SIZE = 150
STATEMENTS = {
    "web, then both databases": """
        SELECT b.title, s.copies, n.note FROM books b JOIN stock s ON s.isbn = b.isbn
        JOIN notes n ON n.isbn = s.isbn WHERE b.year > 1990""",
    "databases first, then the web's index": """
        SELECT s.isbn, s.copies, o.shop, o.price, n.note FROM stock s JOIN notes n ON n.isbn = s.isbn
        JOIN offers o ON o.isbn = n.isbn WHERE s.copies >= 3""",
    "two bind-fields": """
        SELECT s.isbn, n.note FROM stock s JOIN notes n ON n.isbn = s.isbn AND n.copies = s.copies""",
    "sums": """
        SELECT b.year, sum(s.copies) AS copies, count(n.note) AS notes FROM books b JOIN stock s ON s.isbn = b.isbn
        LEFT JOIN notes n ON n.isbn = b.isbn GROUP BY b.year""",
    "an IN-list": """
        SELECT s.isbn, s.copies, n.note FROM stock s JOIN notes n ON n.isbn = s.isbn WHERE s.copies IN (1, 4)""",
}


@pytest.fixture
def web() -> Iterator[Web]:
    with book_trade(SIZE, book_page=25) as served:
        yield served


def _stocked(web: Web, shop: Shop, folder: Path) -> tuple[Catalog, dict[str, pa.Table]]:
    """Half of the books are in the PostgreSQL table `stock`, some of those in the SQLite table `notes`.

    Returns the catalog of all three, and what the two tables hold.
    """
    isbns = sorted(web.tables["books"]["isbn"].to_pylist())
    stock = [(isbn, n % 6 if n % 5 else None) for n, isbn in enumerate(isbns[::2])]
    notes = [
        (isbn, n % 6, None if n % 7 == 0 else f"note '{n}'") for n, isbn in enumerate(isbns[::2]) if n % 3
    ]
    notes.append((None, 1, "nobody's"))
    shop.run("CREATE TABLE stock (isbn text PRIMARY KEY, copies int)", "CREATE INDEX ON stock (copies)")
    shop.fill("stock", stock)
    path = sqlite_file(
        folder / "notes.db",
        "CREATE TABLE notes (isbn TEXT, copies INTEGER, note TEXT)",
        "CREATE INDEX by_isbn ON notes (isbn)",
        rows=[("INSERT INTO notes VALUES (?, ?, ?)", notes)],
    )
    databases = shop.catalog(
        folder,
        """
  stock:
    fields: {isbn: string, copies: int32}
    database: {source: shop_db, table: $schema.stock, key: [isbn], indexed: [[isbn], [copies]], batch_size: 7}
""",
    )
    shelf = declared(
        folder,
        f"""
sources: {{shelf: {{base: "sqlite:///{path}"}}}}
relations:
  notes:
    fields: {{isbn: string, copies: int32, note: string}}
    database: {{source: shelf, table: notes, indexed: [[isbn], [isbn, copies]], scan: false}}
""",
    )
    catalog = joined([web.catalog, databases, shelf])
    return catalog, {
        name: pa.table(
            dict(zip(catalog.relations[name].schema.names, zip(*rows, strict=True), strict=True)),
            schema=catalog.relations[name].schema,
        )
        for name, rows in (("stock", stock), ("notes", notes))
    }


@pytest.mark.parametrize("policy", ["rank", "random"])
@pytest.mark.parametrize("name", STATEMENTS)
async def test_all_three_at_once(web: Web, shop: Shop, tmp_path: Path, name: str, policy: str) -> None:
    catalog, tables = _stocked(web, shop, tmp_path)
    async with Mediator(catalog, threads=1) as mediator:
        found, report = await ask(mediator, STATEMENTS[name], policy=policy)
    assert report.complete, report.lines()
    true = truth({**web.tables, **tables}, STATEMENTS[name])
    assert true.num_rows
    check_same(found, true)
