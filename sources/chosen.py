"""Catalogs as people name them: a file, a folder, `plugin:NAME`, `plugins`; or what the environment names."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from mediator.catalog.model import Catalog
from mediator.errors import CatalogError
from sources.joining import joined, prefixed
from sources.loading import load
from sources.plugins import all_of, installed, named

VARIABLE = "MEDIATOR_CATALOG"
_ALL, _PLUGIN = "plugins", "plugin"
_NONE: Mapping[str, str] = {}


def chosen_catalog(
    chosen: Sequence[str | Path] = (),
    variables: Mapping[str, str] = _NONE,
    warn: Callable[[str], None] = lambda _: None,
) -> Catalog | None:
    """What these files and plugins declare, or those that the environment names. None where nobody names any.

    `warn` is told of plugins that cannot be loaded where all were asked for. A query that names what is not there tells
    it once more.
    """
    names = [str(name) for name in chosen] or of_environment()
    return joined([_loaded(name, variables, warn) for name in names]) if names else None


def of_environment() -> list[str]:
    """A list of paths; the colon of `plugin:NAME` parts nothing."""
    names: list[str] = []
    for name in filter(None, os.environ.get(VARIABLE, "").split(os.pathsep)):
        if names and names[-1] == _PLUGIN:
            names[-1] += f":{name}"
        else:
            names.append(name)
    return names


def _loaded(name: str, variables: Mapping[str, str], warn: Callable[[str], None]) -> Catalog:
    if name == _ALL:
        return _all_plugins(variables, warn)
    kind, colon, rest = name.partition(":")
    try:
        if kind == _PLUGIN and colon:
            plugin, slash, prefix = rest.partition("/")
            catalog = named(plugin, installed()).load(variables)
            return prefixed(catalog, prefix) if slash else catalog
        return load(name, variables)
    except UnicodeDecodeError as error:
        raise CatalogError(f"{name}: not UTF-8 text: {error.reason} at byte {error.start}") from None
    except OSError as error:
        raise CatalogError(f"{name}: cannot be read: {error.strerror}") from None


def _all_plugins(variables: Mapping[str, str], warn: Callable[[str], None]) -> Catalog:
    catalog, troubles = all_of(installed(), variables)
    for trouble in troubles:
        if trouble.is_fault:
            warn(str(trouble.error))
    return catalog
