"""From YAML files to a catalog. Whatever is wrong is told with the file, the line, the field and the fix."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from mediator.catalog.model import Catalog, Relation
from mediator.errors import CatalogError
from sources.advice import advice
from sources.compiling import relations, source
from sources.complaint import Complaint, Where
from sources.declaration import Declaration, SourceSpec
from sources.yaml_file import YamlFile, read_yaml

_VARIABLE = re.compile(r"\$\{(\w+)\}")


def load(path: Path | str, variables: Mapping[str, str] | None = None) -> Catalog:
    """The catalog of a file, or of every `*.yaml` of a folder. `${name}` stands for a variable's value."""
    files = [_read(file, variables or {}) for file in _files(Path(path))]
    sites: dict[str, SourceSpec] = {}
    for file in files:
        for name, spec in file.declaration.sources.items():
            if sites.setdefault(name, spec) != spec:
                raise file.error(("sources", name), f"source {name!r} is declared twice: rename one of them")
    tables: dict[str, Relation] = {}
    for file in files:
        try:
            found = relations(file.declaration, sites)
        except Complaint as complaint:
            raise file.error(complaint.where, complaint.message) from None
        for name in found.keys() & tables.keys():
            raise file.error(("relations", name), f"relation {name!r} is declared twice: rename one of them")
        tables |= found
    return Catalog(tables, {name: source(name, spec) for name, spec in sites.items()})


@dataclass(frozen=True)
class _File:
    yaml: YamlFile
    declaration: Declaration

    def error(self, where: Where, message: str) -> CatalogError:
        return self.yaml.error(where, message)


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        if files := sorted(path.glob("*.yaml")):
            return files
        raise CatalogError(f"{path}: no *.yaml file in this folder")
    if not path.exists():
        raise CatalogError(f"{path}: no such file or folder")
    return [path]


def _read(path: Path, variables: Mapping[str, str]) -> _File:
    file = read_yaml(path)
    try:
        return _File(file, Declaration.model_validate(_filled(file.content, variables, ())))
    except Complaint as complaint:
        raise file.error(complaint.where, complaint.message) from None
    except ValidationError as error:
        first = error.errors()[0]
        raise file.error(first["loc"], advice(dict(first))) from None


def _filled(value: Any, variables: Mapping[str, str], where: Where) -> Any:
    """The content with its variables replaced."""
    if isinstance(value, dict):
        return {k: _filled(v, variables, (*where, k)) for k, v in value.items()}
    if isinstance(value, list):
        return [_filled(v, variables, (*where, i)) for i, v in enumerate(value)]
    if not isinstance(value, str):
        return value
    for name in _VARIABLE.findall(value):
        if name not in variables:
            known = ", ".join(sorted(variables)) or "none"
            raise Complaint(
                where,
                f"variable {name!r} has no value: give it one, with --set or in load() (given: {known})",
            )
    return _VARIABLE.sub(lambda m: variables[m[1]], value)
