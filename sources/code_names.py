"""The code that a declaration names: `my_package.module:Class`, or `signing.py:Class` for a file beside it."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path
from typing import Any

from pydantic import ValidationInfo

from sources.modules import module_at
from wrappers import Code, code_failure

_FUNCTIONS = ("request", "rows")


def found_code(said: object, info: ValidationInfo) -> Code:
    """Raises `ValueError` for what cannot be imported, or has neither of the two functions."""
    if isinstance(said, Code):
        return said
    if not isinstance(said, str):
        raise ValueError("write the name of a class, my_package.module:Class")
    module_name, colon, name = said.partition(":")
    if not colon or not module_name or not name:
        raise ValueError("not the name of a class: write my_package.module:Class, or file.py:Class")
    folder = info.context.get("folder") if isinstance(info.context, dict) else None
    return code_of(said, _class(_module(module_name, folder), name))


def code_of(name: str, owner: type) -> Code:
    """A class with `request`, `rows`, or both, as a part of a wrapper."""
    found = {part: _function(owner, part) for part in _FUNCTIONS}
    if not any(found.values()):
        raise ValueError(
            f"{owner.__name__} has neither 'request' nor 'rows': define one of them, or both, as methods"
        )
    return Code(name, owner, **found)


def _module(name: str, folder: Path | None) -> Any:
    try:
        if not name.endswith(".py"):
            return importlib.import_module(name)
        if folder is None:
            raise ValueError("only a file of declarations has files beside it: write my_package.module:Class")
        if not (folder / name).is_file():
            raise ValueError(f"there is no {name} beside this file: correct the name")
        return module_at(folder / name)
    except (ValueError, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise ValueError(f"{name} cannot be imported: {code_failure(error)}: mend or install it") from None


def _class(module: Any, name: str) -> type:
    found = module
    for step in name.split("."):
        found = getattr(found, step, None)
    if not inspect.isclass(found):
        classes = sorted(n for n, value in vars(module).items() if inspect.isclass(value) and n[:1] != "_")
        raise ValueError(
            f"there is no class {name!r} in it: use one of: {', '.join(classes) or 'none defined'}"
        )
    return found


def _function(owner: type, name: str) -> Any:
    found = inspect.getattr_static(owner, name, None)
    if found is None:
        return None
    if not inspect.isfunction(found):
        raise ValueError(f"{owner.__name__}.{name} is no method: write def {name}(self, ...)")
    return found
