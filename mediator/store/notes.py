"""Small files beside the manifest, each a JSON document that is replaced as a whole, or not at all."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

_MOST = 64 << 20  # bytes: what is longer was not written here


class Unreadable(ValueError):
    """A file that is there, and is not what was written."""


def read(path: Path) -> dict[str, Any] | None:
    """What stands in it; None where there is no such file."""
    try:
        with path.open("rb") as file:
            text = file.read(_MOST + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Unreadable(f"{path} cannot be read: {error.strerror}") from None
    try:
        found = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"{path} is damaged: {error}") from None
    if not isinstance(found, dict):
        raise Unreadable(f"{path} is damaged: it holds no JSON object")
    return found


def replace(path: Path, content: dict[str, Any]) -> None:
    """When it returns, the new content outlives the process and the machine; until then the old one does."""
    unfinished = path.with_name(path.name + ".unfinished")
    with unfinished.open("w", encoding="utf-8") as file:
        json.dump(content, file, allow_nan=False)
        file.flush()
        os.fsync(file.fileno())
    os.replace(unfinished, path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number")
