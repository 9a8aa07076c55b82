"""`${name}` and `${name:-default}`, in YAML and in Python alike."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import sources
from mediator.errors import CatalogError
from sources.parts import UnsetVariable
from sources.schema import json_schema
from sources.variables import filled

SITE = """\
sources: {{site: {{base: "{base}"}}}}
relations:
  things:
    fields: {{n: int64}}
    methods:
      all: {{mirrors: [site], request: {{path: "/${{folder:-n}}"}}, reply: {{kind: json}}}}
"""


@pytest.mark.parametrize(
    ("text", "variables", "becomes"),
    [
        ("${a}", {"a": "1"}, "1"),
        ("${a:-2}", {"a": "1"}, "1"),
        ("${a:-2}", {"a": ""}, ""),
        ("${a:-2}", {}, "2"),
        ("${a:-}", {}, ""),
        ("${a:-https://x.example:80/y?z=1-2}/api", {}, "https://x.example:80/y?z=1-2/api"),
        ("${a}${b:-2}", {"a": "${b}"}, "${b}2"),
        ("{a} $a $ {a:-1}", {}, "{a} $a $ {a:-1}"),
    ],
)
def test_what_a_variable_becomes(text: str, variables: dict[str, str], becomes: str) -> None:
    assert filled({"x": [text, 5, None]}, variables) == {"x": [becomes, 5, None]}


def test_a_default_stands_in_a_file_until_a_value_is_given(tmp_path: Path) -> None:
    (tmp_path / "site.yaml").write_text(SITE.format(base="${site:-https://site.example}/api"))
    for given, base, path in (
        ({}, "https://site.example/api", "/n"),
        ({"site": "https://other.example", "folder": "m"}, "https://other.example/api", "/m"),
    ):
        (method,) = sources.load(tmp_path, given).relations["things"].methods
        assert method.wrapper is not None
        assert (method.mirrors[0].base, method.wrapper.request((), [()]).path) == (base, path)


def test_without_a_value_it_says_so_in_its_own_way(tmp_path: Path) -> None:
    (tmp_path / "site.yaml").write_text(SITE.format(base="${site}/api"))
    with pytest.raises(UnsetVariable, match=r"site.yaml:1: sources.site.base: variable 'site' has no value"):
        sources.load(tmp_path)
    assert issubclass(UnsetVariable, CatalogError)


def test_editors_know_that_a_kind_has_to_be_named() -> None:
    parts = json_schema()["$defs"]
    for reader in ("JsonReader", "NdjsonReader", "CsvReader", "HtmlReader", "ParquetReader"):
        assert "kind" in parts[reader]["required"]
    assert parts["MethodSpec"]["properties"]["wrapper"]["anyOf"][0]["type"] == "string"


def test_editors_take_a_variable_for_an_address() -> None:
    pattern = json_schema()["$defs"]["SourceSpec"]["properties"]["base"]["pattern"]
    for base in ("https://x.example", "${site}", "${site}/api", "${site:-https://x.example}/api"):
        assert re.match(pattern, base)
    assert not re.match(pattern, "site")
