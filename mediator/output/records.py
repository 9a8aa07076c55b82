"""What a query tells while it runs: its answers and, where asked for, partial answers and what became of them.

Plain data, in the order in which it came about. The faces show it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Self

import pyarrow as pa


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Answers. `completes` says which partial answers they complete: by the number of the row in the batch."""

    batch: pa.RecordBatch
    completes: Mapping[int, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Partial:
    """Partial answers, each with an id that no other of the query has.

    The batch has the answers' own columns: those in `unknown` are NULL, since they are not known yet, and a NULL in
    any other is a value. `missing` are the aliases that no row is known of, `relations` theirs.
    """

    ids: tuple[int, ...]
    batch: pa.RecordBatch
    unknown: tuple[str, ...]
    missing: tuple[str, ...]
    relations: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Withdrawn:
    """Partial answers that no answer completes, and why none does."""

    ids: tuple[int, ...]
    why: str


Record = Rows | Partial | Withdrawn


@dataclass(frozen=True, slots=True)
class PartialReport:
    """What a query's partial answers came to."""

    given: int = 0
    completed: int = 0
    withdrawn: int = 0
    left: int = 0  # open still; at the end of the run: nobody will know
    left_out: int = 0  # that were found while as many were open as may be
    most: int = 0  # that may be open at once
    lookups: int = 0  # sent for the sake of partial answers, of which an answer may have use all the same
    missing: tuple[str, ...] = ()  # relations that those left wait for

    def line(self) -> str:
        parts = [f"{self.given} given", f"{self.completed} completed", f"{self.withdrawn} withdrawn"]
        if self.left:
            parts.append(f"{self.left} left without {', '.join(self.missing)}")
        if self.lookups:
            parts.append(f"{self.lookups} lookups sent for them")
        if self.left_out:
            parts.append(f"{self.left_out} left out, because {self.most} were open")
        return f"partial answers: {', '.join(parts)}"

    def as_dict(self) -> dict[str, object]:
        return {
            "given": self.given,
            "completed": self.completed,
            "withdrawn": self.withdrawn,
            "left": self.left,
            "left_out": self.left_out,
            "lookups": self.lookups,
            "missing": list(self.missing),
        }


class Records:
    """What a query tells, one by one. It can be left and taken up again at any record."""

    def __init__(self, following: Callable[[], Awaitable[Record | None]]) -> None:
        self._following = following

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Record:
        record = await self._following()
        if record is None:
            raise StopAsyncIteration
        return record
