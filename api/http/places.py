"""Where a reader is in what a query tells: what an event's id says, and a client gives back."""

from __future__ import annotations

import re
from typing import NamedTuple

from api.http.problems import Problem

_ID = re.compile(r"(\d{1,15})(?:\.(\d{1,9}))?", re.ASCII)


class Place(NamedTuple):
    """After this entry, and so many rows of the next."""

    entry: int = 0
    rows: int = 0

    @classmethod
    def read(cls, text: str | None) -> Place:
        """From an id. Raises a `Problem` for what never was one."""
        if not text:
            return cls()
        match = _ID.fullmatch(text)
        if match is None:
            raise Problem(
                400, "invalid-request", f"{text[:40]!r} is not the id of an event",
                hint="give the last `id` that came, as it came",
            )  # fmt: skip
        return cls(int(match[1]), int(match[2] or 0))

    def __str__(self) -> str:
        return f"{self.entry}.{self.rows}" if self.rows else f"{self.entry}"
