"""Python files that are loaded by their path, each folder as a package of its own, so that files can share code."""

from __future__ import annotations

import ast
import hashlib
import importlib.machinery
import importlib.util
import sys
import types
from collections.abc import Iterable, Mapping
from pathlib import Path

_PREFIX = "mediator_folder_"
_DECLARING = ("Relation", "function", "*")


def module_at(path: Path) -> types.ModuleType:
    """The module of a file, executed anew. `from . import other` in it means the file beside it.

    Raises whatever the file raises.
    """
    path = path.resolve()
    package = _package(path.parent)
    name = f"{package}.{path.stem}"
    loader = _FromSource(name, str(path))
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def declares(path: Path) -> bool:
    """Whether a file has classes made with `sources.Relation`, or functions made with `sources.function`, as far as can
    be seen without running it.

    A folder of declarations may have files beside them that are to be run by somebody else, such as tests.
    A file that is not Python is not told from one that is: whoever runs it hears why.
    """
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return b"sources" in path.read_bytes()
    return any(map(_imports_what_declares, ast.walk(tree))) and any(map(_may_declare, tree.body))


def _may_declare(part: ast.stmt) -> bool:
    if isinstance(part, ast.ClassDef):
        return bool(part.bases)
    return isinstance(part, ast.FunctionDef) and bool(part.decorator_list)


def _imports_what_declares(part: ast.AST) -> bool:
    if isinstance(part, ast.ImportFrom):
        return part.module == "sources" and any(name.name in _DECLARING for name in part.names)
    return isinstance(part, ast.Import) and any(name.name == "sources" for name in part.names)


def module_name(name: str) -> str:
    """A module's name for people: without the package that its folder became."""
    return name.partition(".")[2] if name.startswith(_PREFIX) else name


class _FromSource(importlib.machinery.SourceFileLoader):
    """Reads the file each time and writes nothing beside it: a compiled copy may be older than it looks."""

    def get_code(self, fullname: str) -> types.CodeType:
        path = self.get_filename(fullname)
        code: types.CodeType = self.source_to_code(self.get_data(path), path)
        return code


def _package(folder: Path) -> str:
    """The name of a package without code whose modules are the folder's files."""
    name = _PREFIX + hashlib.sha256(str(folder).encode()).hexdigest()[:12]
    if name not in sys.modules:
        package = types.ModuleType(name)
        package.__path__ = [str(folder)]
        sys.modules[name] = package
    return name


def folders() -> list[str]:
    """Those whose files were loaded here."""
    packages = {name: module for name, module in sys.modules.items() if name.startswith(_PREFIX)}
    return [module.__path__[0] for name, module in packages.items() if "." not in name]


def importable(known: Iterable[str]) -> None:
    """Files of these folders can be imported by the names that they have where they were loaded by their path."""
    for folder in known:
        _package(Path(folder))


def public_values(module: types.ModuleType) -> Mapping[str, object]:
    """What a module offers: `__all__` where it says so, else every name without an underscore."""
    names: Iterable[str] = getattr(module, "__all__", None) or [n for n in vars(module) if n[:1] != "_"]
    return {name: getattr(module, name, None) for name in names}
