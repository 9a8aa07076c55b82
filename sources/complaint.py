"""How a declaration is told what is wrong with it. Who read the file adds its name and the line."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

Where = tuple[str | int, ...]


class Complaint(Exception):
    """Something in a declaration that cannot be meant, the place of it, and the way out."""

    def __init__(self, where: Where, message: str) -> None:
        super().__init__(message)
        self.where = where
        self.message = message


def known(name: str, names: Iterable[str], where: Where, kind: str) -> None:
    """Raises a `Complaint` for a name that is none of these."""
    if name not in (names := list(names)):
        near = difflib.get_close_matches(name, names, n=1)
        fix = f"did you mean {near[0]!r}?" if near else f"use one of: {', '.join(names) or 'none declared'}"
        raise Complaint(where, f"unknown {kind} {name!r}: {fix}")
