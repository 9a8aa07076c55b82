"""Functions for queries that a file, a plugin or a module declares beside its relations, or without any."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import sources
from mediator.catalog.functions import Function
from mediator.errors import CatalogError
from sources.joining import joined, prefixed
from sources.plugins import installed, named
from tests.sources.kit import asked, serving

FILE = """\
from sources import Relation, Source, function, scan
from wrappers import JsonReader, Template

site = Source(name="site", base="${base}", allow_private=True)


class Word(Relation):
    text: str
    all = scan(mirrors=site, request=Template(path="/words"), reply=JsonReader())


@function([str], str, by_row=True)
def backwards(text: str) -> str:
    return text[::-1]
"""
ALONE = """\
from sources import function


@function([str], int, by_row=True, seconds=1e-7)
def vowels(text: str) -> int:
    return sum(text.count(v) for v in "aeiou")
"""


def names(functions: tuple[Function, ...]) -> list[str]:
    return [f.name for f in functions]


async def test_a_query_calls_what_a_file_declares(tmp_path: Path) -> None:
    (tmp_path / "words.py").write_text(FILE)
    (tmp_path / "text.py").write_text(ALONE)
    words = '[{"text": "stressed"}, {"text": "level"}, {"text": "sky"}]'
    with serving(lambda method, path, body: (200, words)) as site:
        catalog = sources.load(tmp_path, {"base": site.url})
        assert sorted(names(catalog.functions)) == ["backwards", "vowels"]
        found = await asked(
            catalog,
            "SELECT backwards(text) AS b FROM word WHERE backwards(text) <> text AND vowels(text) > 0",
        )
    assert found.rows == [{"b": "desserts"}]
    assert found.report.complete


def test_a_file_may_declare_functions_alone(tmp_path: Path) -> None:
    (tmp_path / "text.py").write_text(ALONE)
    (tmp_path / "other.py").write_text("def helps(): pass\n")  # is left alone: nothing is declared in it
    catalog = sources.load(tmp_path)
    assert names(catalog.functions) == ["vowels"]
    assert catalog.functions[0].arguments == (pa.string(),)
    assert not catalog.relations


def test_a_plugin_brings_functions_and_a_prefix_leaves_them_alone(tmp_path: Path) -> None:
    folder = tmp_path / "plugins"
    (folder / "text").mkdir(parents=True)
    (folder / "text" / "vowels.py").write_text(ALONE)
    catalog = named("text", installed([folder])).load({})
    assert names(catalog.functions) == ["vowels"]
    assert prefixed(catalog, "mine").functions == catalog.functions
    assert joined([catalog, catalog]).functions == catalog.functions


def test_what_is_in_memory_may_be_a_function() -> None:
    loud = sources.function([str], str, name="loud", by_row=True)(str.upper)
    assert sources.declared([loud]).functions == (loud,)


def test_two_functions_of_one_name_do_not_go_together() -> None:
    one, other = (sources.function([str], str, name="loud", by_row=True)(str.upper) for _ in range(2))
    with pytest.raises(CatalogError, match="two functions 'loud': give one of them another name"):
        sources.declared([one, other])
    with pytest.raises(CatalogError, match="two functions 'loud'"):
        joined([sources.declared(one), sources.declared(other)])


def test_a_bad_declaration_is_told_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text(ALONE.replace("[str], int", '["text"], int'))
    with pytest.raises(CatalogError, match=r"(?s)the function vowels: 'text' is no type"):
        sources.load(tmp_path)


def test_a_file_that_declares_neither_says_what_would() -> None:
    with pytest.raises(CatalogError, match=r"what sources.function makes"):
        sources.declared(3)
