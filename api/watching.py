"""`mediator explain --live`: a query is run, and what is shown is how it is routed and why, not its rows."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live as Redrawing
from rich.table import Table as Grid
from rich.text import Text

from api.alongside import alongside
from api.cells import harmless
from api.exits import COMPLETE, INTERRUPTED, PARTIAL, Unwritten
from api.interrupting import interrupting
from api.terminal import stdout
from api.wording import many
from mediator.answering import Mediator
from mediator.catalog.model import Catalog
from mediator.eddy.decisions import Decision
from mediator.eddy.wording import number
from mediator.engines import AnswerStream
from mediator.live import BlockLive, Live, Share, StemLive

_TICK = 0.1
_LAST = 6  # decisions in the picture
_SIGNATURES = 12
STOPPING = "stopping: how it was routed so far follows; once more to end at once"


class Onlooker:
    """What is seen of one query: every decision as it changes, and a picture now and then."""

    def __init__(self, console: Console) -> None:
        self.rows = 0
        self._console = console
        self._redraws = console.is_terminal and not console.is_dumb_terminal
        self._decided: deque[Decision] = deque(maxlen=_LAST)
        self._fresh: deque[Decision] = deque()  # not told yet; a turn's thread may append
        self._live: Redrawing | None = None
        self._several = False

    def decided(self, decision: Decision) -> None:
        """From within a turn: told with the next picture."""
        self._decided.append(decision)
        if not self._redraws:
            self._fresh.append(decision)

    def show(self, live: Live) -> None:
        """What has changed since."""
        self._several = len(live.blocks) > 1
        if self._redraws:
            self._redraw(Group(*pictured(live, list(self._decided), self.rows)))
            return
        while self._fresh:
            self._console.print(_line(self._fresh.popleft(), self._several), soft_wrap=True)

    def note(self, text: str) -> None:
        self._console.print(Text(harmless(text)), soft_wrap=True)

    def close(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _redraw(self, picture: RenderableType) -> None:
        if self._live is None:
            self._live = Redrawing(picture, console=self._console, auto_refresh=False, transient=True)
            self._live.start(refresh=True)
        else:
            self._live.update(picture, refresh=True)


def explain_live(
    catalog: Catalog, sql: str, parameters: Mapping[str, str], said: Mapping[str, Any], store: Path | None
) -> int:
    """Runs the query with a mediator of its own, to its end; the exit code."""

    async def watch() -> int:
        async with Mediator(catalog, devoted=True, store=store) as mediator:
            return await explained_live(mediator, sql, parameters, said, stdout())

    return asyncio.run(watch())


async def explained_live(
    mediator: Mediator, sql: str, parameters: Mapping[str, str], said: Mapping[str, Any], console: Console
) -> int:
    """Runs the query to its end; the exit code. Raises a `QueryError` if it cannot be answered."""
    onlooker = Onlooker(console)
    answers = mediator.answering(sql, parameters, watch=onlooker.decided, **said)
    interrupted = asyncio.Event()

    def interrupt() -> None:
        if interrupted.is_set():
            onlooker.close()
            os._exit(INTERRUPTED)
        interrupted.set()
        answers.stop("interrupted")
        with suppress(OSError, Unwritten):  # what follows it will meet the same, where it can be told
            onlooker.note(STOPPING)

    try:
        with interrupting(interrupt):
            for line in answers.warnings:
                onlooker.note(f"warning: {line}")
            async with answers:
                await _watched(answers, onlooker)
                onlooker.show(answers.live())
                found = answers.live()
    finally:
        onlooker.close()
    for text in summary(found, answers, onlooker.rows):
        console.print(text, soft_wrap=True)
    if interrupted.is_set():
        return INTERRUPTED
    return COMPLETE if answers.report.complete else PARTIAL


async def _watched(answers: AnswerStream, onlooker: Onlooker) -> None:
    """Every answer counted and thrown away, and a look at the query every now and then."""
    async with alongside(partial(_look, answers, onlooker)):
        async for batch in answers:
            onlooker.rows += batch.num_rows


async def _look(answers: AnswerStream, onlooker: Onlooker, over: asyncio.Event) -> None:
    while not over.is_set():
        onlooker.show(answers.live())
        with suppress(TimeoutError):
            async with asyncio.timeout(_TICK):
                await over.wait()


def pictured(live: Live, decided: list[Decision], rows: int) -> Iterator[RenderableType]:
    """Shares, what floats, what is asked and stored, and the last decisions."""
    several = len(live.blocks) > 1
    yield Text(f"{rows:,} rows found so far, which are not shown", "bold")
    for block in live.blocks:
        if several:
            yield Text(harmless(block.block), "bold cyan")
        yield _shares(block)
        yield Text(
            f"{block.batches:,} batches with {block.rows:,} rows float, {block.waiting:,} more rows wait for a turn",
            "dim",
        )
    yield _sources(live)
    yield _stems([stem for block in live.blocks for stem in block.stems])
    for decision in decided:
        yield _line(decision, several)


def summary(live: Live, answers: AnswerStream, rows: int) -> Iterator[Text]:
    """How the rows went in the end, and why."""
    yield Text()
    were = "row was found, which is" if rows == 1 else "rows were found, which are"
    yield Text(f"{rows:,} {were} not shown", "bold")
    for block in live.blocks:
        changed = many(block.decisions, "decision")
        yield Text(harmless(f"{block.block}: policy {block.policy}, {changed}"), "bold cyan")
        reasons = {d.signature: d for d in block.last}
        for signature in block.signatures:
            if len(signature.shares) < 2 and signature.signature not in reasons:
                continue  # it had no choice
            yield Text(harmless(f"  {signature.signature}: {many(signature.rows, 'row')}"))
            for share in signature.shares:
                yield Text(harmless(f"    {_share(share)}"), "" if share.chosen else "dim")
            if decision := reasons.get(signature.signature):
                yield Text(harmless(f"    why: {decision.why}"), "italic")
        for line in block.releases:
            yield Text(harmless(f"  asked when all else rested: {line}"))
    for line in answers.report.lines():
        yield Text(harmless(line))


def _shares(block: BlockLive) -> RenderableType:
    grid = Grid.grid(padding=(0, 2, 0, 0))
    for _ in range(2):
        grid.add_column(no_wrap=True)
    for _ in range(4):
        grid.add_column(justify="right", no_wrap=True)
    heads = ("rows from", "go to", "rows", "share", "rows for each", "µs a row")
    grid.add_row(*(Text(head, "dim") for head in heads))
    open_to_choice = [s for s in block.signatures if len(s.shares) > 1]
    for signature in sorted(open_to_choice, key=lambda s: -s.rows)[:_SIGNATURES]:
        name = signature.signature
        for share in signature.shares:
            grid.add_row(
                Text(harmless(name), "cyan"),
                Text(harmless(share.destination), "bold" if share.chosen else ""),
                f"{share.rows:,}",
                f"{share.share:.0%}",
                _number(share.fan_out),
                _number(share.us_a_row),
            )
            name = ""
    return grid


def _sources(live: Live) -> RenderableType:
    grid = Grid.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    for _ in range(5):
        grid.add_column(justify="right", no_wrap=True)
    heads = ("source", "asked", "answered", "in flight", "queued", "waiting for the limiter")
    grid.add_row(*(Text(head, "dim") for head in heads))
    for s in live.sources:
        counts = (s.asked, s.answered, s.in_flight, s.queued, s.waiting)
        grid.add_row(Text(harmless(s.source), "cyan"), *(f"{count:,}" for count in counts))
    return grid


def _stems(stems: list[StemLive]) -> RenderableType:
    grid = Grid.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    for _ in range(2):
        grid.add_column(justify="right", no_wrap=True)
    grid.add_column(no_wrap=True)
    grid.add_row(*(Text(head, "dim") for head in ("relation", "stored", "given", "covered")))
    for stem in stems:
        covered = (
            "whole"
            if stem.whole
            else f"{stem.answered + stem.served:,} of {stem.asked + stem.served:,} lookups"
        )
        failed = f", {stem.failed:,} failed" if stem.failed else ""
        name = Text(harmless(stem.relation), "cyan")
        grid.add_row(name, f"{stem.stored:,}", f"{stem.given:,}", covered + failed)
    return grid


def _line(decision: Decision, several: bool) -> Text:
    block = f"{decision.block}: " if several else ""
    return Text.assemble((f"{decision.at:8.3f} s  ", "dim"), harmless(f"{block}{decision.line()}"))


def _share(share: Share) -> str:
    """`S: 80 % of them, 1,200 rows; 0.3 rows for each, 12 µs a row`."""
    if not share.rows:
        return f"{share.destination}: none of them"
    said = [f"{share.destination}: {share.share:.0%} of them, {many(share.rows, 'row')}"]
    if share.fan_out is not None:
        each = {0.0: "no row", 1.0: "1 row"}.get(share.fan_out, f"{number(share.fan_out)} rows")
        said.append(f"{each} for each, {_number(share.us_a_row)} µs a row")
    return "; ".join(said)


def _number(value: float | None) -> str:
    return "" if value is None else number(value)
