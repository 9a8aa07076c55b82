"""What becomes of single things that a document may say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sources.openapi import Draft, drafted, read, written
from sources.openapi.words import one_line, singular, snake
from tests.openapi.test_hostile_documents import check_loads, document, lookup, rows

BOOK = {"isbn": {"type": "string"}, "price": {"type": "number"}, "author_id": {"type": "integer"}}


def draft(paths: dict[str, Any], **more: Any) -> Draft:
    return drafted(read("spec", document(paths, **more)), "shop")


def relations(paths: dict[str, Any], folder: Path, **more: Any) -> dict[str, Any]:
    found = draft(paths, **more)
    check_loads(found, folder)
    return dict(found.content["relations"])


def query(name: str, type_: str = "string", **more: Any) -> dict[str, Any]:
    return {"name": name, "in": "query", "schema": {"type": type_}, **more}


def path(name: str, type_: str = "string", **more: Any) -> dict[str, Any]:
    return {**query(name, type_, **more), "in": "path", "required": True}


ONE = {"type": "object", "properties": BOOK}


def test_the_same_rows_in_another_place_are_another_relation(tmp_path: Path) -> None:
    found = relations(
        {
            "/v1/books": lookup(rows(**BOOK)),
            "/v1/archive/books": lookup(rows(**BOOK)),
            "/v1/archive/books/{isbn}": lookup(ONE),
            "/v1/books/bestsellers": lookup(rows(**BOOK)),
            "/v1/books/{isbn}": lookup(ONE),
            "/v1/authors/{author_id}/books": lookup(rows(**BOOK)),
            "/v1/shops/{shop_id}/books": lookup(rows(**BOOK)),
        },
        tmp_path,
    )
    assert {name: list(relation["methods"]) for name, relation in found.items()} == {
        "books": ["all", "by_isbn", "by_author_id"],
        "archive_books": ["all", "by_isbn"],
        "bestsellers": ["all"],
        "shops_books": ["by_shop_id"],
    }


def test_filters_with_bounds_are_bind_fields_with_operators(tmp_path: Path) -> None:
    parameters = [
        query("min_price", "number"),
        query("price_lte", "number"),
        query("min_isbn"),
        query("max_tax", "number"),
    ]
    (books,) = relations({"/books": lookup(rows(**BOOK), parameters=parameters)}, tmp_path).values()
    way = books["methods"]["all"]
    assert way["optional"] == ["price>=", "price<="]
    assert way["request"]["query"] == {"min_price": "{price>=}", "price_lte": "{price<=}"}


def test_examples_of_the_right_type_are_kept(tmp_path: Path) -> None:
    found = relations(
        {
            "/books/{isbn}": lookup(ONE, parameters=[path("isbn", example="978")]),
            "/authors/{author_id}/books": lookup(
                rows(**BOOK), parameters=[path("author_id", "integer", example="x")]
            ),
        },
        tmp_path,
    )["books"]["methods"]
    assert found["by_isbn"]["examples"] == [{"isbn": "978"}]
    assert "examples" not in found["by_author_id"]


def test_several_at_once_go_before_one_at_a_time(tmp_path: Path) -> None:
    isbns = {
        **query("isbns", required=True),
        "schema": {"type": "array", "items": {"type": "string"}, "maxItems": 7},
    }
    (books,) = relations(
        {"/books/{isbn}": lookup(ONE), "/books": lookup(rows(**BOOK), parameters=[isbns])}, tmp_path
    ).values()
    assert books["key"] == ["isbn"]
    assert list(books["methods"]) == ["by_isbn"]
    assert books["methods"]["by_isbn"]["batch_size"] == 7


@pytest.mark.parametrize(
    ("parameter", "sent"),
    [
        (query("format", required=True, schema={"default": "full", "type": "string"}), {"format": "full"}),
        (query("v", required=True, schema={"enum": [2]}), {"v": "2"}),
        (query("flat", required=True, schema={"const": True}), {"flat": "true"}),
    ],
)
def test_what_must_be_given_and_is_always_the_same(
    parameter: dict[str, Any], sent: dict[str, str], tmp_path: Path
) -> None:
    (books,) = relations({"/books": lookup(rows(**BOOK), parameters=[parameter])}, tmp_path).values()
    assert books["methods"]["all"]["request"]["query"] == sent


def test_what_must_be_given_and_is_in_no_row_is_a_field_of_its_own(tmp_path: Path) -> None:
    (found,) = relations(
        {"/books/search": lookup(rows(**BOOK), parameters=[query("q", required=True)])}, tmp_path
    ).values()
    assert next(iter(found["fields"])) == "q"
    assert (found["methods"]["by_q"]["required"], found["methods"]["by_q"]["given"]) == (["q"], ["q"])


def test_of_many_filters_only_some_are_bind_fields(tmp_path: Path) -> None:
    names = [f"f{n}" for n in range(9)]
    fields = {name: {"type": "string"} for name in names}
    found = draft({"/books": lookup(rows(**fields), parameters=[query(n) for n in names])})
    assert found.content["relations"]["books"]["methods"]["all"]["optional"] == names[:4]
    assert "takes also f4, f5, f6, f7, f8" in found.notes["relations", "books", "methods", "all"]


@pytest.mark.parametrize(
    "text", ["At least one filter is needed.", "Give exactly one.", "One of the following:"]
)
def test_one_of_several(text: str, tmp_path: Path) -> None:
    operation = lookup(
        rows(**BOOK), parameters=[query("isbn"), query("author_id", "integer")], description=text
    )
    (books,) = relations({"/books": operation}, tmp_path).values()
    assert books["methods"]["by_isbn_or_author_id"]["any_of"] == ["isbn", "author_id"]


PAGE = {"type": "integer"}


@pytest.mark.parametrize(
    ("parameters", "beside", "pages"),
    [
        ([query("page", "integer")], {}, {"param": "page"}),
        (
            [query("page", "integer", schema={"type": "integer", "default": 0})],
            {},
            {"param": "page", "first": 0},
        ),
        (
            [query("pageNumber", "integer")],
            {"totalPages": PAGE},
            {"param": "pageNumber", "total": "/totalPages"},
        ),
        ([query("offset", "integer")], {"total": PAGE}, {"offset": "offset", "total": "/total"}),
        ([query("offset", "integer")], {"count": PAGE}, {"offset": "offset"}),
        (
            [query("skip", "integer"), query("top", "integer")],
            {},
            {"offset": "skip", "limit": "top", "size": 100},
        ),
        (
            [query("cursor")],
            {"meta": {"properties": {"nextCursor": {"type": "string"}}}},
            {"cursor": "/meta/nextCursor", "param": "cursor"},
        ),
        ([query("page", "integer")], {"next": {"type": "string"}}, {"next": "/next"}),
        ([], {"links": {"properties": {"next": {"type": "string"}}}}, {"next": "/links/next"}),
        ([query("limit", "integer")], {}, None),
        ([query("start", schema={"type": "string", "format": "date"})], {}, None),
        (
            [query("page"), query("after")],
            {"after": {"type": "string"}},
            {"cursor": "/after", "param": "after"},
        ),
        ([query("cursor")], {}, None),
        ([], {"next": {"type": "object", "properties": {"a": {"type": "string"}}}}, None),
    ],
)
def test_pages(
    parameters: list[Any], beside: dict[str, Any], pages: dict[str, Any] | None, tmp_path: Path
) -> None:
    reply = {"type": "object", "properties": {"data": rows(**BOOK), **beside}}
    (books,) = relations({"/books": lookup(reply, parameters=parameters)}, tmp_path).values()
    assert books["methods"]["all"].get("pages") == pages


def test_a_search_with_pages_in_two_places(tmp_path: Path) -> None:
    body = {
        "type": "object",
        "properties": {"isbn": {"type": "string"}, "size": {"type": "integer", "maximum": 50.0}},
    }
    search = {
        "post": {
            **lookup({"type": "object", "properties": {"items": rows(**BOOK), "pages": PAGE}})["get"],
            "parameters": [query("page", "integer")],
            "requestBody": {"content": {"application/json": {"schema": body}}},
        }
    }
    (books,) = relations({"/books/search": search}, tmp_path).values()
    way = books["methods"]["all"]
    assert way["request"] == {"path": "/books/search", "json": {"isbn": "{isbn}", "size": 50}}
    assert way["pages"] == {"param": "page", "total": "/pages"}


def test_a_search_that_brings_what_a_list_brings_is_not_drafted_twice() -> None:
    found = draft({"/books": lookup(rows(**BOOK)), "/books/all": lookup(rows(**BOOK))})
    assert list(found.content["relations"]["books"]["methods"]) == ["all"]
    assert found.skipped[0].why == "it asks for books as another operation does"


def test_a_limit_without_pages_is_told() -> None:
    found = draft({"/books": lookup(rows(**BOOK), parameters=[query("limit", "integer")])})
    assert (
        "there may be further pages, and how they are asked for is not clear"
        in found.notes["relations", "books", "methods", "all"]
    )


@pytest.mark.parametrize(
    ("scheme", "auth"),
    [
        (
            {"type": "apiKey", "in": "header", "name": "X-Key"},
            {"kind": "key", "header": "X-Key", "key_env": "SHOP_API_KEY"},
        ),
        (
            {"type": "apiKey", "in": "query", "name": "key"},
            {"kind": "key", "query": "key", "key_env": "SHOP_API_KEY"},
        ),
        ({"type": "http", "scheme": "Bearer"}, {"kind": "bearer", "token_env": "SHOP_TOKEN"}),
        ({"type": "oauth2", "flows": {"implicit": {}}}, {"kind": "bearer", "token_env": "SHOP_TOKEN"}),
        ({"type": "apiKey", "in": "cookie", "name": "s"}, None),
        ({"type": "mutualTLS"}, None),
        ({"type": "apiKey", "in": "header", "name": "X Key\r\n"}, None),
        (7, None),
    ],
)
def test_logins(scheme: Any, auth: dict[str, str] | None, tmp_path: Path) -> None:
    found = draft(
        {"/books": lookup(rows(**BOOK))},
        servers=[{"url": "https://shop.example"}],
        components={"securitySchemes": {"one": scheme}},
    )
    check_loads(found, tmp_path)
    assert found.content["sources"]["shop"].get("auth") == auth
    if auth is None:
        assert any("login" in note for notes in found.notes.values() for note in notes)


def test_a_login_is_not_shown_on_an_open_road(tmp_path: Path) -> None:
    found = draft(
        {"/books": lookup(rows(**BOOK))},
        servers=[{"url": "http://shop.example"}],
        components={"securitySchemes": {"one": {"type": "http", "scheme": "bearer"}}},
    )
    assert found.content["sources"] == {"shop": {"base": "http://shop.example"}}
    assert "write https" in found.notes["sources", "shop"][0]


@pytest.mark.parametrize(
    ("url", "base"),
    [
        ("https://a.example/x/", "https://a.example/x"),
        ("https://{h}.example", "https://site.example"),
        ("https://me:secret@a.example", "https://site.example"),
        ("//a.example", "https://site.example"),
        ("/v2", "https://site.example/v2"),
        ("javascript:alert(1)", "https://site.example"),
        ("https://a.example/?x=1", "https://site.example"),
        ("https://a.example:99999", "https://site.example"),
        ("https://[", "https://site.example"),
        ("https://a.example/${HOME}", "https://site.example"),
        (7, "https://site.example"),
    ],
)
def test_addresses(url: Any, base: str, tmp_path: Path) -> None:
    found = draft({"/books": lookup(rows(**BOOK))}, servers=[{"url": url}])
    check_loads(found, tmp_path)
    assert found.content["sources"]["shop"]["base"] == base
    assert ("sources", "shop", "base") in found.notes or base != "https://site.example"


@pytest.mark.timeout(60)
def test_a_server_for_each_of_thousands_of_operations() -> None:
    paths = {
        f"/things{n}": lookup(rows(id={"type": "string"}), servers=[{"url": f"https://s{n}.example"}])
        for n in range(3_000)
    }
    found = draft(paths)
    assert len(found.content["sources"]) == len(found.content["relations"]) > 1_000


def test_names() -> None:
    names = {
        "bookId": "book_id",
        "HTTPServer": "http_server",
        "x-foo.bar": "x_foo_bar",
        "1st": "n1st",
        "☃": "",
        "ÄÖ": "äö",
    }
    assert {name: snake(name) for name in names} == names
    assert [singular(w) for w in ("books", "categories", "boxes", "status", "address", "branches", "bus", "as")] == [
        "book", "category", "box", "status", "address", "branch", "bus", "as",
    ]  # fmt: skip
    assert one_line("a\n\tb\x07 c" + "d" * 200, 20) == "a b c" + "d" * 12 + "..."


def test_a_property_that_leads_out_of_the_document_is_left_out(tmp_path: Path) -> None:
    reply = {"type": "object", "properties": {**BOOK, "far": {"$ref": "https://else.example/x"}}}
    found = draft({"/books/{isbn}": lookup(reply)})
    check_loads(found, tmp_path)
    assert list(found.content["relations"]["books"]["fields"]) == list(BOOK)
    assert "far ($ref 'https://else.example/x'" in found.notes["relations", "books", "fields"][0]


def test_a_draft_is_the_same_each_time(tmp_path: Path) -> None:
    text = (Path(__file__).parent / "documents" / "typed_shop.json").read_bytes()
    assert written(drafted(read("a", text), "shop")) == written(
        drafted(read("a", json.dumps(json.loads(text)).encode()), "shop")
    )
