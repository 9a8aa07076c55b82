"""The classes of a module as a part of a catalog; whose class and which line is at fault is read from its source."""

from __future__ import annotations

import ast
import inspect
import sys
import types
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from mediator.catalog.functions import Function
from mediator.errors import CatalogError
from sources.complaint import Complaint, Where
from sources.modules import public_values
from sources.parts import Part, part
from sources.python.classes import Relation, Source
from sources.python.content import content_of, name_of

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def part_of(
    relations: Sequence[type[Relation]],
    sites: Iterable[Source],
    origin: str,
    variables: Mapping[str, str],
    files: Iterable[str] = (),
) -> Part:
    """Raises `CatalogError`, with file, line, class and attribute, for classes that cannot be meant."""
    by_name = {name_of(relation): relation for relation in relations}
    marks = _Marks(by_name, (*files, *filter(None, map(_file, by_name.values()))), origin)
    for relation in relations:
        if by_name[name_of(relation)] is not relation:
            raise marks.error(
                ("relations", name_of(relation)),
                f"relation {name_of(relation)!r} is declared twice, by {by_name[name_of(relation)].__qualname__} "
                f"and {relation.__qualname__}: give one of them another name",
            )
    try:
        content = content_of(relations, sites)
    except Complaint as complaint:
        raise marks.error(complaint.where, complaint.message) from None
    folder = Path(marks.files[0]).parent if marks.files else None
    return part(content, origin, marks.error, variables, folder)


def part_of_module(module: types.ModuleType, origin: str, variables: Mapping[str, str]) -> Part | None:
    """What a module offers: relations that it or a module below it defines, sources, and functions for queries to
    call. None where it has none."""
    values = list(public_values(module).values())
    inside = f"{module.__name__}."
    relations = [
        v
        for v in values
        if inspect.isclass(v)
        and issubclass(v, Relation)
        and not v._declared.abstract
        and f"{v.__module__}.".startswith(inside)
    ]
    sites = [v for v in values if isinstance(v, Source)]
    functions = tuple(dict.fromkeys(v for v in values if isinstance(v, Function)))
    if not relations and not sites and not functions:
        return None
    files = filter(None, [module.__file__])
    return replace(
        part_of(list(dict.fromkeys(relations)), sites, origin, variables, files), functions=functions
    )


@dataclass(frozen=True)
class _Marks:
    """Where in their files classes say what they say."""

    relations: Mapping[str, type[Relation]]
    files: tuple[str, ...]
    origin: str

    def error(self, where: Where, message: str) -> CatalogError:
        kind, name, *steps = (*where, "", "")[: max(2, len(where))]
        if kind == "relations" and (relation := self.relations.get(str(name))) is not None:
            return self._in_class(relation, steps, message)
        for file in self.files:
            if kind == "sources" and (call := _source(_tree(file), str(name))) is not None:
                line, found = _inside(call, steps)
                said = ".".join((f"Source({name})", *found))
                return CatalogError(f"{file}:{line or call.lineno}: {said}: {message}")
        place = ".".join(str(step) for step in where if step != "")
        file = self.files[0] if self.files else self.origin or "declared"
        return CatalogError(f"{file}: {place or 'module'}: {message}")

    def _in_class(self, relation: type[Relation], steps: Sequence[str | int], message: str) -> CatalogError:
        file = _file(relation)
        found = _class(_tree(file), relation.__qualname__) if file else None
        if found is None:
            said = ".".join((relation.__qualname__, *map(str, steps)))
            return CatalogError(f"{file or relation.__module__}: {said}: {message}")
        line, names = found.lineno, [relation.__qualname__]
        if steps[:1] == ["key"] or len(steps) < 2:
            inner, more = _keyword(found.keywords, steps)
        else:  # "fields" or "methods", and then the attribute
            inner, more = _member(found, str(steps[1]), steps[2:])
            names.append(str(steps[1]))
        return CatalogError(f"{file}:{inner or line}: {'.'.join((*names, *more))}: {message}")


def _file(relation: type[Relation]) -> str | None:
    module = sys.modules.get(relation.__module__)
    return getattr(module, "__file__", None)


@cache
def _parsed(file: str, changed: int) -> ast.Module:
    try:
        return ast.parse(Path(file).read_bytes())
    except (SyntaxError, ValueError):
        return ast.Module([], [])


def _tree(file: str) -> ast.Module:
    try:
        return _parsed(file, Path(file).stat().st_mtime_ns)
    except OSError:
        return ast.Module([], [])


def _class(tree: ast.Module, qualname: str) -> ast.ClassDef | None:
    """By its qualified name; one inside a function has its function in it."""
    body: Sequence[ast.stmt] = tree.body
    found: ast.stmt | None = None
    for name in qualname.split("."):
        if name == "<locals>":
            continue
        found = next(
            (s for s in body if isinstance(s, ast.ClassDef | ast.FunctionDef) and s.name == name), None
        )
        if not isinstance(found, ast.ClassDef | ast.FunctionDef):
            return None
        body = found.body
    return found if isinstance(found, ast.ClassDef) else None


def _member(cls: ast.ClassDef, name: str, steps: Sequence[str | int]) -> tuple[int, list[str]]:
    for statement in cls.body:
        value: ast.expr | None = None
        if isinstance(statement, ast.Assign):
            if not any(isinstance(t, ast.Name) and t.id == name for t in statement.targets):
                continue
            value = statement.value
        elif isinstance(statement, ast.AnnAssign):
            if not (isinstance(statement.target, ast.Name) and statement.target.id == name):
                continue
            value = statement.value
        elif isinstance(statement, _DEFINITIONS) and statement.name == name:
            value = next((d for d in statement.decorator_list if isinstance(d, ast.Call)), None)
        else:
            continue
        line, found = _inside(value, steps)
        return line or statement.lineno, found
    return 0, []


def _inside(value: ast.AST | None, steps: Sequence[str | int]) -> tuple[int, list[str]]:
    """The line of the deepest step that is written there, and those that are; 0 where none is."""
    line, names = 0, []
    for step in steps:
        inner: ast.AST | None = None
        if isinstance(value, ast.Call):
            inner = next((k.value for k in value.keywords if k.arg == step), None)
        elif isinstance(value, ast.Dict):
            pairs = zip(value.keys, value.values, strict=True)
            inner = next((v for k, v in pairs if isinstance(k, ast.Constant) and k.value == step), None)
        elif isinstance(value, ast.List | ast.Tuple) and isinstance(step, int) and step < len(value.elts):
            inner = value.elts[step]
        if inner is not None:
            line, value = getattr(inner, "lineno", line), inner
            names.append(str(step))
    return line, names


def _keyword(keywords: Sequence[ast.keyword], steps: Sequence[str | int]) -> tuple[int, list[str]]:
    found = next((k for k in keywords if steps and k.arg == steps[0]), None)
    return (found.value.lineno, [str(steps[0])]) if found else (0, [])


def _source(tree: ast.Module, name: str) -> ast.Call | None:
    """The call that makes the source of this name."""
    for part_ in ast.walk(tree):
        if isinstance(part_, ast.Call):
            said = next((k.value for k in part_.keywords if k.arg == "name"), None)
            if isinstance(said, ast.Constant) and said.value == name:
                return part_
    return None
