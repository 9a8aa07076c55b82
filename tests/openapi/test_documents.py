"""A dozen documents, clean and ugly: the draft of each loads, and `mediator sources` lists it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

import sources
from mediator.catalog.model import Catalog
from sources.openapi import drafted, read, written
from tests.cli.kit import called

FOLDER = Path(__file__).parent / "documents"
DOCUMENTS = sorted(FOLDER.iterdir())


def draft_of(name: str) -> dict[str, Any]:
    return drafted(read(name, (FOLDER / name).read_bytes()), "site").content


def loaded(name: str, folder: Path) -> Catalog:
    file = folder / "draft.yaml"
    file.write_text(written(drafted(read(name, (FOLDER / name).read_bytes()), "site")))
    return sources.load(file)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda d: d.name)
def test_a_draft_loads_and_is_listed(document: Path, tmp_path: Path) -> None:
    file = tmp_path / "draft.yaml"
    result = called("wrapper", "new", "site", "--openapi", str(document), "--output", str(file))
    assert result.exit_code == 0, result.stderr
    assert f"{file} is written." in result.stderr
    listed = called("sources", "--catalog", str(file))
    assert listed.exit_code == 0, listed.stderr
    content = yaml.safe_load(file.read_text())
    assert content == drafted(read("x", document.read_bytes()), "site").content
    for name, relation in content["relations"].items():
        assert name in {line.split("   ")[0] for line in listed.stdout.splitlines()}
        for method, said in relation["methods"].items():
            assert (
                f"index {method}: needs" if said.keys() & {"required", "any_of"} else f"scan {method}"
            ) in listed.stdout


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda d: d.name)
def test_every_drafted_method_writes_a_request(document: Path, tmp_path: Path) -> None:
    for relation in loaded(document.name, tmp_path).relations.values():
        for method in relation.methods:
            assert method.wrapper is not None
            for bind_set in method.bind_sets():
                request = method.wrapper.request(bind_set, [tuple("7" for _ in bind_set)])
                assert request.path.isascii()
                assert "{" not in request.path + repr(request.query)


def test_there_are_a_dozen() -> None:
    assert len(DOCUMENTS) >= 12
    assert sum(path.suffix == ".json" for path in DOCUMENTS) >= 3


def test_typed_documents_need_little_more(tmp_path: Path) -> None:
    content = draft_of("typed_shop.json")
    assert {name: list(r["methods"]) for name, r in content["relations"].items()} == {
        "books": ["all", "by_isbn", "by_author_id"],
        "authors": ["by_id"],
        "books_reviews": ["by_isbn"],
        "books_search_best": ["by_q"],
    }
    books = content["relations"]["books"]
    assert books["key"] == ["isbn"]
    assert books["fields"] == {
        "isbn": "string",
        "title": "string",
        "year": "int64",
        "author_id": "int64",
        "published": "date",
        "seen": "timestamp",
        "price_amount": "float64",
        "price_currency": "string",
    }
    scan, one, of_author = books["methods"].values()
    assert scan["optional"] == ["author_id"]
    assert scan["pages"] == {"param": "page", "total": "/pages"}
    assert scan["reply"]["rows"] == "/items"
    assert scan["request"]["query"] == {"author_id": "{author_id}", "per_page": "100"}
    assert scan["reply"]["optional"] == ["year", "published", "price_amount", "price_currency"]
    assert one["empty"] == [404]
    assert of_author["request"] == {"path": "/authors/{author_id}/books"}
    reviews = content["relations"]["books_reviews"]["methods"]["by_isbn"]
    assert reviews["given"] == ["isbn"]
    assert reviews["pages"] == {"offset": "offset", "limit": "limit", "size": 40}
    authors = content["relations"]["authors"]["methods"]["by_id"]
    assert (authors["batch_size"], authors["request"]["join"]) == (50, "repeat")


def test_swagger_two() -> None:
    content = draft_of("zoo_swagger2.yaml")
    assert content["sources"]["site"] == {
        "base": "https://zoo.example/v2",
        "auth": {"kind": "basic", "user_env": "SITE_USER", "password_env": "SITE_PASSWORD"},
    }
    (animals,) = content["relations"].values()
    assert list(animals["methods"]) == ["by_name", "all", "by_id", "by_species"]
    assert animals["methods"]["by_name"]["batch_size"] == 30
    assert animals["methods"]["by_name"]["request"]["join"] == "|"
    assert animals["fields"]["mother_id"] == "int32"
    assert "mother_name" not in animals["fields"]
    search = animals["methods"]["by_species"]
    assert search["request"]["json"]["species"] == "{species}"
    assert search["pages"]["place"] == "json"
    assert search["reply"]["rows"] == "/animals"


def test_envelopes_and_links() -> None:
    orders = draft_of("hal.yaml")["relations"]["orders"]["methods"]
    assert orders["all"]["reply"]["rows"] == "/_embedded/orders"
    assert orders["all"]["pages"] == {"next": "/_links/next/href"}
    assert "rows" not in orders["by_id"]["reply"]
    lines = draft_of("hal.yaml")["relations"]["orders_lines"]
    assert lines["fields"] == {"order_id": "string", "sku": "string", "quantity": "int32"}
    articles = draft_of("jsonapi.json")["relations"]["articles"]
    assert articles["methods"]["all"]["pages"] == {"param": "page[number]", "total": "/meta/totalPages"}
    assert articles["methods"]["by_id"]["reply"]["rows"] == "/data"
    assert articles["fields"]["word_count"] == "int64"


def test_servers_with_variables() -> None:
    assert draft_of("hal.yaml")["sources"] == {
        "site": {
            "base": "https://eu.orders.example:8443/api",
            "auth": {"kind": "bearer", "token_env": "SITE_TOKEN"},
        }
    }
    assert draft_of("jsonapi.json")["sources"]["site"]["base"] == "https://site.example/jsonapi"


def test_cursors_keys_and_one_of_several() -> None:
    content = draft_of("cursors.yaml")
    assert content["sources"]["site"]["auth"] == {
        "kind": "key",
        "query": "api_key",
        "key_env": "SITE_API_KEY",
    }
    events = content["relations"]["events"]["methods"]["by_kind_or_room"]
    assert events["any_of"] == ["kind", "room"]
    assert events["pages"] == {"cursor": "/next_cursor", "param": "starting_after", "more": "/has_more"}
    assert events["request"]["headers"] == {"X-Version": "2024-01-01"}
    assert "api_key" not in json.dumps(content["relations"])


def test_tokens_for_clients_and_a_search_by_post() -> None:
    content = draft_of("client_credentials.yaml")
    assert content["sources"]["site"]["auth"]["token_url"] == "https://flights.example/token"
    offers = content["relations"]["offers"]["methods"]["by_origin"]
    assert offers["request"]["json"] == {
        "origin": "{origin}",
        "destination": "{destination}",
        "currency": "EUR",
        "nonStop": "{non_stop}",
        "size": 250,
    }
    assert offers["pages"] == {"param": "/page", "place": "json"}
    assert content["relations"]["airports"]["methods"]["by_code"]["batch_size"] == 10
    assert content["relations"]["airports_2"]["methods"]["by_code"]["mirrors"] == ["site_2"]


def test_cycles_are_followed_once() -> None:
    content = draft_of("cycles.yaml")["relations"]
    assert content["nodes"]["fields"] == {"node_id": "int64", "parent_node_id": "int64", "label": "string"}
    assert content["shapes"]["methods"]["all"]["reply"]["optional"] == ["side", "tag", "radius"]


def test_rows_of_something_else_are_another_relation() -> None:
    content = draft_of("github_like.json")["relations"]
    assert list(content) == ["orgs_repos", "repos_by_owner_and_repo", "repos_issues", "search_repositories"]
    assert content["orgs_repos"]["methods"]["by_org"]["pages"] == {"rel": "next"}
    assert content["repos_by_owner_and_repo"]["key"] == ["owner", "repo"]
    assert content["repos_issues"]["methods"]["by_owner_and_repo"]["pages"] == {"param": "page"}


def test_what_cannot_be_used_is_told_with_its_reason() -> None:
    text = written(drafted(read("ugly.yaml", (FOLDER / "ugly.yaml").read_bytes()), "site"))
    for said in (
        "GET /remote: $ref 'https://evil.example/schema.json' is outside the document, and is not fetched",
        "GET /file: $ref 'file:///etc/passwd' is outside the document, and is not fetched",
        "GET /nowhere: $ref '#/components/schemas/None' leads nowhere",
        "GET /scalars: its rows are no objects with properties",
        "GET /csv: its reply is text/csv, not JSON",
        "GET /nothing: it has no reply with rows",
        "GET /cookie: its cookie 'session' has to be given",
        "GET /deep: 'where' has to be given, and is no simple value",
        "GET /two: it has 2 lists, and nothing says which has the rows",
        "check: this is a private address",
        "check: left out: size (of several types)",
    ):
        assert said in text
    content = draft_of("ugly.yaml")
    assert "allow_private" not in json.dumps(content)
    assert "secret" not in text
    assert content["relations"]["ok2"]["fields"]["n1st"] == "int64"
    assert content["relations"]["ok2"]["methods"]["all"]["reply"]["fields"]["a_b_c_d"] == "/a.b~1c~0d"


def test_a_document_without_names(tmp_path: Path) -> None:
    found = drafted(read("weather", (FOLDER / "weather.yaml").read_bytes()), "site")
    assert found.content["sources"] == {"site": {"base": "http://weather.example/v3"}}
    assert "write https" in found.notes["sources", "site"][0]
    seen = found.content["relations"]["stations_observations"]
    assert seen["fields"] == {
        "station": "string",
        "taken": "timestamp",
        "temperature": "float64",
        "wind_speed": "float64",
        "wind_from": "int32",
    }
    way = seen["methods"]["by_station"]
    assert way["optional"] == ["temperature>=", "temperature<=", "taken"]
    assert way["examples"] == [{"station": "ULM"}]
    assert way["request"]["query"]["units"] == "metric"
    assert way["pages"] == {"cursor": "/pagination/next_token", "param": "next_token"}
    assert way["empty"] == [404]
    nearest = found.content["relations"]["stations_nearest"]
    assert nearest["methods"]["by_lat_and_lon"]["reply"] == {
        "kind": "json",
        "rows": "/station",
        "optional": ["name"],
    }


def test_lists_with_a_link_to_the_next_and_lists_inside_one_thing() -> None:
    content = draft_of("library.json")
    books, authors = content["relations"]["books"], content["relations"]["authors"]
    assert books["fields"]["author_name"] == "string"
    assert books["methods"]["all"]["pages"] == {"next": "/next"}
    assert books["methods"]["all"]["request"]["path"] == "/books/"
    assert books["methods"]["by_id"]["request"]["path"] == "/books/{id}/"
    assert books["key"] == ["id"]
    assert authors["fields"] == {"id": "int64", "name": "string"}
    assert "allow_private" not in content["sources"]["site"]
