"""`mediator wrapper record` and `replay`: sites onto a cassette, and a cassette in place of sites."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from api.checking import (
    FAILED,
    MostRequests,
    OfRelations,
    announced,
    chosen_relations,
    run_suite,
    tell_unused,
    under_test,
)
from api.exits import INTERRUPTED, PARTIAL, Mistake, complain, told
from api.options import CatalogPaths, Format, Variables, WithDemo, pairs
from api.receiving import format_for, receiver_for

if TYPE_CHECKING:
    from rich.console import Console

    from api.running import Outcome
    from mediator.access import Transport
    from mediator.catalog.model import Catalog
    from wrappers.cassettes import Recording


def add_to(app: typer.Typer) -> None:
    """Makes `record` and `replay` commands of this group."""
    app.command()(record)
    app.command()(replay)


def record(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The cassette; it is written anew.")
    ],
    catalog: CatalogPaths = None,
    variable: Variables = None,
    demo: WithDemo = False,
    sql: Annotated[
        list[str] | None,
        typer.Option("--sql", metavar="SQL", help="Record what this query asks; may be repeated."),
    ] = None,
    lookups: Annotated[
        bool | None,
        typer.Option(
            "--lookups/--no-lookups", help="Record what `check` asks. Default: unless there is a --sql."
        ),
    ] = None,
    relation: OfRelations = None,
    most_requests: MostRequests = 40,
) -> None:
    """Record what sites answer, without secrets: for `check --cassette`, `replay`, and tests."""
    with told():
        import asyncio

        from api.terminal import stderr

        with_lookups = not sql if lookups is None else lookups
        if not sql and not with_lookups:
            raise Mistake("there is nothing to record: give --sql, or leave out --no-lookups")
        console = stderr()
        with under_test(catalog or [], pairs("--set", variable), demo) as known:
            chosen = chosen_relations(known, relation) if with_lookups else []
            if chosen:
                console.print(announced(known, chosen, most_requests), soft_wrap=True)
            relations = [r.name for r in chosen]
            recording, stopped = asyncio.run(_recorded(known, sql or [], relations, most_requests))
        recording.cassette.write(output)
        count = sum(len(replies) for replies in recording.cassette.exchanges.values())
        console.print(f"{count} {'reply' if count == 1 else 'replies'} in {output}", soft_wrap=True)
        if recording.failures:
            console.print(
                f"{recording.failures} requests had no reply, and are not on it: see what check says of them",
                style="yellow",
                soft_wrap=True,
            )
        if stopped:
            raise typer.Exit(INTERRUPTED)


def replay(
    cassette: Annotated[Path, typer.Argument(metavar="CASSETTE", show_default=False)],
    sql: Annotated[
        str | None,
        typer.Argument(
            metavar="[SQL]", help="A query. Without one: the suite, as check.", show_default=False
        ),
    ] = None,
    catalog: CatalogPaths = None,
    variable: Variables = None,
    format_: Annotated[Format | None, typer.Option("--format")] = None,
) -> None:
    """Answer a query from a cassette; whatever is not on it fails. Without a query: run the suite on it."""
    with told():
        import asyncio

        from api.checking import tell_findings
        from api.terminal import stderr
        from wrappers.cassettes import Cassette, Replaying, offline

        with under_test(catalog or [], pairs("--set", variable), demo=False) as known:
            if sql is None:
                findings, asker = run_suite(known, None, cassette, most_requests=1_000_000)
                tell_findings(findings, asker.sent)
                raise typer.Exit(FAILED if any(f.outcome == "fail" for f in findings) else 0)
            player = Replaying(Cassette.read(cassette))
            outcome = asyncio.run(_answered(offline(known), sql, player, format_))
        from api.verdict import exit_code, print_report

        console = stderr()
        if outcome.unwritten:
            complain(outcome.unwritten)
        print_report(console, outcome)
        _tell_unknown(player.unknown, console)
        tell_unused(player.unused(), console)
        raise typer.Exit(exit_code(outcome) or (PARTIAL if player.unknown else 0))


async def _recorded(
    catalog: Catalog, queries: Sequence[str], relations: Sequence[str], most_requests: int
) -> tuple[Recording, bool]:
    from api.interrupting import interrupting
    from mediator.access import HttpTransport
    from mediator.answering import Mediator
    from wrappers.cassettes import Recording
    from wrappers.conformance import Asker, findings_of

    stopped = False
    async with HttpTransport(catalog.sources) as web:
        recording = Recording(web)
        if relations:
            asker = Asker(catalog, recording, most_requests)
            with interrupting(lambda: asker.stop("interrupted")):
                await findings_of(asker, [catalog.relations[name] for name in relations])
            stopped = bool(asker.stopped)
        if queries and not stopped:
            async with Mediator(catalog, transport=recording) as mediator:
                for sql in queries:
                    async with mediator.answering(sql) as answers:
                        with interrupting(lambda: answers.stop("interrupted")):
                            async for _ in answers:
                                pass
                        stopped = stopped or bool(answers.report.stopped)
    return recording, stopped


async def _answered(catalog: Catalog, sql: str, player: Transport, format_: Format | None) -> Outcome:
    from api.progress import Silent
    from api.running import Question, run
    from api.terminal import stderr
    from mediator.answering import Mediator

    async with Mediator(catalog, transport=player) as mediator:
        receiver = receiver_for(format_for(format_, None), None)
        return await run(mediator, Question(sql, {}), receiver, Silent(stderr()))


def _tell_unknown(unknown: Sequence[str], console: Console) -> None:
    from api.cells import harmless

    for line in dict.fromkeys(unknown):
        console.print(harmless(line), style="red", soft_wrap=True)
