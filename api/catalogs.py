"""Where a command's catalog comes from: files, plugins, the environment, or a demo's scripted web."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import sources
from api.demo import found_demo
from api.exits import Mistake, warn
from mediator.catalog.model import Catalog
from mediator.errors import CatalogError
from sources.joining import joined, prefixed
from sources.plugins import all_of, installed, named

VARIABLE = "MEDIATOR_CATALOG"
_ALL, _PLUGIN = "plugins", "plugin"
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
    """What these files and plugins declare, or those that the environment names."""
    named = [str(name) for name in chosen] or _of_environment()
    if not named:
        raise Mistake(f"there is no catalog: {NO_CATALOG}")
    return joined([_loaded(name, variables) for name in named])


def nothing_is_named(chosen: Sequence[str | Path]) -> bool:
    """Neither here nor in the environment."""
    return not chosen and not _of_environment()


def _of_environment() -> list[str]:
    """A list of paths; the colon of `plugin:NAME` parts nothing."""
    names: list[str] = []
    for name in filter(None, os.environ.get(VARIABLE, "").split(os.pathsep)):
        if names and names[-1] == _PLUGIN:
            names[-1] += f":{name}"
        else:
            names.append(name)
    return names


def _loaded(name: str, variables: Mapping[str, str]) -> Catalog:
    if name == _ALL:
        return _all_plugins(variables)
    kind, colon, rest = name.partition(":")
    try:
        if kind == _PLUGIN and colon:
            plugin, slash, prefix = rest.partition("/")
            catalog = named(plugin, installed()).load(variables)
            return prefixed(catalog, prefix) if slash else catalog
        return sources.load(name, variables)
    except UnicodeDecodeError as error:
        raise CatalogError(f"{name}: not UTF-8 text: {error.reason} at byte {error.start}") from None
    except OSError as error:
        raise CatalogError(f"{name}: cannot be read: {error.strerror}") from None


def _all_plugins(variables: Mapping[str, str]) -> Catalog:
    """Those that can be loaded. The others are told on stderr, and again where a query asks for what is not there."""
    catalog, troubles = all_of(installed(), variables)
    for trouble in troubles:
        if trouble.is_fault:
            warn(str(trouble.error))
    return catalog


def _only_demo(paths: Sequence[str | Path]) -> None:
    if paths:
        raise Mistake("--demo brings its own catalog: leave out either --demo or --catalog")
