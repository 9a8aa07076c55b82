"""`mediator harvest`: a whole site, or what a list of bindings names of it, for the queries to come."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from api.exits import COMPLETE, INTERRUPTED, PARTIAL, Mistake, told
from api.limits import MaxBytes, MaxCalls, MaxSeconds, age, limits
from api.options import CatalogPaths, Variables, WithDemo, pairs

if TYPE_CHECKING:
    from rich.text import Text

    from api.progress import Progress
    from mediator.access import Statistics
    from mediator.catalog.model import Catalog
    from mediator.gathering import Gathered
    from pipeline.harvest.wanted import Harvest, Harvested


class EngineName(StrEnum):
    """Where it runs."""

    local = "local"
    spark = "spark"


def harvest(
    relation: Annotated[str, typer.Argument(metavar="RELATION", show_default=False)],
    store: Annotated[
        Path | None,
        typer.Option(
            "--store", metavar="DIR", help="Where it is kept. Queries with this store are answered from it."
        ),
    ] = None,
    bindings: Annotated[
        str | None,
        typer.Option(
            "--bindings",
            "-b",
            metavar="FILE|SQL",
            help="What to look up: a CSV, Parquet or NDJSON file, or a query, whose columns are bind-fields of the "
            "relation. Default: the whole site.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="DIR", help="Where the Parquet goes. Default: DIR/harvest of the store."
        ),
    ] = None,
    max_age: Annotated[
        str | None,
        typer.Option(
            "--max-age",
            metavar="TIME",
            help="Ask again for what is older than this: 90 (seconds), 15m, 2h, 3d. Default: as each site declares.",
        ),
    ] = None,
    catalog: CatalogPaths = None,
    variable: Variables = None,
    demo: WithDemo = False,
    max_calls: MaxCalls = None,
    max_bytes: MaxBytes = None,
    max_seconds: MaxSeconds = None,
    engine: Annotated[
        EngineName,
        typer.Option(
            help="local: in this process. spark: divided over tasks, each with a part of the limits."
        ),
    ] = EngineName.local,
    tasks: Annotated[
        int | None, typer.Option("--tasks", min=1, help="With --engine spark: how many, at most. Default: 2.")
    ] = None,
    progress: Annotated[
        bool, typer.Option("--progress/--no-progress", help="A line per source on stderr.")
    ] = True,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="No progress, and a report only if something is missing.")
    ] = False,
) -> None:
    """Fetch a whole relation, or what bindings name of it, within its sites' limits: into a store and into Parquet.

    Only what the store lacks, or has too old, is asked for: after a break, or a kill, say the same again. Ctrl-C ends
    it with what was found; a second one ends it at once.
    """
    with told():
        from api.catalogs import to_ask
        from api.terminal import stderr
        from pipeline.harvest.wanted import Harvest

        if store is None:
            raise Mistake("say where it is to be kept: --store DIR")
        if tasks is not None and engine is not EngineName.spark:
            raise Mistake("--tasks says how many tasks of Spark: it goes with --engine spark")
        said = limits(max_calls, max_bytes, max_seconds)
        wanted = Harvest(relation, store, bindings, output, age(max_age), said)
        with to_ask(catalog or [], pairs("--set", variable), demo) as asked:
            console = stderr()
            shown = _progress(progress and not quiet)
            if engine is EngineName.spark:
                if demo:
                    raise Mistake("--demo is served by this process, where tasks of Spark know nothing of it")
                done = _on_spark(catalog or [], pairs("--set", variable), wanted, tasks, shown)
            else:
                done = _here(asked, wanted, shown)
        if not (quiet and done.report.complete):
            for line in _lines(done):
                console.print(line, soft_wrap=True)
        if done.interrupted:
            raise typer.Exit(INTERRUPTED)
        raise typer.Exit(COMPLETE if done.report.complete else PARTIAL)


def _here(catalog: Catalog, wanted: Harvest, progress: Progress) -> Harvested:
    import asyncio
    from dataclasses import replace

    from api.interrupting import interrupting
    from pipeline.harvest.local import Harvesting

    interrupted = False
    harvesting = Harvesting(catalog, wanted, watch=_shown(progress))

    def interrupt() -> None:
        nonlocal interrupted
        if interrupted:
            progress.close()
            os._exit(INTERRUPTED)
        interrupted = True
        harvesting.stop("interrupted")
        progress.note("stopping: what was found so far stays; once more to end at once")

    async def go() -> Harvested:
        try:
            with interrupting(interrupt):
                return await harvesting.go()
        finally:
            progress.close()

    return replace(asyncio.run(go()), interrupted=interrupted)


def _on_spark(
    catalog: list[str], variables: dict[str, str], wanted: Harvest, tasks: int | None, progress: Progress
) -> Harvested:
    from pipeline.harvest.tasks import Named, OnSpark
    from pipeline.session import local_session

    try:
        return OnSpark(Named(catalog, variables), wanted, tasks, progress.note).go(local_session)
    finally:
        progress.close()


def _progress(wanted: bool) -> Progress:
    from api.progress import progress_for
    from api.terminal import stderr

    return progress_for(stderr(), wanted=wanted)


def _shown(progress: Progress) -> Callable[[Gathered, Statistics], None]:
    """What is on the disk, and what each source does meanwhile."""
    import time

    from api.progress import Standing

    began = time.monotonic()

    def show(gathered: Gathered, statistics: Statistics) -> None:
        progress.show(Standing(time.monotonic() - began, gathered.rows, statistics.sources))

    return show


def _lines(done: Harvested) -> Iterator[Text]:
    """The verdict and what it took, then what is missing, then where it is."""
    from rich.text import Text

    from api.cells import harmless

    verdict, *rest = done.report.lines()
    said = Text(harmless(verdict), "bold green" if done.report.complete else "bold yellow")
    where = "in this process" if done.engine == "local" else f"in {done.tasks} tasks of Spark"
    said.append(
        f" · {_count(done.gathered.rows, 'row')} came in {done.seconds:.2f} s, {where}", "default not bold"
    )
    yield said
    for line in rest:
        yield Text(harmless(line), "yellow" if line.lstrip().startswith("missing:") else "")
    if done.nulls:
        yield Text(f"  {_count(done.nulls, 'row')} of the bindings left out: a NULL is equal to nothing")
    if done.parts is None:
        yield Text("  nothing is covered, so no Parquet was written")
    else:
        parts = done.parts
        files = f"{_count(len(parts.files), 'file')}, {parts.written} of them new"
        yield Text(harmless(f"  {_count(parts.rows, 'row')} in {parts.folder} ({files})"))
    if not done.report.complete:
        yield Text("  the same command goes on from here: only what is missing is asked for")


def _count(n: int, one: str) -> str:
    return f"{n:,} {one if n == 1 else one + 's'}"
