"""Where a command's catalog comes from: files, plugins, the environment, or a demo's scripted web."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from api.demo import found_demo
from api.exits import Mistake, warn
from mediator.catalog.model import Catalog
from sources.chosen import VARIABLE, chosen_catalog, of_environment

NO_CATALOG = (
    "name one with --catalog PATH (a YAML file, or a folder of them) or --catalog plugin:NAME, "
    f"set {VARIABLE}, or try --demo, which brings a scripted web along"
)


@contextmanager
def to_ask(paths: Sequence[str | Path], variables: Mapping[str, str], demo: bool) -> Iterator[Catalog]:
    """A catalog whose sources can be asked within the block; the demo's are served for as long as that."""
    if not demo:
        yield declared(paths, variables)
        return
    _only_demo(paths)
    with found_demo().serve() as served:
        yield served.catalog


def to_read(paths: Sequence[str | Path], variables: Mapping[str, str], demo: bool) -> Catalog:
    """A catalog to be looked at; nothing is served."""
    if not demo:
        return declared(paths, variables)
    _only_demo(paths)
    return found_demo().catalog


def declared(chosen: Sequence[str | Path], variables: Mapping[str, str]) -> Catalog:
    """What these files and plugins declare, or those that the environment names.

    Of all plugins those that can be loaded: the others are told on stderr.
    """
    catalog = chosen_catalog(chosen, variables, warn)
    if catalog is None:
        raise Mistake(f"there is no catalog: {NO_CATALOG}")
    return catalog


def nothing_is_named(chosen: Sequence[str | Path]) -> bool:
    """Neither here nor in the environment."""
    return not chosen and not of_environment()


def _only_demo(paths: Sequence[str | Path]) -> None:
    if paths:
        raise Mistake("--demo brings its own catalog: leave out either --demo or --catalog")
