"""Python files and modules as parts of a catalog; what goes wrong on the way is told with the file and the line."""

from __future__ import annotations

import importlib
import traceback
from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from mediator.errors import CatalogError
from sources.advice import advice
from sources.modules import module_at
from sources.parts import Part
from sources.python.part import part_of_module
from wrappers import code_failure

_MACHINERY = ("<frozen", str(Path(importlib.__file__).parent), str(Path(__file__).parent), "pydantic/")


def part_at(path: Path, origin: str, variables: Mapping[str, str]) -> Part:
    """The relations and functions that a file declares."""
    try:
        module = module_at(path)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise failure(error, str(path)) from None
    found = part_of_module(module, origin, variables)
    if found is None:
        raise CatalogError(
            f"{path}: no relation is declared here: derive a class from sources.Relation, or make a function with "
            "sources.function"
        )
    return found


def failure(error: BaseException, file: str) -> CatalogError:
    """Why something could not be imported: what was raised, in which line of whose file."""
    if isinstance(error, CatalogError):
        return error
    if isinstance(error, SyntaxError) and error.filename:
        return CatalogError(f"{error.filename}:{error.lineno or 1}: not Python: {error.msg}: correct it")
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not any(part in frame.filename for part in _MACHINERY)
    ]
    where = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else file
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        said = ".".join(map(str, (error.title, *first["loc"])))
        model = (
            "SourceSpec" if error.title == "Source" else error.title
        )  # the part of the schema that has its fields
        return CatalogError(f"{where}: {said}: {advice({**first, 'loc': (model, *first['loc'])})}")
    return CatalogError(f"{where}: cannot be imported: {code_failure(error)}: mend it")
