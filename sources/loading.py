"""From files to a catalog. Whatever is wrong is told with the file, the line, the field and the fix."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from mediator.catalog.model import Catalog
from mediator.errors import CatalogError
from sources.importing import part_at
from sources.modules import declares
from sources.parts import Part, catalog_of, part
from sources.yaml_file import read_yaml


def load(path: Path | str, variables: Mapping[str, str] | None = None) -> Catalog:
    """The catalog of a file, or of every `*.yaml` of a folder and every `*.py` in which relations are declared.

    `${name}` stands for a variable's value.
    """
    return catalog_of(parts_at(Path(path), variables or {}))


def parts_at(path: Path, variables: Mapping[str, str], origin: str = "") -> list[Part]:
    """The declarations of a file or a folder. Raises `CatalogError` where one is wrong, or none is there."""
    return [_read(file, variables, origin or str(file)) for file in _files(path)]


def declared_in(folder: Path) -> list[Path]:
    """The files of a folder that declare something."""
    programs = (p for p in folder.glob("*.py") if p.name[0] != "_" and declares(p))
    return sorted([*folder.glob("*.yaml"), *programs])


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        if files := declared_in(path):
            return files
        raise CatalogError(f"{path}: no *.yaml file in this folder, and no *.py that declares a relation")
    if not path.exists():
        raise CatalogError(f"{path}: no such file or folder")
    return [path]


def _read(path: Path, variables: Mapping[str, str], origin: str) -> Part:
    if path.suffix == ".py":
        return part_at(path, origin, variables)
    file = read_yaml(path)
    return part(file.content, origin, file.error, variables, path.parent)
