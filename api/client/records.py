"""What a query tells while it runs, record by record, as `docs/http.md` has it. Plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

Row = Any  # an object by column name, or an array in the order of the columns


@dataclass(frozen=True, slots=True)
class Start:
    """First: the columns of the answers, each with its `name` and `type`."""

    query: str
    columns: Sequence[Mapping[str, str]] = ()
    warnings: Sequence[str] = ()
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Rows:
    """Answers. `completes` says which partial answers they complete: ids, by the number of the row in `rows`."""

    rows: Sequence[Row]
    completes: Mapping[str, Sequence[int]] = field(default_factory=dict)
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Partial:
    """Answers of which the columns in `unknown` are not known yet; an id for each."""

    ids: Sequence[int]
    rows: Sequence[Row]
    unknown: Sequence[str] = ()
    missing: Sequence[str] = ()
    relations: Sequence[str] = ()
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """Partial answers that no answer completes."""

    ids: Sequence[int]
    why: str = ""
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The whole answer as it stands. It takes the place of the one before, and rows that come take the place of it."""

    rows: Sequence[Row]
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """How it goes: per source what was asked, answered, failed, is in flight, waits."""

    seconds: float = 0.0
    rows: int = 0
    sources: Any = None
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Note:
    """Something failed, a budget is nearly spent."""

    kind: str = ""
    message: str = ""
    source: str | None = None
    relation: str | None = None
    id: str | None = None


@dataclass(frozen=True, slots=True)
class End:
    """Last, always: `complete`, `partial`, `cancelled` or `failed`, and the report."""

    status: str
    report: Mapping[str, Any] = field(default_factory=dict)
    problem: Mapping[str, Any] | None = None
    id: str | None = None

    @property
    def complete(self) -> bool:
        """Whether these are all the answers that there are."""
        return self.status == "complete"


Record = Start | Rows | Partial | Withdrawn | Snapshot | Progress | Note | End

_TYPES: Mapping[str, type[Record]] = {
    "start": Start,
    "rows": Rows,
    "partial": Partial,
    "withdrawn": Withdrawn,
    "snapshot": Snapshot,
    "progress": Progress,
    "note": Note,
    "end": End,
}
_FIELDS = {kind: frozenset(f.name for f in fields(kind)) for kind in _TYPES.values()}


def record_of(said: Mapping[str, Any]) -> Record | None:
    """None for a type that is not known here: a newer server may tell more. What it adds to a record is left out."""
    kind = _TYPES.get(said.get("type", ""))
    if kind is None:
        return None
    known = _FIELDS[kind]
    return kind(**{name: value for name, value in said.items() if name in known})
