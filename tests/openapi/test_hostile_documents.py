"""Documents that are broken or meant badly: told in a sentence, or left out with the reason; never a crash."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sources
from mediator.errors import CatalogError
from sources.openapi import Draft, drafted, read, written
from sources.openapi.words import listed

FOLDER = Path(__file__).parent / "documents"


def document(paths: dict[str, Any], **more: Any) -> bytes:
    said = {"openapi": "3.1.0", "info": {"title": "t", "version": "1"}, "paths": paths, **more}
    return json.dumps(said).encode()


def lookup(schema: Any, **more: Any) -> dict[str, Any]:
    return {"get": {"responses": {"200": {"content": {"application/json": {"schema": schema}}}}, **more}}


def rows(**properties: Any) -> dict[str, Any]:
    return {"type": "array", "items": {"type": "object", "properties": properties}}


def draft(text: bytes) -> Draft:
    return drafted(read("spec", text), "site")


def check_loads(found: Draft, folder: Path) -> None:
    (folder / "draft.yaml").write_text(written(found))
    assert list(sources.load(folder / "draft.yaml").relations) == list(found.content["relations"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "not an OpenAPI document"),
        (b"[]", "not an OpenAPI document"),
        (b"hello", "not an OpenAPI document"),
        (b"{", "not JSON"),
        (b"a: [", "neither JSON nor YAML"),
        (b"a: \xff", "not UTF-8"),
        (b"<html></html>", "not an OpenAPI document"),
        (b"a: b", "neither 'openapi' nor 'swagger' at the top"),
        (b"openapi: 4.0.0", "version '4.0.0' at the top: expected openapi 3.0 or 3.1, or swagger 2.0"),
        (b"swagger: '1.2'", "version '1.2' at the top"),
        (b"openapi: 3.0.0", "there are no 'paths'"),
        (b"openapi: 3.0.0\npaths: [1]", "there are no 'paths'"),
        (b"a: &a [*a]", "too large or too deep"),
        (b"!!python/object/apply:os.system ['true']", "not an OpenAPI document"),
        (b"[" * 100_000, "not JSON"),
        (b'{"a":' * 100_000, "not JSON"),
        (b"- " * 100_000, "too large or too deep"),
    ],
)
def test_what_is_no_document_is_told(text: bytes, said: str) -> None:
    with pytest.raises(CatalogError, match=re.escape(said)) as told:
        read("spec.yaml", text)
    assert str(told.value).startswith("spec.yaml: ")


def test_a_document_that_is_too_large_is_told() -> None:
    with pytest.raises(CatalogError, match="33,554,432 are the most"):
        read("spec.yaml", b" " * (33 << 20))


@pytest.mark.timeout(60)
def test_aliases_that_multiply_are_one_value(tmp_path: Path) -> None:
    lines = ["x0: &x0 {type: string}"]
    for n in range(1, 40):
        pairs = ", ".join(f"p{k}: *x{n - 1}" for k in range(9))
        lines.append(f"x{n}: &x{n} {{type: object, properties: {{{pairs}}}}}")
    text = "\n".join(
        [
            "openapi: 3.0.0",
            *lines,
            "paths: {/a: {get: {responses: {200: {content: {application/json: {schema: *x39}}}}}}}",
        ]
    )
    found = draft(text.encode())
    assert found.content["relations"] == {}
    assert found.skipped[0].why == "its rows have no fields of a simple type"


@pytest.mark.timeout(60)
def test_schemas_that_multiply_are_looked_at_once(tmp_path: Path) -> None:
    schemas: dict[str, Any] = {"s0": {"type": "object", "properties": {"id": {"type": "string"}}}}
    for n in range(1, 19):
        schemas[f"s{n}"] = {"allOf": [{"$ref": f"#/components/schemas/s{n - 1}"}] * 9}
    text = document(
        {"/a": lookup({"type": "array", "items": {"$ref": "#/components/schemas/s18"}})},
        components={"schemas": schemas},
    )
    found = draft(text)
    assert found.content["relations"]["a"]["fields"] == {"id": "string"}
    check_loads(found, tmp_path)


def test_schemas_that_are_too_deep_are_left_out() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(150):
        schema = {"allOf": [schema]}
    found = draft(document({"/a": lookup(schema), "/b": lookup(rows(id={"type": "string"}))}))
    assert list(found.content["relations"]) == ["b"]
    assert found.skipped[0].why == "a schema that is too deep"


@pytest.mark.timeout(110)
def test_ten_thousand_operations(tmp_path: Path) -> None:
    paths = {
        f"/v{n % 7}/things{n}/{{thing_id}}": lookup(
            {"type": "object", "properties": {"id": {"type": "string"}, f"p{n}": {"type": "integer"}}}
        )
        for n in range(10_000)
    }
    found = draft(document(paths))
    assert 500 < len(found.content["relations"]) < 10_000
    assert len(found.content["relations"]) + len(found.skipped) == 10_000
    assert (
        "the file would be too large: draft some of the paths at a time, with --path" in found.skipped[-1].why
    )
    text = written(found)
    assert "more, most of them: more than 5,000 relations: draft some of the paths at a time" in text
    some = drafted(read("spec", document(paths)), "site", paths=["/v3/things1"])
    assert 0 < len(some.content["relations"]) < 1_000
    check_loads(some, tmp_path)


def test_a_row_of_a_thousand_fields_and_an_operation_of_a_thousand_filters(tmp_path: Path) -> None:
    names = [f"f{n}" for n in range(1_000)]
    parameters = [{"name": n, "in": "query", "schema": {"type": "string"}} for n in names]
    found = draft(
        document({"/a": lookup(rows(**{n: {"type": "string"} for n in names}), parameters=parameters)})
    )
    relation = found.content["relations"]["a"]
    assert len(relation["fields"]) == 200
    assert relation["methods"]["all"]["optional"] == ["f0", "f1", "f2", "f3"]
    assert any("all after f199" in note for note in found.notes["relations", "a", "fields"])
    check_loads(found, tmp_path)


@pytest.mark.parametrize(
    "title",
    ["a\nb: c", "a\r\nsources: {}", "\u2028x: y", "\x00\x07\x1b[31m", "#" * 10_000, "${HOME}", "\ud800"],
)
def test_texts_cannot_leave_their_comment(title: str, tmp_path: Path) -> None:
    text = document(
        {"/a": lookup(rows(id={"type": "string"}, **{title: {"type": "array"}}), summary=title)},
        info={"title": title, "version": title},
    )
    if title == "\ud800":
        with pytest.raises(CatalogError, match="spec: "):
            draft(text)
        return
    found = draft(text)
    assert list(found.content["relations"]) == ["a"]
    check_loads(found, tmp_path)


WORDS = sorted(
    listed(
        "type properties items allOf anyOf $ref required enum const default nullable schema name in id a b "
        "next total data 200 content application/json parameters style format maxItems get"
    )
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 500)
    | st.sampled_from(
        [
            "object",
            "array",
            "string",
            "integer",
            "date",
            "#/x",
            "#/paths",
            "id",
            "page",
            "query",
            "path",
            "${A}",
            "{a}",
            "",
        ]
    ),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(WORDS),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
ORIGINALS = [
    json.dumps(read(p.name, p.read_bytes()).content)
    for p in sorted(FOLDER.iterdir())
    if p.stat().st_size < 9_000
]


def _places(part: Any, above: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    steps = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
    return [p for step, inner in steps for p in [(*above, step), *_places(inner, (*above, step))]]


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(original=st.sampled_from(ORIGINALS), at=st.integers(0, 10_000), value=VALUES)
def test_whatever_stands_somewhere_the_draft_loads_or_the_document_is_told(
    original: str, at: int, value: Any, tmp_path: Path
) -> None:
    said = json.loads(original)
    places = _places(said)
    *above, last = places[at % len(places)]
    part = said
    for step in above:
        part = part[step]
    part[last] = value
    try:
        document = read("spec", json.dumps(said).encode())
    except CatalogError:
        assert at % len(places) < len(said) or last in ("openapi", "swagger", "paths")
        return
    check_loads(drafted(document, "site"), tmp_path)
