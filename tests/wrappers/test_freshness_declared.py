"""How freshness and robots are declared, what is made of it, and what is wrong with it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import sources
from mediator.catalog.model import AccessMethod, Catalog
from mediator.errors import CatalogError
from sources.schema import json_schema

FOREVER = float("inf")

FILE = """
sources:
  shop: {base: "http://127.0.0.1:1", SOURCE}
relations:
  books:
    fields: {isbn: string}
    methods:
      all:
        mirrors: [shop]
        METHOD
        request: {path: /books}
        reply: {kind: KIND}
"""


def loaded(tmp_path: Path, method: str = "", source: str = "rate: 5", kind: str = "json") -> Catalog:
    text = FILE.replace("METHOD", method or "max_pages: 5").replace("SOURCE", source).replace("KIND", kind)
    file = tmp_path / "shop.yaml"
    file.write_text(text, encoding="utf-8")
    return sources.load(file)


def method_of(catalog: Catalog) -> AccessMethod:
    return catalog.relations["books"].method("all")


@pytest.mark.parametrize(
    ("said", "fresh_for", "unsaid"),
    [
        ("", FOREVER, None),
        ("fresh_for: 3600", 3600, None),
        ("fresh_for: 0.5", 0.5, None),
        ("fresh_for: site", FOREVER, 0),
        ("fresh_for: {}", FOREVER, 0),
        ("fresh_for: {most: 60}", 60, 0),
        ("fresh_for: {unsaid: 60}", FOREVER, 60),
        ("fresh_for: {most: 60, unsaid: 60}", 60, 60),
    ],
)
def test_what_a_declaration_makes_of_it(
    tmp_path: Path, said: str, fresh_for: float, unsaid: float | None
) -> None:
    method = method_of(loaded(tmp_path, said))
    assert (method.fresh_for, method.unsaid) == (fresh_for, unsaid)


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        ("fresh_for: sites", "Input should be 'site' (found 'sites')"),
        ("fresh_for: 0", "Input should be greater than 0 (found 0)"),
        ("fresh_for: -5", "Input should be greater than 0 (found -5)"),
        ("fresh_for: [5]", "Input should be a valid number (found [5])"),
        ("fresh_for: {most: 0}", "Input should be greater than 0 (found 0)"),
        ("fresh_for: {most: 5, unsaid: 6}", "unsaid is longer than most: write at most 5, or a larger most"),
        ("fresh_for: {most: 5, unsayd: 1}", "unknown field 'unsayd': did you mean 'unsaid'?"),
        ("fresh_for: {unsaid: -1}", "Input should be greater than or equal to 0 (found -1)"),
    ],
)
def test_what_is_wrong_with_it_is_told_with_its_line(tmp_path: Path, said: str, complaint: str) -> None:
    with pytest.raises(CatalogError) as caught:
        loaded(tmp_path, said)
    assert complaint in str(caught.value)
    assert "shop.yaml:10: relations.books.methods.all.fresh_for" in str(caught.value)


@pytest.mark.parametrize(
    ("source", "kind", "robots"),
    [
        ("rate: 5", "json", "ignore"),
        ("rate: 5", "ndjson", "ignore"),
        ("rate: 5", "csv", "ignore"),
        ("rate: 5", "html, table: //table", "obey"),
        ("robots: obey", "json", "obey"),
        ("robots: ignore", "html, table: //table", "ignore"),
        ("robots: obey", "html, table: //table", "obey"),
    ],
)
def test_web_pages_are_read_as_robots_txt_allows_and_apis_as_declared(
    tmp_path: Path, source: str, kind: str, robots: str
) -> None:
    assert loaded(tmp_path, source=source, kind=kind).sources["shop"].robots == robots


def test_a_source_is_one_visitor_in_all_files(tmp_path: Path) -> None:
    """Where one file reads its web pages, the API in another file is read by the same rules."""
    (tmp_path / "api.yaml").write_text(
        FILE.replace("SOURCE", "rate: 5").replace("METHOD", "").replace("KIND", "json")
    )
    pages = FILE.replace("books:", "loans:").replace("KIND", "html, table: //table").replace("METHOD", "")
    (tmp_path / "pages.yaml").write_text("relations:" + pages.split("relations:")[1])
    assert sources.load(tmp_path).sources["shop"].robots == "obey"
    assert sources.load(tmp_path / "api.yaml").sources["shop"].robots == "ignore"


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ("robots: maybe", "Input should be 'obey' or 'ignore' (found 'maybe')"),
        ("robot: obey", "unknown field 'robot': did you mean 'robots'?"),
    ],
)
def test_what_is_wrong_with_a_policy(tmp_path: Path, source: str, complaint: str) -> None:
    with pytest.raises(CatalogError) as caught:
        loaded(tmp_path, source=source)
    assert complaint in str(caught.value)


def test_a_database_has_no_robots(tmp_path: Path) -> None:
    file = tmp_path / "db.yaml"
    file.write_text(
        'sources: {db: {base: "sqlite:///x.db", robots: obey}}\n'
        "relations: {t: {fields: {a: string}, database: {source: db, table: t}}}\n"
    )
    with pytest.raises(CatalogError, match=r"a database has no robots\.txt: remove it"):
        sources.load(file)


def test_editors_are_told_all_forms() -> None:
    schema = json_schema()
    json.dumps(schema, allow_nan=False)
    method = schema["$defs"]["MethodSpec"]["properties"]["fresh_for"]
    forms = method.get("oneOf") or method["anyOf"]
    assert {"const": "site", "type": "string"} in forms
    assert {"exclusiveMinimum": 0, "type": "number"} in forms
    assert {"$ref": "#/$defs/SiteFreshness"} in forms
