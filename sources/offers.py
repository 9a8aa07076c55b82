"""What a plugin may offer, and the declarations that are in it."""

from __future__ import annotations

import inspect
import types
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from mediator.catalog.functions import Function
from mediator.errors import CatalogError
from sources.complaint import Where
from sources.declaration import Declaration
from sources.importing import failure
from sources.loading import parts_at
from sources.parts import Part
from sources.python.classes import Relation
from sources.python.part import part_of, part_of_module

_KINDS = (
    "a module, a class derived from sources.Relation, what sources.function makes, a path, "
    "or a function that returns one of these or a list"
)
_DEEPEST = 5


def parts_offered(given: object, origin: str, variables: Mapping[str, str], deep: int = 0) -> list[Part]:
    """The declarations of a module with the YAML files of its folder, of a class, of a path, or of several."""
    if deep > _DEEPEST:
        raise CatalogError("lists in lists in lists: return one list")
    if isinstance(given, types.ModuleType):
        return _of_module(given, origin, variables)
    if inspect.isclass(given) and issubclass(given, Relation):
        return [part_of([given], (), origin, variables)]
    if isinstance(given, Function):
        return [replace(part_of([], (), origin, variables), functions=(given,))]
    if isinstance(given, str | Path):
        return parts_at(Path(given), variables, origin)
    if isinstance(given, Declaration):
        return [Part(given, origin, lambda where, message: _somewhere(origin, where, message))]
    if inspect.isroutine(given):
        try:
            returned = given()
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise failure(error, origin) from None
        return parts_offered(returned, origin, variables, deep + 1)
    if isinstance(given, Iterable) and not isinstance(given, Mapping | bytes):
        return [part for one in given for part in parts_offered(one, origin, variables, deep + 1)]
    raise CatalogError(f"it offers {given!r:.60}, which declares nothing: offer {_KINDS}")


def _of_module(module: types.ModuleType, origin: str, variables: Mapping[str, str]) -> list[Part]:
    folders = [Path(folder) for folder in getattr(module, "__path__", ())]
    files = sorted(file for folder in folders for file in folder.glob("*.yaml"))
    found = [part for file in files for part in parts_at(file, variables, origin)]
    classes = part_of_module(module, origin, variables)
    if classes is not None:
        found.append(classes)
    if not found:
        raise CatalogError(
            f"the module {module.__name__} declares nothing: derive a class from sources.Relation in it, "
            "or lay *.yaml files beside its __init__.py"
        )
    return found


def _somewhere(origin: str, where: Where, message: str) -> CatalogError:
    return CatalogError(f"{origin}: {'.'.join(map(str, where))}: {message}")
