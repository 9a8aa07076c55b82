"""`mediator trace`: what a run decided, when and why; and whether its policy decides so again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from api.exits import COMPLETE, PARTIAL, told
from api.wording import many

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
_LEAST = 0.001  # of the rows, that is told as a number


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
    from mediator.tracing.reading import understanding

    header = reader.header
    for text in header.sql.strip().splitlines():
        yield Text(harmless(text), "cyan")
    yield Text(f"policy {harmless(header.policy)}, seed {header.seed}", "dim")
    yield Text()
    for number, line in reader.lines():
        with understanding(reader.path, number):
            said = list(_line(line, figures, several=len(header.blocks) > 1))
        yield from said
    with understanding(reader.path, reader.read):
        last = _over(reader.over or {})
    yield Text(harmless(last), "bold")


def outcome(found: Replay) -> Iterator[Text]:
    """What a replay came to."""
    from rich.text import Text

    from api.cells import harmless

    count = f"{many(found.choices, 'choice')} for {many(found.rows, 'row')}"
    if found.same:
        yield Text(f"{found.policy} decides the same: {count}", "bold green")
        return
    if found.policy != found.recorded:
        yield Text(
            f"{found.policy} would have decided otherwise than {found.recorded} in {found.differences:,} of {count}: "
            f"for {_share(found)} of the rows",
            "bold",
        )
        for (signature, then, now), rows in found.elsewhere.most_common(_SHOWN):
            yield Text(harmless(f"  {signature}: {now} before {then}, {many(rows, 'row')}"))
        return
    yield Text(f"{found.policy} decides otherwise {found.differences:,} times; {count}", "bold red")
    for number, difference in enumerate(found.first):
        yield Text(harmless(f"  {'the first: ' if not number else ''}{difference}"))


def _line(line: Mapping[str, Any], figures: bool, several: bool) -> Iterator[Text]:
    from rich.text import Text

    from api.cells import harmless

    if "decision" in line:
        yield from _decision(line, figures, several)
    elif "ask" in line or "ended" in line:
        yield Text(_when(line) + harmless(_asked(line)), "dim")


def _over(line: Mapping[str, Any]) -> str:
    why = f": {line['why']}" if line["why"] else ""
    return f"{_when(line)}{line['over']}{why}; {many(line['rows'], 'row')}"


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
        count = f" for {many(line['bindings'], 'binding')}" if by else ""
        return f"ask {line['ask']}: {line['relation']}.{line['method']}{by}{count}"
    count = f", {many(line['bindings'], 'binding')}" if line.get("bindings") else ""
    cause = f": {line['cause']}" if line.get("cause") else ""
    return f"ask {line['ended']}: {line['how']}{count}{cause}"


def _share(found: Replay) -> str:
    """None is said only where it is none."""
    if not found.rows_elsewhere:
        return "none"
    return f"{found.share:.1%}" if found.share >= _LEAST else f"less than {_LEAST:.1%}"


def _when(line: Mapping[str, Any]) -> str:
    return f"{line.get('at', 0.0):8.3f} s  "


def _print(lines: Iterator[Text]) -> None:
    from api.terminal import stdout

    for line in lines:
        stdout().print(line, soft_wrap=True)
