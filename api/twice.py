"""The demo's query once more, in cells on Spark: the answers are the same."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
from rich.console import Console
from rich.text import Text

from api.output import Receiver
from api.progress import Progress
from api.running import Question, run
from api.verdict import print_report
from api.wording import many
from mediator.answering import Mediator
from mediator.catalog.model import Catalog
from pipeline.errors import NoSpark

_WHAT = "The same query on Spark: its rows meet in cells, each with an eddy of its own. Spark needs a while to start."


class Gathered:
    """A receiver that remembers what it was given, and hands it on where somebody wants it."""

    def __init__(self, to: Receiver | None = None) -> None:
        self._to = to
        self.rows: Counter[tuple[object, ...]] = Counter()

    def open(self, schema: pa.Schema) -> None:
        if self._to is not None:
            self._to.open(schema)

    def take(self, batch: pa.RecordBatch) -> None:
        self.rows.update(zip(*(column.to_pylist() for column in batch.columns), strict=True))
        if self._to is not None:
            self._to.take(batch)

    def close(self) -> None:
        if self._to is not None:
            self._to.close()

    @property
    def forsaken(self) -> bool:
        return self._to is not None and self._to.forsaken


async def same_on_spark(
    sql: str, catalog: Catalog, here: Gathered, console: Console, progress: Progress
) -> bool:
    """Whether the answers there are those that were found here; said in either case. True where there is no Spark."""
    console.print(Text(_WHAT, "bold"), soft_wrap=True)
    console.print()
    there = Gathered()
    try:
        async with Mediator(catalog) as mediator:
            outcome = await run(mediator, Question(sql, {}, engine="spark"), there, progress)
    except NoSpark as error:
        console.print(Text(f"Not done: {error}", "yellow"), soft_wrap=True)
        return True
    print_report(console, outcome)
    same = there.rows == here.rows
    said = f"the same {many(here.rows.total(), 'answer')} as before" if same else "other answers than before"
    console.print(Text(f"  {said}", "green" if same else "red"))
    return same
