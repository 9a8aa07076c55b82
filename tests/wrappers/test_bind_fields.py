"""Bind-fields with operators and promises about rows, as they are declared: what is meant, and what is told by line."""

from __future__ import annotations

from pathlib import Path

import pytest

import sources
from api.listing import listed
from mediator.errors import CatalogError
from wrappers import Template

SHOP = """\
sources:
  shop: {base: "https://shop.example"}
relations:
  offers:
    fields: {isbn: string, price: float64, used: bool, since: date}
    methods:
      search:
        mirrors: [shop]
        required: [isbn]
        optional: [price<=, since>, isbn^=]
        request:
          path: /offers/{isbn}
          query: {max: "{price<=}", after: "{since>}", starts: "{isbn^=}*"}
        exact: true
        at_most: 50
        order: [-price, isbn]
        reply: {kind: json}
"""

WRONG = [
    ("[price<=, ", "[price=<, ", ":10", "optional: unknown operator '=<': use one of <, <=, >, >=, ^=, or"),
    ("[price<=, ", "[price!=, ", ":10", "optional: unknown operator '!='"),
    ("[price<=, ", "[price=, ", ":10", "optional: unknown operator '=': use one of <, <=, >, >=, ^=, or"),
    ("[price<=, ", "[prize<=, ", ":10", "optional: unknown field 'prize': did you mean 'price'?"),
    ("[price<=, ", "[price <=, ", ":10", "optional: 'price <=' has a space in it: write 'price<='"),
    ("[price<=, ", "[price^=, ", ":10", "optional: only a text starts with another: 'price^=' is bound to a double"),
    ("[price<=, ", "[used<=, ", ":10", "optional: truth values have no order: 'used<=' takes none of"),
    ("required: [isbn]", "required: [isbn, used>]", ":9", "required: truth values have no order"),
    ("[price<=, since>, isbn^=]", '{price: ["<=", ">="]}', ":10", "write it as a list, [price<=, price>=]"),
    ('max: "{price<=}", ', "", ":11", "request: bind-field 'price<=' is never sent: write {price<=} where it goes"),
    ('"{price<=}"', '"{price>=}"', ":11", "request: unknown bind-field 'price>=': did you mean 'price<='?"),
    ('"{price<=}"', '"{price}"', ":11", "request: unknown bind-field 'price'"),
    ("/offers/{isbn}", "/offers/{isbn}/{since>}", ":12", "path: {since>} is not always bound: move"),
    ("exact: true", "exact: false\n        given: [isbn]", ":14", "exact: rows of another 'isbn' would not be noticed"),
    ("exact: true", "exact: mostly", ":14", "exact: Input should be a valid boolean"),
    ("exact: true", "given: [price]", ":14", "given: 'price' is not always bound"),
    ("exact: true", "given: [price<=]", ":14", "given: unknown field 'price<='"),
    ("exact: true", "proves: most", ":14", "proves: Input should be 'all' or 'some' (found 'most')"),
    ("at_most: 50", "at_most: 0", ":15", "at_most: Input should be greater than 0"),
    ("at_most: 50", "batch_size: 5", ":15", "batch_size: 'price<=' is bound to one value at a time"),
    ("[-price, isbn]", "[-prize, isbn]", ":16", "order.0: unknown field 'prize': did you mean 'price'?"),
    ("[-price, isbn]", "[-price, price]", ":16", "order.1: 'price' stands twice: remove one of them"),
    ("[-price, isbn]", "-price", ":16", "order: Input should be a valid tuple (found '-price'): write"),
]  # fmt: skip


def _load(folder: Path, text: str) -> None:
    (folder / "shop.yaml").write_text(text)
    sources.load(folder / "shop.yaml")


@pytest.mark.parametrize(("there", "instead", "line", "told"), WRONG, ids=[w[1][:40] for w in WRONG])
def test_what_is_wrong_is_told_with_its_line_and_the_fix(
    there: str, instead: str, line: str, told: str, tmp_path: Path
) -> None:
    assert SHOP.count(there) == 1
    with pytest.raises(CatalogError) as caught:
        _load(tmp_path, SHOP.replace(there, instead))
    assert f"shop.yaml{line}: relations.offers.methods.search" in str(caught.value)
    assert told in str(caught.value)


@pytest.mark.parametrize("part", ["at_most: 50", "order: [-price, isbn]"])
def test_what_is_said_of_one_lookup_is_not_said_of_a_batch(part: str, tmp_path: Path) -> None:
    text = SHOP.replace("        optional: [price<=, since>, isbn^=]\n", "        batch_size: 5\n")
    text = text.replace('          query: {max: "{price<=}", after: "{since>}", starts: "{isbn^=}*"}\n', "")
    for other in ("at_most: 50", "order: [-price, isbn]"):
        if other != part:
            text = text.replace(f"        {other}\n", "")
    with pytest.raises(
        CatalogError, match=f"{part.split(':')[0]}: it is said of one lookup: leave it out, or batch_size"
    ):
        _load(tmp_path, text)


def test_a_field_that_ends_like_an_operator_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        CatalogError, match="a field whose name ends in an operator, 'used<': call it otherwise"
    ):
        _load(tmp_path, SHOP.replace("used: bool", '"used<": bool'))


def test_the_declaration_is_what_the_engine_gets(tmp_path: Path) -> None:
    (tmp_path / "shop.yaml").write_text(SHOP)
    catalog = sources.load(tmp_path)
    (method,) = catalog.relations["offers"].methods
    assert (method.required, method.optional) == (("isbn",), ("price<=", "since>", "isbn^="))
    assert (method.exact, method.proves, method.at_most) == (True, "all", 50)
    assert method.order == ("-price", "isbn")
    shown = "\n".join(line.plain for line in listed(catalog))
    assert (
        "needs isbn; takes price <= ..., since > ..., isbn starts with ... if known; "
        "50 rows at most; in the order -price, isbn"
    ) in shown


def test_a_bound_is_sent_where_its_place_is() -> None:
    template = Template.model_validate(
        {
            "path": "/year/{year>=}",
            "query": {"to": "{year<=}", "q": "{title^=}*"},
            "headers": {"X-Max": "{price<}"},
        }
    )
    assert template.placeholders() == {"year>=", "year<=", "title^=", "price<"}
    assert template.path_placeholders() == {"year>="}
    request = template.request(("title^=", "year>="), [("Dú & Co", 1990)])
    assert (request.path, request.query, request.headers) == ("/year/1990", (("q", "Dú & Co*"),), ())


def test_a_bound_in_json_keeps_its_type() -> None:
    template = Template.model_validate(
        {"path": "/", "json": {"range": {"gte": "{year>=}", "lt": "{year<}"}, "all": True}}
    )
    request = template.request(("year>=",), [(1990,)])
    assert request.body == b'{"range":{"gte":1990},"all":true}'
