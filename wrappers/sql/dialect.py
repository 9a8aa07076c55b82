"""Where the SQL of the databases differs, and how a value is put to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime


@dataclass(frozen=True, slots=True)
class Dialect:
    """`place` begins a parameter. One that is not `typed` knows numbers and texts, but no dates or truth values."""

    name: str
    place: str
    typed: bool

    def value(self, value: object) -> object:
        """A bound value as the driver takes it."""
        if isinstance(value, date | datetime) and not self.typed:
            return value.isoformat()
        return value


# By the scheme of a source's address.
DIALECTS: Mapping[str, Dialect] = {
    "postgresql": Dialect("PostgreSQL", "$", typed=True),
    "sqlite": Dialect("SQLite", "?", typed=False),
}


def quoted(name: str) -> str:
    """A name as it stands in the database, whatever is in it."""
    return '"' + name.replace('"', '""') + '"'
