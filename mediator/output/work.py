"""What a turn of a query came to: what is to be asked, and what is to be told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from mediator.flow.events import Ask, Cancel, Urge
from mediator.output.records import Record, Rows

# By the number of an answer in its batch: the ids of the partial answers that it completes.
Completes = Mapping[int, tuple[int, ...]]


@dataclass(slots=True)
class Work:
    """What a turn came to."""

    commands: list[Ask | Cancel] = field(default_factory=list)
    answers: list[pa.RecordBatch] = field(default_factory=list)
    told: list[Record] = field(
        default_factory=list
    )  # the same answers, and partial ones, where those are wanted
    urges: list[Urge] = field(default_factory=list)  # to be obeyed after the commands

    def add(self, later: Work) -> None:
        self.commands += later.commands
        self.answers += later.answers
        self.told += later.told
        self.urges += later.urges

    @property
    def records(self) -> list[Record]:
        """All that there is to tell, in its order."""
        return self.told or [Rows(batch) for batch in self.answers]
