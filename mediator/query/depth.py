"""How deep brackets lie within each other: the parser's time grows with the cube of it, and at some depth its stack
ends, and the process with it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mediator.errors import Unparsable

_DEEPEST = 200
_PIECES = re.compile(
    r"""[eE]'(?:[^'\\]|\\.|'')*' | '(?:[^']|'')*' | "(?:[^"]|"")*" | --[^\n]* | /\*.*?\*/
      | (?P<opens> [(\[{] ) | (?P<closes> [)\]}] )""",
    re.DOTALL | re.VERBOSE,
)


def check_depth(sql: str) -> None:
    """Raises `Unparsable` where brackets lie deeper than anybody would write them."""
    for position, depth in _openings(sql):
        if depth > _DEEPEST:
            message = f"the statement is nested too deeply: there are more than {_DEEPEST} brackets within each other"
            raise Unparsable(message, sql=sql, position=position)


def _openings(sql: str) -> Iterator[tuple[int, int]]:
    """Where each bracket opens, and how deep it lies."""
    depth = 0
    for piece in _PIECES.finditer(sql):
        if piece["opens"]:
            depth += 1
            yield piece.start(), depth
        elif piece["closes"]:
            depth -= 1
