"""`--max-calls`, `--max-bytes`, `--max-seconds`: what a query may spend, in all or at one source."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import typer

from api.exits import Mistake

T = TypeVar("T", int, float)

Said = list[str] | None

_AT = "SOURCE=N: at that source; may be repeated."
MaxCalls = Annotated[
    Said,
    typer.Option("--max-calls", metavar="[SOURCE=]N", help=f"Send at most N requests. {_AT}"),
]
MaxBytes = Annotated[
    Said,
    typer.Option("--max-bytes", metavar="[SOURCE=]N", help=f"Read at most N bytes: 500kB, 10MB. {_AT}"),
]
MaxSeconds = Annotated[
    Said,
    typer.Option(
        "--max-seconds",
        metavar="[SOURCE=]N",
        help="Stop after so long (90, 15m), with what was found so far; the answer is then partial. SOURCE=N: have "
        "requests to it under way for so long, all in all; may be repeated.",
    ),
]


def limits(calls: Said, bytes_: Said, seconds: Said) -> dict[str, Any]:
    """As `Settings` of a query."""
    from api.durations import seconds_of
    from mediator.catalog.ceilings import Ceilings

    most_calls, calls_at = _parted("--max-calls", calls, _count)
    most_bytes, bytes_at = _parted("--max-bytes", bytes_, _size)
    most_seconds, seconds_at = _parted("--max-seconds", seconds, seconds_of)
    names = dict.fromkeys([*calls_at, *bytes_at, *seconds_at])
    at = {name: Ceilings(calls_at.get(name), bytes_at.get(name), seconds_at.get(name)) for name in names}
    return {
        "max_calls": most_calls,
        "max_bytes": most_bytes,
        "max_seconds": most_seconds,
        "per_source": at,
    }


def age(said: str | None) -> float:
    """What `--max-age` says, in seconds."""
    from api.durations import seconds_of

    return float("inf") if said is None else seconds_of("--max-age", said)


def silence(partials: bool, said: str | None) -> float | None:
    """What `--stalled-after` says, in seconds."""
    from api.durations import seconds_of

    if said is None:
        return None
    if not partials:
        raise Mistake("--stalled-after says when partial answers begin: it goes with --partials")
    return seconds_of("--stalled-after", said)


def _parted(option: str, said: Said, read: Callable[[str, str], T]) -> tuple[T | None, dict[str, T]]:
    """What was said of the whole query, and of single sources."""
    found: dict[str, T] = {}
    for text in said or ():
        source, equals, number = text.rpartition("=")
        if equals and not source:
            raise Mistake(f"{option} {text}: expected SOURCE=N, or N alone for the whole query")
        if source in found:
            raise Mistake(f"{option} {text}: said twice{f' of {source}' if source else ''}: leave one out")
        found[source] = read(option, number)
    whole = found.pop("", None)
    return whole, found


def _count(option: str, text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise Mistake(f"{option} {text}: expected a number of requests, 0 or more")
    return int(text)


def _size(option: str, text: str) -> int:
    from sources.limits import size_of

    try:
        return size_of(text)
    except ValueError as error:
        raise Mistake(f"{option} {text}: {error}") from None
