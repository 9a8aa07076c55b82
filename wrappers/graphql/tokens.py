"""The words of a GraphQL document, each with its line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

LONGEST = 100_000  # characters of a document

_TOKEN = re.compile(
    r"""
    (?P<space> [\s,\ufeff]++ | \#[^\n]*+ )
    | (?P<text> \"\"\"(?:\\\"\"\"|(?!\"\"\")[\s\S])*+\"\"\" | "(?!"")(?:\\.|[^"\\\n])*+" )
    | (?P<name> [_A-Za-z][_0-9A-Za-z]*+ )
    | (?P<number> -?[0-9]++(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)? )
    | (?P<mark> \.\.\. | [!$&()\[\]{}:=@|] )
    """,
    re.VERBOSE,
)


class NotGraphql(ValueError):
    """What is wrong with a document, with its line there."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(f"line {line} of the query: {message}")


@dataclass(frozen=True, slots=True)
class Token:
    kind: str  # name, number, text, mark or end
    text: str
    line: int


def tokens(document: str) -> Iterator[Token]:
    """All of them, and one that says that there are no more. Raises `NotGraphql` for what is none."""
    if len(document) > LONGEST:
        raise NotGraphql(1, f"more than {LONGEST:,} characters")
    at, line = 0, 1
    while at < len(document):
        found = _TOKEN.match(document, at)
        if found is None:
            what = (
                "a text that does not end" if document[at] == '"' else f"{document[at]!r} has no meaning here"
            )
            raise NotGraphql(line, what)
        if found.lastgroup != "space":
            yield Token(found.lastgroup or "", found[0], line)
        line += found[0].count("\n")
        at = found.end()
    yield Token("end", "the end", line)
