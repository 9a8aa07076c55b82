"""Declarations from anywhere, each with its way to name a place of itself, and the catalog that they make together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from mediator.catalog.functions import Function
from mediator.catalog.model import Catalog, Relation
from mediator.errors import CatalogError
from sources.advice import advice
from sources.compiling import relations, source, with_pages
from sources.complaint import Complaint, Where
from sources.declaration import Declaration, SourceSpec
from sources.variables import Unset, filled

Tell = Callable[[Where, str], CatalogError]


class UnsetVariable(CatalogError):
    """A declaration that is not at fault, but has not been given the value of a variable."""


@dataclass(frozen=True)
class Part:
    """One declaration: a file of YAML, or the classes of a module."""

    declaration: Declaration
    origin: str  # for people
    error: Tell  # what is wrong at a place of it, with file and line
    functions: tuple[Function, ...] = ()  # for queries to call


def part(
    content: Mapping[str, Any],
    origin: str,
    error: Tell,
    variables: Mapping[str, str],
    folder: Path | None = None,
) -> Part:
    """Raises `CatalogError` for content that the model does not take. Files that it names are in `folder`."""
    try:
        known = Declaration.model_validate(filled(dict(content), variables), context={"folder": folder})
    except Unset as complaint:
        raise UnsetVariable(str(error(complaint.where, complaint.message))) from None
    except Complaint as complaint:
        raise error(complaint.where, complaint.message) from None
    except ValidationError as wrong:
        first = wrong.errors()[0]
        raise error(first["loc"], advice(dict(first))) from None
    return Part(known, origin, error)


def catalog_of(parts: Sequence[Part]) -> Catalog:
    """A source may be declared in one part and used in another."""
    sites: dict[str, SourceSpec] = {}
    for one in parts:
        for name, spec in one.declaration.sources.items():
            if sites.setdefault(name, spec) != spec:
                raise one.error(("sources", name), f"source {name!r} is declared twice: rename one of them")
    tables: dict[str, Relation] = {}
    for one in parts:
        try:
            found = relations(one.declaration, sites)
        except Complaint as complaint:
            raise one.error(complaint.where, complaint.message) from None
        for name in found.keys() & tables.keys():
            raise one.error(
                ("relations", name),
                f"relation {name!r} is declared twice, also in {tables[name].origin}: rename one of them",
            )
        tables |= {name: replace(table, origin=one.origin) for name, table in found.items()}
    pages = set[str]().union(*(with_pages(one.declaration) for one in parts))
    functions = dict.fromkeys(function for one in parts for function in one.functions)
    sources = {name: source(name, spec, name in pages) for name, spec in sites.items()}
    return Catalog(tables, sources, functions=tuple(functions))
