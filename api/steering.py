"""`--prefer`, `--pause`, `--boost`: the order of things in a query, as it begins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from api.exits import Mistake

Said = list[str] | None

Prefer = Annotated[
    Said,
    typer.Option(
        "--prefer",
        metavar="CONDITION=WEIGHT",
        help="Rows that meet the condition come first, such as 'b.year > 2020=10'; all else weighs 1. It changes the "
        "order, never the answer. May be repeated.",
    ),
]
Pause = Annotated[
    Said,
    typer.Option(
        "--pause", metavar="SOURCE", help="Ask this source nothing; others that have the same go on."
    ),
]
Boost = Annotated[
    Said,
    typer.Option(
        "--boost",
        metavar="SOURCE=FACTOR",
        help="Take this source for so many times as fast as it is, and its lookups for so much more urgent.",
    ),
]


def steering(prefer: Said, pause: Said, boost: Said) -> dict[str, Any]:
    """As `Settings` of a query."""
    return {
        "prefer": _numbers("--prefer", "CONDITION=WEIGHT", prefer),
        "pause": tuple(dict.fromkeys(pause or ())),
        "boost": _numbers("--boost", "SOURCE=FACTOR", boost),
    }


def _numbers(option: str, form: str, said: Sequence[str] | None) -> dict[str, float]:
    """What stands before the last equals sign, which a condition may have too, and the number behind it."""
    found: dict[str, float] = {}
    for text in said or ():
        what, equals, number = text.rpartition("=")
        what = what.strip()
        if not equals or not what:
            raise Mistake(f"{option} {text}: expected {form}")
        if what in found:
            raise Mistake(f"{option} {text}: said twice of {what}: leave one out")
        try:
            found[what] = float(number)
        except ValueError:
            raise Mistake(f"{option} {text}: expected {form}, and {number.strip()!r} is no number") from None
    return found
