"""What a running query looks like from outside, on stderr: a line per source, redrawn in a terminal."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table as Grid
from rich.text import Text

from api.cells import harmless, shown, values
from mediator.access.statistics import SourceStatistics

# Seconds between two plain lines, where nothing can be redrawn.
EVERY = 5.0
# Seconds that a picture stays, however fast rows come.
_STILL = 0.05
_PREVIEW_ROWS = 8


@dataclass(frozen=True, slots=True)
class Standing:
    """A query at one moment."""

    seconds: float
    rows: int
    sources: Sequence[SourceStatistics]
    provisional: pa.Table | None = None  # the answer as it would be were this all
    paused: Collection[str] = ()  # sources that the user lets wait

    @property
    def asked(self) -> list[SourceStatistics]:
        """The sources that this query has to do with."""
        return [s for s in self.sources if s.asked or s.queued or s.requests or s.source in self.paused]


class Progress(Protocol):
    wants_snapshots: bool

    def show(self, standing: Standing) -> None:
        """Called every now and then."""
        ...

    def aside(self) -> AbstractContextManager[None]:
        """Nothing is in the way within: somebody else writes to the terminal."""
        ...

    def note(self, text: str) -> None:
        """Something that the user should know at once."""
        ...

    def close(self) -> None: ...


class Silent:
    wants_snapshots = False

    def __init__(self, console: Console) -> None:
        self._console = console

    def show(self, standing: Standing) -> None:
        return

    def aside(self) -> AbstractContextManager[None]:
        return nullcontext()

    def note(self, text: str) -> None:
        self._console.print(Text(harmless(text)), soft_wrap=not self._console.is_terminal)

    def close(self) -> None:
        return


class Plain(Silent):
    """A line every few seconds, for a log."""

    def __init__(self, console: Console, every: float = EVERY) -> None:
        super().__init__(console)
        self._every = every
        self._next = every

    def show(self, standing: Standing) -> None:
        if standing.seconds >= self._next:
            self._next = standing.seconds + self._every
            sources = "; ".join(_sentence(s, s.source in standing.paused) for s in standing.asked)
            self._console.print(
                f"{standing.seconds:.0f} s, {_rows(standing.rows)}: {sources}", soft_wrap=True
            )


class Redrawn(Silent):
    """A small table below the answers, that is always up to date."""

    wants_snapshots = True

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self._live: Live | None = None
        self._picture: RenderableType = ""
        self._drawn = 0.0
        self._aside = False

    def show(self, standing: Standing) -> None:
        self._picture = pictured(standing)
        self._draw()

    @contextmanager
    def aside(self) -> Iterator[None]:
        self._erase()
        self._aside = True
        try:
            yield
        finally:
            self._aside = False
            if time.monotonic() - self._drawn > _STILL:
                self._draw()

    def note(self, text: str) -> None:
        self._erase()
        super().note(text)

    def close(self) -> None:
        self._erase()
        self._aside = True

    def _draw(self) -> None:
        if self._aside or not self._picture:
            return
        self._drawn = time.monotonic()
        if self._live is None:
            # stdout is not its business: the answers go there as they are, also where both are one terminal.
            self._live = Live(
                self._picture,
                console=self._console,
                auto_refresh=False,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._live.start(refresh=True)
        else:
            self._live.update(self._picture, refresh=True)

    def _erase(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None


def progress_for(console: Console, *, wanted: bool) -> Progress:
    """As much as is wanted, and as the console can show."""
    if not wanted:
        return Silent(console)
    return Redrawn(console) if console.is_terminal and not console.is_dumb_terminal else Plain(console)


def pictured(standing: Standing) -> RenderableType:
    """A line per source, and the provisional answer where there is one."""
    grid = Grid.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    for _ in range(5):
        grid.add_column(justify="right", no_wrap=True)
    heads = ("asked", "answered", "in flight", "failed", "waiting for the limiter")
    when = f"{standing.seconds:.1f} s, {_rows(standing.rows)}"
    grid.add_row(Text(when, "bold"), *(Text(head, "dim") for head in heads))
    for source in standing.asked:
        failed = Text(str(source.failed), "bold red" if source.failed else "dim")
        waiting = Text(str(source.waiting), "yellow" if source.waiting else "dim")
        name = Text(harmless(source.source), "cyan")
        if source.source in standing.paused:
            name.append(" paused", "yellow")
        grid.add_row(
            name,
            str(source.asked),
            str(source.answered),
            str(source.in_flight),
            failed,
            waiting,
        )
    if standing.provisional is None:
        return grid
    return Group(grid, _preview(standing.provisional))


def _preview(table: pa.Table) -> RenderableType:
    grid = Grid.grid(padding=(0, 2, 0, 0))
    for _ in table.schema:
        grid.add_column(no_wrap=True)
    grid.add_row(*(Text(harmless(name), "bold dim") for name in table.schema.names))
    columns = [values(c.combine_chunks()) for c in table.slice(0, _PREVIEW_ROWS).columns]
    for row in zip(*columns, strict=True):
        grid.add_row(*(Text(shown(value), "dim") for value in row))
    more = table.num_rows - _PREVIEW_ROWS
    title = "so far, and not final" + (f" (and {more} more rows)" if more > 0 else "")
    return Group(Text(title, "dim italic"), grid)


def _sentence(source: SourceStatistics, paused: bool) -> str:
    parts = [f"{harmless(source.source)} {source.answered} of {source.asked} answered"]
    if source.in_flight:
        parts.append(f"{source.in_flight} in flight")
    if source.failed:
        parts.append(f"{source.failed} failed")
    if source.waiting:
        parts.append(f"{source.waiting} waiting for the limiter")
    if paused:
        parts.append("paused")
    return ", ".join(parts)


def _rows(count: int) -> str:
    return f"{count:,} row{'' if count == 1 else 's'}"
