"""Declarations from YAML: the right ones become a catalog, the wrong ones are told with line and fix."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import sources
from mediator.catalog.model import Mirror, Source
from mediator.errors import CatalogError
from sources.schema import json_schema

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
        (
            "{kind: json}",
            "{kind: html, table: //table, tabel: x}",
            ":17: relations.offers.methods.by_isbn.reply.tabel: unknown field 'tabel': did you mean 'table'?",
        ),
        ("{kind: json}", "{kind: html, table: '//b['}", ".reply.table: '//b[' is not an XPath"),
        (
            "{kind: json}",
            "{kind: html, rows: '#b'}",
            ".reply.rows: '#b' is not an XPath: write css:#b if it is CSS",
        ),
        ("{kind: json}", "{kind: html, rows: 'css:li..b'}", ".reply.rows: 'li..b' is not a CSS selector"),
        ("rate: 5", "colour: red", "remove it, or use one of: base, rate, concurrency, deadline, attempts"),
        ("${shop}/api", "", ":3: sources.shop.base: 'base' is empty: give it a value, or remove it"),
        (
            "rate: 5",
            "rate: 5\n    rate: 6",
            ":5: sources.shop.rate: 'rate' stands twice, first in line 4: remove one",
        ),
        ("isbn: string", "no: string", ":9: relations.offers.fields.no: YAML does not read no as a text"),
        ("mirrors: [shop]", "mirrors: shop", ":12: relations.offers.methods.by_isbn.mirrors:"),
        ("mirrors: [shop]", "mirrors: shop", "(found 'shop'): write it as a list, [shop]"),
        ('"{isbn}"', "{isbn}", """(found {'isbn': None}): put it in quotes, "{isbn}\""""),
        ('"{isbn}"', "1", """(found 1): put it in quotes, "1\""""),
        ("/offers,", "/offers/{isbn},", ":16: not YAML: while parsing a flow mapping"),
        ("/offers", "&a [*a]", "too large or too deep: write it without aliases"),
        (
            "reply:",
            "pages: {size: 5}\n        reply:",
            ".pages: give one of param (page numbers), offset",
        ),
        (
            "reply:",
            "pages: {offset: o, limit: l, sise: 5}\n        reply:",
            ":17: relations.offers.methods.by_isbn.pages.sise: unknown field 'sise': did you mean 'size'?",
        ),
        (
            "reply:",
            "pages: {offset: o, size: 0}\n        reply:",
            ":17: relations.offers.methods.by_isbn.pages.size: ",
        ),
        (
            "reply:",
            "pages: {cursor: /c, param: isbn}\n        reply:",
            ".pages.param: 'isbn' is in the request already: take it out of there",
        ),
        (
            "reply:",
            "pages: {param: p, place: json}\n        reply:",
            ".pages.place: the request has no json: add it to 'request', or leave out place",
        ),
        (
            "{kind: json}",
            "{kind: csv}\n        pages: {next: /n}",
            ".pages.next: a reply of kind csv has only rows",
        ),
        (
            "reply:",
            "errors:\n          - {status: 404, means: emty}\n        reply:",
            ":18: relations.offers.methods.by_isbn.errors.0.means: Input should be 'retry', 'empty', 'fail' or",
        ),
        (
            "reply:",
            "errors: [{means: fail}]\n        reply:",
            ".errors.0: this applies to every reply: give status",
        ),
        (
            "{kind: json}",
            "{kind: html, table: //b}\n        errors: [{at: '//b[', means: fail}]",
            ".errors.0.at: '//b[' is not an XPath",
        ),
        ("sources:", "sources: [", "not YAML"),
        ("sources:", "sources: \x00", "not YAML"),
        ("rate: 5", "rate: 5\n\tb: 6", ":5: not YAML"),
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


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_bytes(b"sources: \xff")
    with pytest.raises(CatalogError, match="not UTF-8: save it in that encoding"):
        sources.load(tmp_path)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "c.yaml").mkdir()
    with pytest.raises(CatalogError, match="cannot be read: Is a directory"):
        sources.load(tmp_path / "b")


def test_everything_a_method_can_say_is_loaded(tmp_path: Path) -> None:
    text = GOOD.replace(
        '        request: {path: /offers, query: {isbn: "{isbn}"}}\n        reply: {kind: json}\n',
        """        request:
          path: /offers
          json: {isbn: {any_of: "{isbn}"}, page: {}}
          headers: {Accept: application/json}
          join: list
        pages: {offset: /page/offset, limit: /page/limit, size: 50, total: /total, place: json}
        errors:
          - {status: 403, says: quota, means: rate_limited, after: 60}
          - {at: /error/code, says: "^gone$", means: empty}
        reply: {kind: ndjson, fields: {price: /price/amount}}
""",
    )
    assert "join: list" in text
    (tmp_path / "shop.yaml").write_text(text)
    (method,) = sources.load(tmp_path, {"shop": "https://shop.example"}).relations["offers"].methods
    assert method.wrapper is not None
    request = method.wrapper.request(("isbn",), [("1",), ("2",)])
    assert request.body == b'{"isbn":{"any_of":["1","2"]},"page":{"offset":0,"limit":50}}'


def test_the_schema_accepts_what_the_loader_does() -> None:
    """Every declaration that is built in, checked field by field by the rules that editors use."""
    schema = json_schema()
    assert schema["$schema"].endswith("2020-12/schema")
    json.dumps(schema)
    files = list(Path(sources.__file__).parent.glob("*/*.yaml"))
    assert len(files) >= 10
    for file in files:
        assert list(_against(schema, yaml.safe_load(file.read_text()), schema["$defs"])) == []


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("float64", "float"),
        ("rate: 5", "rat: 5"),
        ("rate: 5", "rate: fast"),
        ("${shop}", "shop"),
        ("kind: json", "kind: xml"),
        ("path: /offers", "path: offers"),
        ("mirrors: [shop]", "mirrors: shop"),
        ("        mirrors: [shop]\n", ""),
    ],
)
def test_the_schema_refuses_what_the_loader_does(right: str, wrong: str) -> None:
    schema = json_schema()
    assert list(_against(schema, yaml.safe_load(GOOD), schema["$defs"])) == []
    assert list(_against(schema, yaml.safe_load(GOOD.replace(right, wrong)), schema["$defs"])) != []


def _against(part: Any, value: Any, defs: dict[str, Any]) -> Iterator[str]:
    """What an editor would underline: as much of JSON Schema as these declarations use."""
    if "$ref" in part:
        yield from _against(defs[part["$ref"].rsplit("/", 1)[-1]], value, defs)
    for union in ("anyOf", "oneOf"):
        if union in part and all(list(_against(choice, value, defs)) for choice in part[union]):
            yield f"{value!r} is none of them"
    types: dict[str, Any] = {
        "object": dict,
        "array": list,
        "string": str,
        "boolean": bool,
        "null": type(None),
    }
    types |= {"integer": int, "number": (int, float)}
    if "type" in part and not isinstance(value, types[part["type"]]):
        yield f"{value!r} is no {part['type']}"
        return
    if value not in part.get("enum", [value]) or value != part.get("const", value):
        yield f"{value!r} is not allowed"
    if isinstance(value, str) and not re.search(part.get("pattern", ""), value):
        yield f"{value!r} is written otherwise"
    if isinstance(value, list):
        for item in value:
            yield from _against(part.get("items", {}), item, defs)
    if isinstance(value, dict):
        fields = part.get("properties", {})
        yield from (f"{name!r} is missing" for name in part.get("required", ()) if name not in value)
        for name, item in value.items():
            rest = part.get("additionalProperties", {})
            if name not in fields and rest is False:
                yield f"{name!r} is unknown"
            yield from _against(fields.get(name, rest or {}), item, defs)
