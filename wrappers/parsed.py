"""What every reader of a format gives: columns, and a way to look beside the rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from mediator.catalog.model import Field
from mediator.catalog.wrapper import Reply


@dataclass(frozen=True, slots=True)
class Parsed:
    """The columns of the fields asked for, in their order, and `count` rows of each.

    `find` reads a value that stands beside the rows, such as the number of pages: a `str`, an `int` or None.
    """

    columns: tuple[pa.Array, ...]
    count: int
    find: Callable[[str], object]


class Reader(Protocol):
    """A format, and where in it the fields are.

    `parse` raises `Unreadable` for what is not of this format, `SchemaChanged` for what is but lacks a field.
    """

    def parse(self, relation: str, fields: Sequence[Field], reply: Reply) -> Parsed: ...


def charset(reply: Reply) -> str:
    """The encoding that the reply says it has; UTF-8 where it says nothing."""
    for name, value in reply.headers.items():
        if name.lower() == "content-type" and "charset=" in value.lower():
            return value.lower().split("charset=", 1)[1].split(";")[0].strip(" \"'")
    return "utf-8"
