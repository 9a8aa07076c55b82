"""`mediator wrapper check`: the conformance suite over a live site, a cassette or the fixtures, and what it found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from api.exits import INTERRUPTED, Mistake, told
from api.options import CatalogPaths, Variables, WithDemo, pairs

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from rich.console import Console

    from mediator.access import Transport
    from mediator.access.web.redaction import Redaction
    from mediator.catalog.model import Catalog, Relation
    from wrappers.conformance import Asker, Finding

FAILED = 1
_NAMED = 12  # checks that passed are told by name, so many in a line

OfRelations = Annotated[
    list[str] | None,
    typer.Option("--relation", "-r", metavar="NAME", help="Only this relation; may be repeated."),
]
MostRequests = Annotated[
    int, typer.Option(min=1, metavar="N", help="Requests to one source, at most; what is left is skipped.")
]


def add_to(app: typer.Typer) -> None:
    """Makes `check` a command of this group."""
    app.command()(check)


def check(
    catalog: CatalogPaths = None,
    variable: Variables = None,
    demo: WithDemo = False,
    relation: OfRelations = None,
    cassette: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Ask this recording instead of the sites.")
    ] = None,
    most_requests: MostRequests = 40,
    every: Annotated[bool, typer.Option("--all", help="A line for each check, those that pass too.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Everything that was found, as JSON.")] = False,
) -> None:
    """Check a declaration, and that its sites do what it says. Exit code 0: nothing fails; 1: something does."""
    with told():
        from mediator.errors import CatalogError
        from wrappers.conformance import invalid

        if demo and cassette is not None:
            raise Mistake("--demo serves its own sites: leave out either --demo or --cassette")
        try:
            with under_test(catalog or [], pairs("--set", variable), demo) as known:
                findings, asker = run_suite(known, relation, cassette, most_requests)
        except CatalogError as error:
            tell_findings([invalid(error)], {}, every, json)
            raise typer.Exit(FAILED) from None
        tell_findings(findings, asker.sent, every, json)
        if asker.stopped:
            raise typer.Exit(INTERRUPTED)
        raise typer.Exit(FAILED if any(f.outcome == "fail" for f in findings) else 0)


@contextmanager
def under_test(paths: Sequence[str], variables: Mapping[str, str], demo: bool) -> Iterator[Catalog]:
    """What is declared; with `demo`, every built-in declaration, while its sites are served."""
    from api.catalogs import declared
    from api.demo import found_demo

    if not demo:
        yield declared(paths, variables)
        return
    if paths:
        raise Mistake("--demo brings its own catalog: leave out either --demo or --catalog")
    with found_demo().built_in() as served:
        yield served


def run_suite(
    catalog: Catalog, names: Sequence[str] | None, cassette: Path | None, most_requests: int
) -> tuple[list[Finding], Asker]:
    """The findings about these relations, and who asked."""
    import asyncio

    from api.terminal import stderr
    from wrappers.cassettes import Cassette, Replaying, offline

    chosen = chosen_relations(catalog, names)
    console = stderr()
    if cassette is None:
        console.print(announced(catalog, chosen, most_requests), soft_wrap=True)
        return asyncio.run(_asked(catalog, chosen, most_requests, console))
    player = Replaying(Cassette.read(cassette))
    found = asyncio.run(_examined(offline(catalog), chosen, player, most_requests, console))
    if names is None and not found[1].stopped:
        tell_unused(player.unused(), console)
    return found


def chosen_relations(catalog: Catalog, names: Sequence[str] | None) -> list[Relation]:
    import difflib

    for name in names or ():
        if name not in catalog.relations:
            near = difflib.get_close_matches(name, catalog.relations, n=1)
            fix = (
                f"did you mean {near[0]!r}?"
                if near
                else f"there are {', '.join(catalog.relations) or 'none'}"
            )
            raise Mistake(f"no relation {name!r}: {fix}")
    return [r for name, r in catalog.relations.items() if not names or name in names]


def tell_unused(unused: Sequence[str], console: Console) -> None:
    if unused:
        many = "request was" if len(unused) == 1 else "requests were"
        console.print(f"{len(unused)} recorded {many} never made:", style="yellow")
        for line in unused[:20]:
            console.print(f"  {line}", soft_wrap=True)


async def _asked(
    catalog: Catalog, relations: Sequence[Relation], most_requests: int, console: Console
) -> tuple[list[Finding], Asker]:
    from mediator.access import HttpTransport
    from mediator.access.databases.database import DatabaseTransport

    async with (
        HttpTransport(catalog.sources) as web,
        DatabaseTransport(catalog.sources, web, web.redaction) as transport,
    ):
        return await _examined(catalog, relations, transport, most_requests, console, web.redaction)


async def _examined(
    catalog: Catalog,
    relations: Sequence[Relation],
    transport: Transport,
    most_requests: int,
    console: Console,
    redaction: Redaction | None = None,
) -> tuple[list[Finding], Asker]:
    """Ctrl-C ends the asking; what was found until then is told."""
    from api.interrupting import interrupting
    from mediator.access.web.redaction import Redaction
    from wrappers.conformance import Asker, findings_of

    status = console.status("asking") if console.is_terminal else None
    shown: AbstractContextManager[object] = nullcontext() if status is None else status
    with shown:
        asker = Asker(catalog, transport, most_requests, redaction=redaction or Redaction())
        if status is not None:
            asker.told = status.update
        with interrupting(lambda: asker.stop("interrupted")):
            return await findings_of(asker, relations), asker


def announced(catalog: Catalog, relations: Sequence[Relation], most: int) -> str:
    names = list(dict.fromkeys(m.source for r in relations for way in r.methods for m in way.mirrors))
    rates = [f"{n} at {rate:g} a second" for n in names if (rate := catalog.sources[n].rate) is not None]
    pace = f" ({', '.join(rates)})" if rates else ""
    return f"asking {', '.join(names)}: at most {most} requests each, one at a time{pace}"


def tell_findings(
    findings: Sequence[Finding], sent: Mapping[str, int], every: bool = False, json: bool = False
) -> None:
    from api.terminal import stdout

    console = stdout()
    if json:
        from api.cells import json_of

        counts = {name: sum(f.outcome == name for f in findings) for name in ("pass", "fail", "skip")}
        said = {"counts": counts, "requests": dict(sent), "findings": [f.as_dict() for f in findings]}
        console.print(json_of(said).decode())
        return
    for place in dict.fromkeys(f.place for f in findings):
        of_place(console, place, [f for f in findings if f.place == place], every)
    _sum(console, findings, sent)


def of_place(console: Console, place: str, findings: Sequence[Finding], every: bool) -> None:
    """One access method: what passed in a few words, what failed or was skipped in all of them."""
    from rich.text import Text

    from api.cells import harmless

    console.print(Text(place or "declaration", "bold"))
    passed = [f.check for f in findings if f.outcome == "pass"]
    if every:
        for finding in findings:
            if finding.outcome == "pass":
                console.print(Text.assemble("  ", ("pass  ", "green"), f"{finding.check}: {finding.promise}"))
    else:
        for start in range(0, len(passed), _NAMED):
            console.print(Text.assemble("  ", ("pass  ", "green"), ", ".join(passed[start : start + _NAMED])))
    for finding in findings:
        if finding.outcome == "fail":
            console.print(
                Text.assemble(
                    "  ", ("FAIL  ", "bold red"), (finding.check, "bold"), f": {harmless(finding.why)}"
                )
            )
            for label, text in (
                ("promised", finding.promise),
                ("shown by", finding.request),
                ("to do", finding.remedy),
            ):
                if text:
                    console.print(Text.assemble(f"        {label + ':':<10}", harmless(text)))
    for why, remedy in dict.fromkeys((f.why, f.remedy) for f in findings if f.outcome == "skip"):
        names = [f.check for f in findings if f.outcome == "skip" and (f.why, f.remedy) == (why, remedy)]
        console.print(Text.assemble("  ", ("skip  ", "yellow"), f"{', '.join(names)}: {harmless(why)}"))
        if remedy:
            console.print(f"        to do:    {harmless(remedy)}")
    if every:
        for finding in findings:
            if finding.outcome == "does not apply":
                console.print(Text.assemble("  ", ("  --  ", "dim"), f"{finding.check}: {finding.why}"))


def _sum(console: Console, findings: Sequence[Finding], sent: Mapping[str, int]) -> None:
    counts = [
        f"{sum(f.outcome == outcome for f in findings)} {word}"
        for outcome, word in (("pass", "passed"), ("fail", "failed"), ("skip", "skipped"))
    ]
    asked = ", ".join(f"{name} {count}" for name, count in sent.items())
    console.print()
    console.print(f"{', '.join(counts)}; requests: {asked or 'none'}")
