"""Several catalogs as one, and the way out where two of them use one name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from mediator.catalog.functions import Function
from mediator.catalog.model import Catalog, Relation, Source
from mediator.errors import CatalogError


def joined(catalogs: Iterable[Catalog], way_out: str = "plugin:NAME/PREFIX") -> Catalog:
    """One catalog of several. What two of them declare is an error that names both places."""
    relations: dict[str, Relation] = {}
    sites: dict[str, Source] = {}
    unavailable: tuple[str, ...] = ()
    functions: dict[Function, None] = {}
    for catalog in catalogs:
        for name in relations.keys() & catalog.relations.keys():
            both = (
                f"in {relations[name].origin or 'one'} and in {catalog.relations[name].origin or 'another'}"
            )
            raise CatalogError(
                f"relation {name!r} is declared in two of the catalogs, {both}: name only one of them, "
                f"or give the relations of a plugin a prefix, {way_out}"
            )
        for name in sites.keys() & catalog.sources.keys():
            if sites[name] != catalog.sources[name]:
                raise CatalogError(
                    f"source {name!r} is declared in two of the catalogs, differently: name only one of them, "
                    f"or give those of a plugin a prefix, {way_out}"
                )
        relations |= catalog.relations
        sites |= catalog.sources
        unavailable += catalog.unavailable
        functions |= dict.fromkeys(catalog.functions)
    return Catalog(relations, sites, unavailable, tuple(functions))


def prefixed(catalog: Catalog, prefix: str) -> Catalog:
    """The same catalog, whose relations and sources have longer names: `prefix`, an underscore, the name."""
    if not prefix.isidentifier() or not prefix.islower():
        raise CatalogError(f"{prefix!r} cannot begin a name: write a word in lower case")
    sites = {f"{prefix}_{name}": replace(s, name=f"{prefix}_{name}") for name, s in catalog.sources.items()}
    relations = {
        f"{prefix}_{name}": replace(
            relation,
            name=f"{prefix}_{name}",
            methods=tuple(
                replace(m, mirrors=tuple(replace(w, source=f"{prefix}_{w.source}") for w in m.mirrors))
                for m in relation.methods
            ),
        )
        for name, relation in catalog.relations.items()
    }
    return Catalog(relations, sites, catalog.unavailable, catalog.functions)
