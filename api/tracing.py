"""`mediator trace`: what a run decided, when and why; and whether its policy decides so again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from api.exits import COMPLETE, PARTIAL, told

if TYPE_CHECKING:
    from rich.text import Text

    from mediator.tracing.reading import Reader
    from mediator.tracing.replaying import Replay

app = typer.Typer(
    name="trace",
    help="Look at, and replay, what `mediator query --trace FILE` has kept.",
    no_args_is_help=True,
)

TraceFile = Annotated[Path, typer.Argument(metavar="FILE", show_default=False)]

_DIFFER = """\
Exit codes:
  0  it decides the same; or another policy was asked for its opinion
  3  it decides otherwise
  2  the file is no trace, not a whole one, or none that can be replayed here
"""
_SHOWN = 20  # ways that another policy would have gone


@app.command()
def show(
    file: TraceFile,
    figures: Annotated[
        bool, typer.Option("--figures", help="Also all figures that each decision rests on.")
    ] = False,
) -> None:
    """What was decided, when and why; what was asked; and how it ended."""
    with told():
        from mediator.tracing.reading import Reader

        _print(shown(Reader(file), figures))


@app.command(epilog=_DIFFER)
def replay(
    file: TraceFile,
    policy: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Another one: where would it have decided otherwise, for what share of the rows?",
        ),
    ] = None,
) -> None:
    """Make the run's policies anew, tell them what they were told, and see whether they decide the same."""
    with told():
        from mediator.tracing.reading import Reader
        from mediator.tracing.replaying import replay as replayed

        found = replayed(Reader(file), policy)
        _print(outcome(found))
        other = policy is not None and policy != found.recorded
        raise typer.Exit(COMPLETE if found.same or other else PARTIAL)


def shown(reader: Reader, figures: bool = False) -> Iterator[Text]:
    """Line by line. Raises a `TraceError` where the file goes wrong, after what was there."""
    from rich.text import Text

    from api.cells import harmless

    header = reader.header
    for text in header.sql.strip().splitlines():
        yield Text(harmless(text), "cyan")
    yield Text(f"policy {harmless(header.policy)}, seed {header.seed}", "dim")
    yield Text()
    for _, line in reader.lines():
        if "decision" in line:
            yield from _decision(line, figures, several=len(header.blocks) > 1)
        elif "ask" in line or "ended" in line:
            yield Text(_when(line) + harmless(_asked(line)), "dim")
    over = reader.over or {}
    why = f": {over.get('why')}" if over.get("why") else ""
    yield Text(f"{_when(over)}{over.get('over')}{harmless(why)}; {over.get('rows'):,} rows", "bold")


def outcome(found: Replay) -> Iterator[Text]:
    """What a replay came to."""
    from rich.text import Text

    from api.cells import harmless

    count = f"{found.choices:,} choices for {found.rows:,} rows"
    if found.same:
        yield Text(f"{found.policy} decides the same: {count}", "bold green")
        return
    if found.policy != found.recorded:
        yield Text(
            f"{found.policy} would have decided otherwise than {found.recorded} in {found.differences:,} of {count}: "
            f"{found.share:.1%} of the rows",
            "bold",
        )
        for (signature, then, now), rows in found.elsewhere.most_common(_SHOWN):
            yield Text(harmless(f"  {signature}: {now} before {then}, {rows:,} rows"))
        return
    yield Text(f"{found.policy} decides otherwise {found.differences:,} times; {count}", "bold red")
    for number, difference in enumerate(found.first):
        yield Text(harmless(f"  {'the first: ' if not number else ''}{difference}"))


def _decision(line: Mapping[str, Any], figures: bool, several: bool) -> Iterator[Text]:
    from rich.text import Text

    from api.cells import harmless

    said = line["decision"]
    block = f"{said['block']}: " if several else ""
    yield Text(harmless(f"{_when(line)}{block}{said['signature']}: {said['why']}"))
    if figures:
        for destination, found in said["figures"].items():
            parts = ", ".join(f"{name} {_figure(value)}" for name, value in found.items())
            yield Text(harmless(f"           {destination}: {parts}"), "dim")


def _figure(value: float | None) -> str:
    from mediator.eddy.wording import number

    return "unbounded" if value is None else number(value)


def _asked(line: Mapping[str, Any]) -> str:
    if "ask" in line:
        by = f"({', '.join(line['bind_fields'])})" if line["bind_fields"] else ""
        count = f" for {line['bindings']:,} bindings" if by else ""
        return f"ask {line['ask']}: {line['relation']}.{line['method']}{by}{count}"
    count = f", {line['bindings']:,} bindings" if line.get("bindings") else ""
    cause = f": {line['cause']}" if line.get("cause") else ""
    return f"ask {line['ended']}: {line['how']}{count}{cause}"


def _when(line: Mapping[str, Any]) -> str:
    return f"{line.get('at', 0.0):8.3f} s  "


def _print(lines: Iterator[Text]) -> None:
    from api.terminal import stdout

    for line in lines:
        stdout().print(line, soft_wrap=True)
