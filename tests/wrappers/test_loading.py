"""Declarations from YAML: the right ones become a catalog, the wrong ones are told with line and fix."""

from pathlib import Path

import pytest

import sources
from mediator.catalog.model import Mirror, Source
from mediator.errors import CatalogError

GOOD = """\
sources:
  shop:
    base: ${shop}/api
    rate: 5
    allow_private: true
relations:
  offers:
    key: [isbn]
    fields: {isbn: string, price: float64}
    methods:
      by_isbn:
        mirrors: [shop]
        required: [isbn]
        batch_size: 10
        fresh_for: 60
        request: {path: /offers, query: {isbn: "{isbn}"}}
        reply: {kind: json}
"""


def _load(folder: Path, text: str) -> object:
    (folder / "shop.yaml").write_text(text)
    return sources.load(folder / "shop.yaml", {"shop": "https://shop.example"})


def test_a_declaration_becomes_a_catalog(tmp_path: Path) -> None:
    (tmp_path / "shop.yaml").write_text(GOOD)
    catalog = sources.load(tmp_path, {"shop": "https://shop.example"})
    assert catalog.sources == {"shop": Source("shop", rate=5, allow_private=True)}
    relation = catalog.relations["offers"]
    (method,) = relation.methods
    assert (method.kind, method.required, method.batch_size, method.fresh_for) == ("index", ("isbn",), 10, 60)
    assert method.mirrors == (Mirror("shop", "https://shop.example/api"),)
    assert relation.key == ("isbn",)
    assert relation.schema.names == ["isbn", "price"]


def test_a_source_of_one_file_serves_relations_of_another(tmp_path: Path) -> None:
    sites, relations = GOOD.split("relations:\n")
    (tmp_path / "a.yaml").write_text("relations:\n" + relations)
    (tmp_path / "b.yaml").write_text(sites)
    assert list(sources.load(tmp_path, {"shop": "https://shop.example"}).relations) == ["offers"]


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ("    rate: 5", "    rat: 5", ":4: sources.shop.rat: unknown field 'rat': did you mean 'rate'?"),
        ("    rate: 5", "    rate: fast", ":4: sources.shop.rate: Input should be a valid number"),
        (
            "${shop}",
            "${shoop}",
            ":3: sources.shop.base: variable 'shoop' has no value: give it one, with --set or in load() (given: shop)",
        ),
        ("${shop}", "shop", ":3: sources.shop.base: String should match pattern"),
        ("    base: ${shop}/api\n", "", ":2: sources.shop: 'base' is missing: add it"),
        (
            "price: float64",
            "price: float",
            ":9: relations.offers.fields.price: unknown type 'float': did you mean",
        ),
        (
            "key: [isbn]",
            "key: [isbm]",
            ":8: relations.offers.key: unknown field 'isbm': did you mean 'isbn'?",
        ),
        (
            "mirrors: [shop]",
            "mirrors: [shops]",
            ":12: relations.offers.methods.by_isbn.mirrors: unknown source 'shops'",
        ),
        (
            "required: [isbn]",
            "required: [ean]",
            ":13: relations.offers.methods.by_isbn.required: unknown field 'ean'",
        ),
        ('"{isbn}"', '"{ibsn}"', ":16: relations.offers.methods.by_isbn.request: unknown bind-field 'ibsn'"),
        (
            'query: {isbn: "{isbn}"}',
            "query: {}",
            "bind-field 'isbn' is never sent: write {isbn} where it goes",
        ),
        (
            "path: /offers",
            "path: offers",
            ":16: relations.offers.methods.by_isbn.request.path: String should match",
        ),
        ("{kind: json}", "{kind: xml}", ":17: relations.offers.methods.by_isbn.reply: Input tag 'xml'"),
        ("{kind: json}", "{rows: /a}", ":17: relations.offers.methods.by_isbn.reply: 'kind' is missing"),
        (
            "{kind: json}",
            "{kind: json, row: /a}",
            ":17: relations.offers.methods.by_isbn.reply.row: unknown field 'row'",
        ),
        (
            "batch_size: 10",
            "given: [price]",
            ":14: relations.offers.methods.by_isbn.given: 'price' is not always bound",
        ),
        ("fresh_for: 60", "given: [isbn]", "by_isbn.given: 'isbn' may be any of the batch"),
        ("  offers:", "  Offers:", ":7: relations.Offers: write 'Offers' in lower case"),
        ("sources:", "sources: [", "not YAML"),
        (GOOD, "", "expected 'sources' and 'relations' at the top"),
    ],
)
def test_what_is_wrong_is_told_with_its_line_and_the_fix(
    tmp_path: Path, right: str, wrong: str, said: str
) -> None:
    assert right in GOOD
    with pytest.raises(CatalogError) as caught:
        _load(tmp_path, GOOD.replace(right, wrong))
    assert said in str(caught.value)
    assert str(tmp_path / "shop.yaml") in str(caught.value)


def test_two_bind_fields_are_not_batched(tmp_path: Path) -> None:
    text = GOOD.replace("required: [isbn]", "required: [isbn, price]").replace(
        '"{isbn}"}', '"{isbn}", p: "{price}"}'
    )
    with pytest.raises(CatalogError, match="only a method with one bind-field takes several bindings"):
        _load(tmp_path, text)


def test_a_path_needs_fields_that_are_always_bound(tmp_path: Path) -> None:
    text = GOOD.replace("required: [isbn]", "any_of: [isbn, price]").replace(
        '/offers, query: {isbn: "{isbn}"}', '"/offers/{isbn}", query: {p: "{price}"}'
    )
    with pytest.raises(CatalogError, match=r"\{isbn\} is not always bound: move 'isbn' to 'required'"):
        _load(tmp_path, text)


def test_names_are_declared_once(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(GOOD)
    (tmp_path / "b.yaml").write_text(GOOD)
    with pytest.raises(
        CatalogError, match=r"b\.yaml:7: relations\.offers: relation 'offers' is declared twice"
    ):
        sources.load(tmp_path, {"shop": "https://shop.example"})
    (tmp_path / "b.yaml").write_text(GOOD.replace("rate: 5", "rate: 6"))
    with pytest.raises(CatalogError, match=r"b\.yaml:2: sources\.shop: source 'shop' is declared twice"):
        sources.load(tmp_path, {"shop": "https://shop.example"})


def test_an_empty_folder_and_a_missing_file_are_told(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match=r"no \*\.yaml file in this folder"):
        sources.load(tmp_path)
    with pytest.raises(CatalogError, match="no such file or folder"):
        sources.load(tmp_path / "none.yaml")
