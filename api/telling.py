"""`mediator demo`: a query over sites that are slow, stall and fail, told as it happens."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pyarrow as pa
from rich.console import Console
from rich.text import Text

from api.demo import Demo, Served
from api.output import Receiver
from api.progress import Progress
from api.running import Outcome, Question, run
from api.twice import Gathered, same_on_spark
from api.verdict import print_report, took
from mediator.access import HttpTransport, Transport
from mediator.access.statistics import SourceStatistics
from mediator.answering import Mediator, answer
from mediator.catalog.model import Mirror
from mediator.catalog.wrapper import Reply, Request
from mediator.errors import MediatorError

Clock = Callable[[], float]


@dataclass
class Log:
    """When what happened, on one clock that starts with the query."""

    clock: Clock = time.monotonic
    began: float = 0.0
    replies: int = 0
    last_reply: float = 0.0
    before_first_row: int | None = None  # replies

    @property
    def now(self) -> float:
        return self.clock() - self.began


@dataclass
class Overheard:
    """The engine's own transport, with a note of every reply."""

    transport: Transport
    log: Log

    async def send(self, mirror: Mirror, request: Request) -> Reply:
        try:
            return await self.transport.send(mirror, request)
        finally:
            self.log.replies += 1
            self.log.last_reply = self.log.now


@dataclass
class Timed:
    """Gives every row the seconds that had gone by when it came."""

    receiver: Receiver
    log: Log
    _schema: pa.Schema = field(init=False)

    def open(self, schema: pa.Schema) -> None:
        self._schema = schema.insert(0, pa.field("after", pa.string()))
        self.receiver.open(self._schema)
        self.log.began = self.log.clock()

    def take(self, batch: pa.RecordBatch) -> None:
        if self.log.before_first_row is None:
            self.log.before_first_row = self.log.replies
        when = pa.array([f"{self.log.now:.2f} s"] * batch.num_rows, pa.string())
        self.receiver.take(pa.RecordBatch.from_arrays([when, *batch.columns], schema=self._schema))

    def close(self) -> None:
        self.receiver.close()

    @property
    def forsaken(self) -> bool:
        return self.receiver.forsaken


async def tell(
    demo: Demo, served: Served, console: Console, receiver: Receiver, progress: Progress
) -> Outcome:
    """The whole story, from what will be asked to what it took."""
    log = Log()
    for line in opening(demo, served.url):
        console.print(line, soft_wrap=True)
    await asyncio.to_thread(rehearse, demo)
    async with (
        HttpTransport(served.catalog.sources) as transport,
        Mediator(served.catalog, transport=Overheard(transport, log), devoted=True) as mediator,
    ):
        here = Gathered(Timed(receiver, log))
        outcome = await run(mediator, Question(demo.sql, {}), here, progress)
    console.print()
    for line in timing(outcome, log):
        console.print(line, soft_wrap=True)
    console.print()
    print_report(console, outcome)
    console.print()
    for line in figures(outcome, served):
        console.print(line, soft_wrap=True)
    console.print()
    if await same_on_spark(demo.sql, served.catalog, here, console, progress):
        return outcome
    raise MediatorError("the answers on Spark are others than those before: that is a fault of the engine")


def rehearse(demo: Demo) -> None:
    """Loads the engine's loops, which the first run on a machine compiles: not what the story is about."""
    with demo.rehearse() as served:
        answer(demo.sql, served.catalog)


def opening(demo: Demo, url: str) -> Iterator[Text]:
    """What there is, what is hard about it, and what will be asked."""
    yield Text(demo.title, "bold")
    yield Text(f"They are served now, for this demo only, at {url}", "dim")
    yield Text()
    wide = max(len(name) for name, _ in demo.sites)
    for name, trouble in demo.sites:
        yield Text.assemble("  ", (name.ljust(wide), "cyan"), "  ", trouble)
    yield Text()
    yield Text("One query over all of them; each row is printed when it is found:")
    yield Text()
    for line in demo.sql.splitlines():
        yield Text(f"  {line}", "cyan")
    yield Text()


def timing(outcome: Outcome, log: Log) -> Iterator[Text]:
    if outcome.first is None or outcome.last is None:
        yield Text(took(outcome))
        return
    yield Text.assemble(
        ("first row  ", "bold"),
        f"after {outcome.first:.2f} s, when {log.before_first_row} of {log.replies} replies had come",
    )
    yield Text.assemble(("last row   ", "bold"), f"after {outcome.last:.2f} s")
    yield Text.assemble(("last reply ", "bold"), f"after {log.last_reply:.2f} s")


def figures(outcome: Outcome, served: Served) -> Iterator[Text]:
    """What every source was asked, and what the web did to it."""
    bases = {
        mirror.source: relation.name
        for relation in served.catalog.relations.values()
        for method in relation.methods
        for mirror in method.mirrors
    }
    head = f"{'source':<14}{'for':<9}{'requests':>8}{'retries':>9}{'median reply':>14}  faults put in its way"
    yield Text(head, "bold")
    for source in outcome.statistics.sources:
        if source.requests:
            yield _figure(source, bases[source.source], served)


def _figure(source: SourceStatistics, relation: str, served: Served) -> Text:
    faults = served.faults(source.source)
    said = ", ".join(f"{count} {kind}" for kind, count in faults.items()) or "none"
    counts = f"{source.requests:>8}{source.retried:>9}{source.latency.p50:>12.2f} s"
    return Text(f"{source.source:<14}{relation:<9}{counts}  {said}")
