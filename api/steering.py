"""`--prefer`, `--pause`, `--boost`: the order of things in a query, as it begins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from api.exits import Mistake

Said = list[str] | None

_COMPARING = ("<", ">", "!", "=")  # before an equals sign: it is a part of the condition

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
        "--pause",
        metavar="SOURCE",
        help="Ask this source nothing; others that have the same go on. What only it has is waited for, until "
        "--max-seconds or Ctrl-C. May be repeated.",
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
    for text in prefer or ():
        if text.rpartition("=")[0].rstrip().endswith(_COMPARING):
            raise Mistake(f"--prefer {text}: {_weightless(text)}")
    return {
        "prefer": _numbers("--prefer", "CONDITION=WEIGHT", prefer),
        "pause": tuple(dict.fromkeys(pause or ())),
        "boost": _numbers("--boost", "SOURCE=FACTOR", boost),
    }


@contextmanager
def weighed(prefer: Said) -> Iterator[None]:
    """Where a weight was forgotten, the equals sign of a condition is taken for the one before it: what is left is no
    condition then, and the error says what is missing."""
    from mediator.errors import TypeMismatch

    try:
        yield
    except TypeMismatch as error:
        for text in prefer or ():
            if error.sql and error.sql == text.rpartition("=")[0].strip():
                error.hint = _weightless(text)
        raise


def _weightless(text: str) -> str:
    return f"is a weight missing? Then write '{text}=10'"


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
