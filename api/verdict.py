"""How a run ended, for people: the completeness report, and the exit code that goes with it."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from api.cells import harmless
from api.exits import COMPLETE, INTERNAL, INTERRUPTED, PARTIAL, READER_LEFT
from api.running import Outcome


def exit_code(outcome: Outcome) -> int:
    if outcome.forsaken:
        return READER_LEFT
    if outcome.unwritten:
        return INTERNAL
    if outcome.interrupted:
        return INTERRUPTED
    return COMPLETE if outcome.report.complete else PARTIAL


def print_report(console: Console, outcome: Outcome) -> None:
    """The verdict and what it took, then each relation, with what is missing under it."""
    verdict, *relations = outcome.report.lines()
    said = Text(harmless(verdict), "bold green" if outcome.report.complete else "bold yellow")
    if outcome.unwritten and outcome.report.complete:
        said.append(", but not written to its end", "bold yellow")
    said.append(f" · {took(outcome)}", "default not bold")
    console.print(said, soft_wrap=True)
    for line in relations:
        missing = line.lstrip().startswith("missing:")
        console.print(Text(harmless(line), "yellow" if missing else ""), soft_wrap=True)
    if not outcome.report.complete and not outcome.rows and not outcome.unwritten:
        console.print("  no row was found: that is not to say that there is none", style="yellow")


def took(outcome: Outcome) -> str:
    """`42 rows in 1.93 s, the first after 0.41 s`."""
    rows = f"{outcome.rows:,} row{'' if outcome.rows == 1 else 's'} in {outcome.seconds:.2f} s"
    return rows if outcome.first is None else f"{rows}, the first after {outcome.first:.2f} s"
