"""From YAML files to a catalog. Whatever is wrong is told with the file, the line, the field and the fix."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from mediator.catalog.model import Catalog, Relation
from mediator.errors import CatalogError
from sources.compiling import Complaint, Where, relations, source
from sources.declaration import Declaration, MethodSpec, RelationSpec, SourceSpec

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
    path: Path
    root: yaml.Node
    declaration: Declaration

    def error(self, where: Where, message: str) -> CatalogError:
        return _error(self.path, self.root, where, message)


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        if files := sorted(path.glob("*.yaml")):
            return files
        raise CatalogError(f"{path}: no *.yaml file in this folder")
    if not path.exists():
        raise CatalogError(f"{path}: no such file or folder")
    return [path]


def _read(path: Path, variables: Mapping[str, str]) -> _File:
    text = path.read_text(encoding="utf-8")
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        content = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise CatalogError(f"{path}: not YAML: {error}") from None
    if not isinstance(content, dict) or root is None:
        raise CatalogError(f"{path}: expected 'sources' and 'relations' at the top")
    try:
        return _File(path, root, Declaration.model_validate(_filled(content, variables, ())))
    except Complaint as complaint:
        raise _error(path, root, complaint.where, complaint.message) from None
    except ValidationError as error:
        first = error.errors()[0]
        raise _error(path, root, first["loc"], _fix(dict(first))) from None


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


def _error(path: Path, root: yaml.Node, where: Where, message: str) -> CatalogError:
    line, steps = _locate(root, where)
    return CatalogError(f"{path}:{line}: {'.'.join(steps) or 'file'}: {message}")


def _locate(node: yaml.Node, where: Where) -> tuple[int, list[str]]:
    """The line of the deepest part of `where` that the file has, and the steps to it.

    Steps that are not in the file are names that pydantic adds for the members of a union.
    """
    line, steps = node.start_mark.line, []
    for step in where:
        if isinstance(node, yaml.MappingNode):
            found = next(((k, v) for k, v in node.value if k.value == str(step)), None)
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int):
            found = (node.value[step], node.value[step])
        else:
            found = None
        if found is None:
            continue
        line, node = found[0].start_mark.line, found[1]
        steps.append(str(step))
    return line + 1, steps


def _fix(error: dict[str, Any]) -> str:
    """One sentence: what is wrong, and what to write instead."""
    name = str(error["loc"][-1]) if error["loc"] else ""
    if error["type"] == "extra_forbidden":
        near = difflib.get_close_matches(name, _NAMES, n=1)
        return f"unknown field {name!r}: " + (f"did you mean {near[0]!r}?" if near else "remove it")
    if error["type"] == "missing":
        return f"{name!r} is missing: add it"
    if error["type"] == "union_tag_not_found":
        return "'kind' is missing: add kind: json, csv or html"
    message = str(error["msg"]).removeprefix("Value error, ")
    return f"{message} (found {error['input']!r})"


_NAMES = sorted(
    {
        *Declaration.model_fields,
        *SourceSpec.model_fields,
        *RelationSpec.model_fields,
        *MethodSpec.model_fields,
    }
    | {"path", "query", "form", "headers", "method", "join"}
    | {"kind", "rows", "table", "details", "nothing", "delimiter", "param", "first", "total", "next"}
)
