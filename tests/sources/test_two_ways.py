"""What is written in YAML and what is written in Python become the same model, and the same catalog."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import sources
from mediator.catalog.model import AccessMethod, Catalog
from sources.declaration import Declaration, MethodSpec, RelationSpec
from sources.loading import parts_at
from sources.python import ways
from sources.python.part import part_of
from tests.sources import trade_classes
from wrappers import CodedWrapper, DeclaredWrapper, Template

VARIABLES = {"book_trade": "http://book-trade.example"}
BOOK_TRADE = Path(sources.__file__).parent / "book_trade"
CLASSES = {
    name.lower(): value
    for name, value in vars(trade_classes).items()
    if inspect.isclass(value) and issubclass(value, sources.Relation) and value is not sources.Relation
}


def _in_yaml(relation: str) -> Declaration:
    (part,) = parts_at(BOOK_TRADE / f"{relation}.yaml", VARIABLES)
    return _without_examples(part.declaration)


def _without_examples(declaration: Declaration) -> Declaration:
    """Those are of what the site has in it, not of the site."""
    return declaration.model_copy(
        update={
            "relations": {
                name: spec.model_copy(
                    update={
                        "methods": {n: m.model_copy(update={"examples": ()}) for n, m in spec.methods.items()}
                    }
                )
                for name, spec in declaration.relations.items()
            }
        }
    )


@pytest.mark.parametrize("relation", sorted(path.stem for path in BOOK_TRADE.glob("*.yaml")))
def test_both_become_the_same_model(relation: str) -> None:
    written = part_of([CLASSES[relation]], (), "", VARIABLES).declaration
    assert written == _in_yaml(relation)
    assert written.model_dump(exclude_unset=True).keys() == {"sources", "relations"}


def test_a_difference_is_a_difference() -> None:
    """So that the test above could fail."""
    assert part_of([CLASSES["books"]], (), "", {"book_trade": "http://elsewhere"}).declaration != _in_yaml(
        "books"
    )


def test_both_become_the_same_catalog() -> None:
    written = sources.declared(trade_classes, VARIABLES)
    assert len(written.relations) == 7
    assert written == sources.load_book_trade("http://book-trade.example")


def test_every_field_of_a_method_is_a_parameter_of_index() -> None:
    """Whoever adds one to the model adds it there, where editors look for it."""
    said = set(MethodSpec.model_fields) - {"wrapper"}
    assert set(inspect.signature(ways.index).parameters) == said
    assert set(inspect.signature(ways.scan).parameters) == said - {
        "required",
        "any_of",
        "given",
        "batch_size",
    }


def test_every_field_of_a_relation_is_a_part_of_the_class_statement() -> None:
    taken = set(inspect.signature(sources.Relation.__init_subclass__).parameters)
    assert taken == set(RelationSpec.model_fields) - {"methods"} | {"name", "abstract"}


@pytest.mark.parametrize("name", ["book_trade", "papers"])
def test_built_in_kinds_are_made_of_nothing_but_the_kit(name: str) -> None:
    catalog = sources.load_papers("http://x") if name == "papers" else sources.load_book_trade("http://x")
    for method in _methods(catalog):
        assert type(method.wrapper) is DeclaredWrapper
        for piece in (method.wrapper.template, method.wrapper.reader, method.wrapper.paging):
            assert piece is None or hasattr(__import__("wrappers"), type(piece).__name__)


def test_code_named_in_yaml_is_the_same_as_code_in_a_class(tmp_path: Path) -> None:
    """Where nothing but the rows is code, the rest of both is equal."""
    (tmp_path / "reading.py").write_text(
        "class Lines:\n    def rows(self, reply):\n        return [{'n': int(l)} for l in reply.text().split()]\n"
    )
    (tmp_path / "numbers.yaml").write_text(
        "sources: {site: {base: 'https://x.example'}}\n"
        "relations:\n  numbers:\n    fields: {n: int64}\n    methods:\n"
        "      all: {mirrors: [site], request: {path: /n}, wrapper: 'reading.py:Lines'}\n"
    )
    site = sources.Source(name="site", base="https://x.example")

    class Numbers(sources.Relation):
        n: int
        all = sources.scan(
            mirrors=site,
            request=Template(path="/n"),
            reply=lambda self, reply: [{"n": int(line)} for line in reply.text().split()],
        )

    ways_in = [next(_methods(catalog)) for catalog in (sources.load(tmp_path), sources.declared(Numbers))]
    assert all(isinstance(way.wrapper, CodedWrapper) for way in ways_in)
    assert replace(ways_in[0], wrapper=None) == replace(ways_in[1], wrapper=None)


def _methods(catalog: Catalog) -> Iterator[AccessMethod]:
    return iter([m for relation in catalog.relations.values() for m in relation.methods])
