"""How deep brackets lie within each other, how many follow one another, and how long names are: the parser's time grows
with a power of that, and at some depth its stack ends, and the process with it."""

from __future__ import annotations

import re

from mediator.errors import Unparsable

_DEEPEST = 200
_LONGEST = 50  # subscripts of one value: a[1][2]...; parts of a name
_PIECES = re.compile(
    r"""(?P<name> (?<!\w) (?:\w+|"(?:[^"]|"")*") (?:\s*\.\s*(?:\w+|"(?:[^"]|"")*")){50,} )
      | (?<!\w)[eE]'(?:[^'\\]|\\.|'')*' | '(?:[^']|'')*' | "(?:[^"]|"")*"
      | \$(?P<tag>[A-Za-z_]\w*)?\$.*?\$(?(tag)(?P=tag))\$
      | (?P<comment> --[^\n]* | /\*.*?\*/ ) | (?P<opens> [(\[{] ) | (?P<closes> [)\]}] )""",
    re.DOTALL | re.VERBOSE,
)


def check_depth(sql: str) -> None:
    """Raises `Unparsable` where there are more brackets than anybody would write."""
    depth = chain = 0
    end = -1  # of the subscript before, and of comments after it
    for piece in _PIECES.finditer(sql):
        follows = end >= 0 and not sql[end : piece.start()].strip()
        if piece["name"]:
            raise _too_deep(sql, piece.start())
        if piece["comment"]:
            end = piece.end() if follows else -1
        elif piece["opens"]:
            depth += 1
            chain = chain + 1 if follows and piece["opens"] == "[" else 0
            if depth > _DEEPEST or chain > _LONGEST:
                raise _too_deep(sql, piece.start())
        elif piece["closes"]:
            depth -= 1
            end = piece.end()


def _too_deep(sql: str, position: int) -> Unparsable:
    return Unparsable(
        f"the statement is nested too deeply: there are more than {_DEEPEST} brackets within each other, or {_LONGEST} "
        "subscripts or parts of a name after one another",
        sql=sql,
        position=position,
    )
