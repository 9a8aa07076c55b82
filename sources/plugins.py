"""Plugins: declarations that other distributions bring along, or that stand in the folders of MEDIATOR_PLUGINS.

Nothing of a plugin is imported before it is asked for, by its name or with all others: code that is installed does
not run for somebody who did not ask for it.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from mediator.catalog.model import Catalog
from mediator.errors import CatalogError
from sources.importing import failure
from sources.joining import joined
from sources.loading import declared_in
from sources.offers import parts_offered
from sources.parts import UnsetVariable, catalog_of

GROUP = "mediator.wrappers"
VARIABLE = "MEDIATOR_PLUGINS"


@dataclass(frozen=True)
class Plugin:
    """A name, and what stands behind it: an entry point, or a path."""

    name: str
    entry: EntryPoint | Path

    @property
    def brought_by(self) -> str:
        """The distribution, with its version, or the path."""
        if isinstance(self.entry, Path):
            return str(self.entry)
        return f"{self.distribution} {self.entry.dist.version}" if self.entry.dist else "no distribution"

    @property
    def distribution(self) -> str:
        """What tells plugins of one name apart."""
        if isinstance(self.entry, Path):
            return self.entry.parent.name
        return self.entry.dist.name if self.entry.dist else ""

    @property
    def value(self) -> str:
        """What is imported for it."""
        return str(self.entry) if isinstance(self.entry, Path) else self.entry.value

    def load(self, variables: Mapping[str, str]) -> Catalog:
        """Raises `CatalogError`, which names the plugin, for whatever is wrong with it.

        Of the variables, those that are given as `NAME.variable` are this plugin's, and go before the others.
        """
        own = {name.removeprefix(f"{self.name}."): value for name, value in variables.items()}
        scoped = {**variables, **{k: v for k, v in own.items() if f"{self.name}.{k}" in variables}}
        try:
            given = self.entry if isinstance(self.entry, Path) else self._imported(self.entry)
            origin = f"plugin {self.name} ({self.brought_by})"
            return catalog_of(parts_offered(given, origin, scoped))
        except CatalogError as error:
            kind = UnsetVariable if isinstance(error, UnsetVariable) else CatalogError
            raise kind(f"plugin {self.name!r} of {self.brought_by}: {error}") from None

    def _imported(self, entry: EntryPoint) -> object:
        try:
            return entry.load()
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise failure(error, entry.value) from None


@dataclass(frozen=True)
class Trouble:
    """A plugin that could not be loaded."""

    plugin: Plugin
    error: CatalogError

    @property
    def is_fault(self) -> bool:
        """Else it only lacks the value of a variable, and so has not been set up."""
        return not isinstance(self.error, UnsetVariable)


def installed(folders: Iterable[Path] | None = None) -> list[Plugin]:
    """Every plugin, by name; nothing is imported. `folders` are those of MEDIATOR_PLUGINS if left out."""
    if folders is None:
        folders = [Path(p) for p in os.environ.get(VARIABLE, "").split(os.pathsep) if p]
    found = [Plugin(entry.name, entry) for entry in entry_points(group=GROUP)]
    for folder in folders:
        found += _inside(folder)
    return sorted(dict.fromkeys(found), key=lambda plugin: (plugin.name, plugin.brought_by))


def named(name: str, plugins: Iterable[Plugin]) -> Plugin:
    """The plugin of this name, or of `name@distribution`. Raises `CatalogError` where it is not exactly one."""
    plugins = list(plugins)
    wanted, at, distribution = name.partition("@")
    found = [p for p in plugins if p.name == wanted and (not at or p.distribution == distribution)]
    if len(found) == 1:
        return found[0]
    if found:
        both = " and ".join(plugin.brought_by for plugin in found)
        ways = " or ".join(f"plugin:{wanted}@{plugin.distribution}" for plugin in found)
        raise CatalogError(f"several plugins are called {wanted!r}, of {both}: write {ways}")
    near = difflib.get_close_matches(wanted, [p.name for p in plugins], n=1)
    known = ", ".join(dict.fromkeys(p.name for p in plugins)) or "none installed"
    fix = f"did you mean {near[0]!r}?" if near else f"use one of: {known}"
    raise CatalogError(f"unknown plugin {name!r}: {fix}")


def all_of(plugins: Iterable[Plugin], variables: Mapping[str, str]) -> tuple[Catalog, list[Trouble]]:
    """What all plugins declare, without those that cannot be loaded; the catalog says what is missing, and why.

    Where two declare one relation, neither is taken for the other: the second is in trouble, with a way out.
    """
    catalog, troubles = Catalog({}), list[Trouble]()
    for plugin in plugins:
        try:
            catalog = joined([catalog, plugin.load(variables)], f"plugin:{plugin.name}/PREFIX")
        except CatalogError as error:
            troubles.append(Trouble(plugin, error))
    return replace(catalog, unavailable=tuple(str(t.error) for t in troubles)), troubles


def _inside(folder: Path) -> list[Plugin]:
    """Each sub-folder that declares something is a plugin, and each such file."""
    if not folder.is_dir():
        raise CatalogError(f"{folder}: {VARIABLE} names it, but there is no such folder")
    found = [Plugin(path.stem, path.resolve()) for path in declared_in(folder)]
    inner = (path for path in sorted(folder.iterdir()) if path.is_dir() and declared_in(path))
    return [*found, *(Plugin(path.name, path.resolve()) for path in inner)]
