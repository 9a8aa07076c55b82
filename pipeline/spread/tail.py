"""What becomes of a spread's rows on their way to whoever asked: the last stage, where that goes row by row, and what
was given before, which is not given again."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pyarrow as pa

from mediator.output.finish import Streaming
from mediator.output.subtracting import Subtracting
from pipeline.spread.plan import Plan


@dataclass
class Before:
    """Answers that were given by somebody else."""

    rows: Subtracting = field(default_factory=Subtracting)
    count: int = 0

    def given(self, batch: pa.RecordBatch) -> None:
        self.rows.given(batch)
        self.count += batch.num_rows


class Tail:
    def __init__(self, plan: Plan, before: Before | None = None) -> None:
        self._before = before
        stage = plan.tail
        self._made = Streaming(replace(stage, limit=None, offset=0)) if stage is not None else None
        self._cut: Streaming | None = None
        if stage is not None and (stage.limit is not None or stage.offset):
            given = before.count if before is not None else 0
            limit = None if stage.limit is None else max(0, stage.limit - given)
            self._cut = Streaming(replace(stage, sql="", distinct=False, limit=limit))

    @property
    def passes(self) -> bool:
        """Whether rows go by as they are."""
        return self._before is None and self._made is None

    @property
    def done(self) -> bool:
        """LIMIT is reached."""
        return self._cut is not None and self._cut.done

    def feed(self, name: str, batch: pa.RecordBatch) -> list[pa.RecordBatch]:
        """The answers that rows of a stage come to."""
        found = [batch] if self._made is None else self._made.feed(name, batch)
        if self._before is not None:
            found = [rest for one in found if (rest := self._before.rows.rest(one)).num_rows]
        if self._cut is None:
            return found
        return [out for one in found for out in self._cut.feed(name, one)]
