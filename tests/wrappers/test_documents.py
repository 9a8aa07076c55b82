"""What the reference for authors says can be done, can be done."""

import re
from pathlib import Path
from typing import Any

import pytest

import sources
from mediator.catalog.statement import Statement
from sources.declaration import DatabaseSpec, MethodSpec, SourceSpec
from sources.schema import json_schema

REFERENCE = Path(__file__).parents[2] / "docs" / "declaring-a-site.md"
TEXT = REFERENCE.read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 3


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_loads_and_asks(example: str, tmp_path: Path) -> None:
    (tmp_path / "site.yaml").write_text(example)
    for relation in sources.load(tmp_path).relations.values():
        for method in relation.methods:
            assert method.wrapper is not None
            request = method.wrapper.request(method.required, [("1",) * len(method.required)])
            assert isinstance(request, Statement) or request.path.startswith("/")


def test_every_field_of_a_source_of_a_method_and_of_a_database_is_described() -> None:
    named = set(re.findall(r"`(\w+)`", TEXT))
    assert {*SourceSpec.model_fields, *MethodSpec.model_fields, *DatabaseSpec.model_fields} <= named


@pytest.mark.parametrize(
    "part",
    [
        "Rule",
        "Template",
        "NumberedPages",
        "OffsetPages",
        "CursorPages",
        "LinkedPages",
        "HeaderPages",
        "JsonReader",
        "NdjsonReader",
        "CsvReader",
        "HtmlReader",
        "GraphqlQuery",
        "KeyAuth",
        "BasicAuth",
        "BearerAuth",
        "Oauth2Auth",
    ],
)
def test_every_field_of_a_part_is_described(part: str) -> None:
    definition: dict[str, Any] = json_schema()["$defs"][part]
    assert set(definition["properties"]) <= set(re.findall(r"`(\w+)`", TEXT))
