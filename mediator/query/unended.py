"""Where a text goes wrong that cannot be read as SQL at all: at a quotation or a comment that has no end."""

from __future__ import annotations

import re

_OPENING = re.compile(r"--|/\*|'|\"|\$\w*\$")
_CLOSING = {
    "--": re.compile(r"[^\n]*"),
    "/*": re.compile(r".*?\*/", re.DOTALL),
    '"': re.compile(r'[^"]*"'),
    "'": re.compile(r"[^']*'"),
}
_ESCAPED = re.compile(r"(?:\\.|[^'\\])*'", re.DOTALL)
_NAMES = {"'": "a string", '"': "a quoted name", "/*": "a comment"}


def unended(sql: str) -> tuple[int, str] | None:
    """Where the quotation or comment begins that has no end, and what it is; none where each has one."""
    at = 0
    while (opening := _OPENING.search(sql, at)) is not None:
        mark = opening[0]
        closing = _closing(mark, sql, opening.start()).match(sql, opening.end())
        if closing is None:
            return opening.start(), _NAMES.get(mark, "a string")
        at = closing.end()
    return None


def _closing(mark: str, sql: str, at: int) -> re.Pattern[str]:
    """What goes on to the end of it."""
    if mark == "'" and re.search(r"(?<!\w)[eE]\Z", sql[max(at - 2, 0) : at]):
        return _ESCAPED
    return _CLOSING.get(mark) or re.compile(f".*?{re.escape(mark)}", re.DOTALL)
