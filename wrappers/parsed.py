"""What every reader of a format gives: columns, and a way to look beside the rows."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from mediator.catalog.model import Field
from mediator.catalog.wrapper import Reply
from mediator.errors import Unreadable

_NOT_FOR_REPLIES = frozenset(
    {"idna", "punycode", "utf-7", "unicode-escape", "raw-unicode-escape", "undefined"}
)


@dataclass(frozen=True, slots=True)
class Parsed:
    """The columns of the fields asked for, in their order, and `count` rows of each.

    `find` reads a value that stands beside the rows, such as the number of pages: a `str`, an `int` or None. `base` is
    where the links of the page begin, if it says so.
    """

    columns: tuple[pa.Array, ...]
    count: int
    find: Callable[[str], object]
    base: str = ""


class Reader(Protocol):
    """A format, and where in it the fields are."""

    def parse(self, relation: str, fields: Sequence[Field], reply: Reply) -> Parsed:
        """Raises `Unreadable` for what is not of this format, `SchemaChanged` for what is but lacks a field."""
        ...

    def look(self, reply: Reply, path: str) -> object:
        """The value at one place of a reply that need not have rows, or ABSENT, also where it is unreadable."""
        ...


def charset(reply: Reply) -> str:
    """The encoding that the reply says it has, in lower case; empty where it says nothing."""
    for name, value in reply.headers.items():
        if name.lower() == "content-type" and "charset=" in value.lower():
            return value.lower().split("charset=", 1)[1].split(";")[0].strip(" \"'")
    return ""


def decoded(what: str, body: bytes, encoding: str) -> str:
    """The body as text. Raises `Unreadable`, which begins with `what`, where it is not in that encoding.

    Some of Python's codecs are no charsets of the web, and a few of them take hours over a long text.
    """
    try:
        if codecs.lookup(encoding).name.replace("_", "-") in _NOT_FOR_REPLIES:
            raise LookupError(f"unknown encoding: {encoding}")
        return body.decode(encoding)
    except (UnicodeError, LookupError, ValueError) as error:
        raise Unreadable(f"{what}: {str(error)[:200]}") from None
