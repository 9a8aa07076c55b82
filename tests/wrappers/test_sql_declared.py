"""Tables of databases in YAML: they become access methods, and what is wrong is told with line and fix."""

from __future__ import annotations

from pathlib import Path

import pytest

import sources
from mediator.catalog.model import Mirror
from mediator.catalog.secret import Secret
from mediator.errors import CatalogError, Refused
from tests.sql_kit import declared

GOOD = """\
sources:
  shop_db:
    base: postgresql://reader@db.example/shop
    password_env: SHOP_PASSWORD
  shelf: {base: "sqlite:///shelf.db"}
  web: {base: "https://web.example"}
relations:
  books:
    fields: {isbn: string, author_id: int64, at: timestamp, sold: bool}
    database:
      source: shop_db
      table: public.books
      key: [isbn]
      indexed: [[isbn], [author_id, isbn]]
      batch_size: 50
      fresh_for: 60
"""


def test_a_table_becomes_a_scan_and_an_index_for_each_list(tmp_path: Path) -> None:
    catalog = declared(tmp_path, GOOD)
    books = catalog.relations["books"]
    assert [(m.name, m.kind, m.required, m.batch_size) for m in books.methods] == [
        ("scan", "scan", (), 1),
        ("by_isbn", "index", ("isbn",), 50),
        ("by_author_id_and_isbn", "index", ("author_id", "isbn"), 50),
    ]
    assert books.key == ("isbn",)
    assert {m.fresh_for for m in books.methods} == {60}
    assert books.methods[0].mirrors == (Mirror("shop_db", "postgresql://reader@db.example/shop"),)
    assert catalog.sources["shop_db"].password == Secret("SHOP_PASSWORD")
    assert catalog.sources["web"].password is None


def test_all_that_has_an_order_can_be_asked_for_by_ranges(tmp_path: Path) -> None:
    orders = ("<", "<=", ">", ">=")
    of_author, of_time = [f"author_id{o}" for o in orders], [f"at{o}" for o in orders]
    of_isbn = [f"isbn{o}" for o in (*orders, "^=")]

    def optional(change: str) -> list[list[str]]:
        methods = declared(tmp_path, GOOD.replace("batch_size: 50", change)).relations["books"].methods
        return [sorted(m.optional) for m in methods]

    everything = [sorted(of_isbn + of_author + of_time), sorted(of_author + of_time), sorted(of_time)]
    assert optional("batch_size: 50") == everything
    assert optional("ranges: [at]") == [sorted(of_time)] * 3
    assert optional("ranges: []") == [[], [], []]


def test_a_table_without_a_key_that_is_only_scanned_stays_a_bag(tmp_path: Path) -> None:
    """As long as nothing else is said: rows that come twice could not be told from rows that are there twice."""
    text = GOOD.replace("      key: [isbn]\n", "").replace("      indexed: [[isbn], [author_id, isbn]]\n", "")
    (scan,) = declared(tmp_path, text).relations["books"].methods
    assert scan.optional == ()
    said = declared(tmp_path, text.replace("batch_size: 50", "ranges: [at]")).relations["books"]
    assert (said.repeats, len(said.methods[0].optional)) == (True, 4)


def test_a_relation_can_have_a_table_and_a_web_site(tmp_path: Path) -> None:
    methods = """\
    methods:
      by_author_id:
        mirrors: [web]
        required: [author_id]
        request: {path: /books, query: {author: "{author_id}"}}
        reply: {kind: json}
"""
    books = declared(tmp_path, GOOD + methods).relations["books"]
    assert [m.name for m in books.methods] == ["scan", "by_isbn", "by_author_id_and_isbn", "by_author_id"]
    with pytest.raises(CatalogError, match="'database' makes one of this name: rename it"):
        declared(tmp_path, GOOD + methods.replace("by_author_id:", "by_isbn:"))
    with pytest.raises(CatalogError, match="'shop_db' is a database: declare its table in 'database'"):
        declared(tmp_path, GOOD + methods.replace("[web]", "[shop_db]"))


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        (
            "source: shop_db",
            "source: shopdb",
            ":11: relations.books.database.source: unknown source 'shopdb': did",
        ),
        (
            "source: shop_db",
            "source: web",
            "'web' is no database: give it a base with postgresql:// or sqlite:///",
        ),
        (
            "key: [isbn]",
            "key: [isbm]",
            ":13: relations.books.database.key: unknown field 'isbm': did you mean",
        ),
        ("[author_id, isbn]", "[author]", ":14: relations.books.database.indexed.1: unknown field 'author'"),
        ("[author_id, isbn]", "[isbn]", "each list names different fields, and stands here once"),
        ("[author_id, isbn]", "[]", "each list names different fields"),
        (
            "batch_size: 50",
            "batch_size: 5000",
            ":15: relations.books.database.batch_size: Input should be less",
        ),
        ("batch_size: 50", "batchsize: 50", "unknown field 'batchsize': did you mean 'batch_size'?"),
        (
            "batch_size: 50",
            "ranges: [isbn, yaer]",
            ":15: relations.books.database.ranges.1: unknown field 'yaer'",
        ),
        (
            "batch_size: 50",
            'ranges: ["isbn>="]',
            ":15: relations.books.database.ranges.0: all comparisons go with a field: write 'isbn', without '>='",
        ),
        (
            "batch_size: 50",
            "ranges: [at, at]",
            ":15: relations.books.database.ranges.1: 'at' stands twice: remove",
        ),
        ("batch_size: 50", "ranges: [sold]", ".ranges.0: truth values have no order: remove 'sold'"),
        ("batch_size: 50", "ranges: at", ":15: relations.books.database.ranges: Input should be a valid"),
        ("batch_size: 50", "columns: {nope: NOPE}", "database.columns: unknown field 'nope'"),
        (
            "table: public.books",
            "table: public..books",
            "a name is empty or has a NUL in it: write schema.table",
        ),
        ("table: public.books", 'table: "a\\0b"', "a name is empty or has a NUL in it"),
        (
            "indexed: [[isbn], [author_id, isbn]]",
            "scan: false",
            "there is no way in: name fields in 'indexed'",
        ),
        ("password_env: SHOP_PASSWORD", "password: x", "unknown field 'password': did you mean 'password_"),
        (
            "password_env: SHOP_PASSWORD",
            "password_env: A\n    password_file: /b",
            ":5: sources.shop_db.password_file: there are two passwords: leave out password_env or this",
        ),
        (
            "https://web.example",
            'https://web.example", password_env: "X',
            "only a postgresql source takes a password",
        ),
        ("postgresql://reader@db", "oracle://reader@db", "base: String should match pattern"),
    ],
)
def test_what_is_wrong_is_told_with_its_line_and_the_fix(
    tmp_path: Path, right: str, wrong: str, said: str
) -> None:
    assert right in GOOD
    with pytest.raises(CatalogError) as caught:
        declared(tmp_path, GOOD.replace(right, wrong))
    assert said in str(caught.value)


def test_a_relation_without_a_way_in_is_told(tmp_path: Path) -> None:
    with pytest.raises(
        CatalogError, match=r":8: relations\.books: there is no way in: add 'methods' or 'database'"
    ):
        declared(tmp_path, GOOD[: GOOD.index("    database:")])


def test_a_time_in_sqlite_is_not_looked_up(tmp_path: Path) -> None:
    text = GOOD.replace("source: shop_db", "source: shelf").replace("[author_id, isbn]", "[at]")
    with pytest.raises(
        CatalogError, match="SQLite writes the time 'at' in several ways: take it out of 'indexed'"
    ):
        declared(tmp_path, text)


@pytest.mark.parametrize(
    "base",
    [
        "postgresql://reader:hunter2@db.example/shop",
        "postgresql://db.example/shop?password=hunter2",
        "postgresql://reader:@db.example/shop?password=",
        "postgres://reader:hunter2@db.example/shop",
        "postgresql://reader:hunter2@[db/shop",
    ],
)
def test_a_password_in_an_address_is_refused_and_not_repeated(tmp_path: Path, base: str) -> None:
    with pytest.raises(CatalogError) as caught:
        declared(tmp_path, GOOD.replace("postgresql://reader@db.example/shop", base))
    assert ":3: sources.shop_db.base: " in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_a_password_is_read_when_it_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_PASSWORD", "one")
    assert Secret("SHOP_PASSWORD").read() == "one"
    monkeypatch.delenv("SHOP_PASSWORD")
    with pytest.raises(Refused, match="its password is missing: set the environment variable SHOP_PASSWORD"):
        Secret("SHOP_PASSWORD").read()
    (tmp_path / "empty").write_text("\n")
    with pytest.raises(Refused, match="empty is empty: write the password into it"):
        Secret(file=str(tmp_path / "empty")).read()


def test_every_built_in_catalog_still_loads() -> None:
    assert sources.load_book_trade("http://web.test").relations
