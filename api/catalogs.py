"""Where a command's catalog comes from: files, the environment, or a demo's scripted web."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import sources
from api.demo import found_demo
from api.exits import Mistake
from mediator.catalog.model import Catalog
from mediator.errors import CatalogError

VARIABLE = "MEDIATOR_CATALOG"
_NONE = (
    "there is no catalog: name one with --catalog PATH (a YAML file, or a folder of them), "
    f"set {VARIABLE}, or try --demo, which brings a scripted web along"
)


@contextmanager
def to_ask(paths: Sequence[Path], variables: Mapping[str, str], demo: bool) -> Iterator[Catalog]:
    """A catalog whose sources can be asked within the block; the demo's are served for as long as that."""
    if not demo:
        yield declared(paths, variables)
        return
    _only_demo(paths)
    with found_demo().serve() as served:
        yield served.catalog


def to_read(paths: Sequence[Path], variables: Mapping[str, str], demo: bool) -> Catalog:
    """A catalog to be looked at; nothing is served."""
    if not demo:
        return declared(paths, variables)
    _only_demo(paths)
    return found_demo().catalog


def declared(paths: Sequence[Path], variables: Mapping[str, str]) -> Catalog:
    """What these files declare, or those that the environment names."""
    named = [Path(p) for p in os.environ.get(VARIABLE, "").split(os.pathsep) if p]
    chosen = list(paths) or named
    if not chosen:
        raise Mistake(_NONE)
    return together([_loaded(path, variables) for path in chosen])


def together(catalogs: Sequence[Catalog]) -> Catalog:
    """One catalog of several. What two of them declare has to be the same."""
    relations, sites = dict(catalogs[0].relations), dict(catalogs[0].sources)
    for catalog in catalogs[1:]:
        for name in catalog.relations.keys() & relations.keys():
            raise CatalogError(f"relation {name!r} is declared in two of the catalogs: name only one of them")
        for name in catalog.sources.keys() & sites.keys():
            if catalog.sources[name] != sites[name]:
                raise CatalogError(f"source {name!r} is declared in two of the catalogs, differently")
        relations |= catalog.relations
        sites |= catalog.sources
    return Catalog(relations, sites)


def _loaded(path: Path, variables: Mapping[str, str]) -> Catalog:
    try:
        return sources.load(path, variables)
    except UnicodeDecodeError as error:
        raise CatalogError(f"{path}: not UTF-8 text: {error.reason} at byte {error.start}") from None
    except OSError as error:
        raise CatalogError(f"{path}: cannot be read: {error.strerror}") from None


def _only_demo(paths: Sequence[Path]) -> None:
    if paths:
        raise Mistake("--demo brings its own catalog: leave out either --demo or --catalog")
