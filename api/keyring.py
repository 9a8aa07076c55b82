"""`mediator keys`: the keys with which the HTTP server is asked; made, listed, removed."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from api.exits import Mistake, told

if TYPE_CHECKING:
    from api.http.keys import Key

app = typer.Typer(help="Make and remove keys for `mediator serve --keys FILE`.", no_args_is_help=True)

File = Annotated[Path, typer.Option("--keys", metavar="FILE", help="The file of keys: it holds hashes.")]
Name = Annotated[str, typer.Argument(metavar="NAME", show_default=False)]


class ScopeName(StrEnum):
    """The server's scopes; a test holds the two lists together."""

    query = "query"
    read = "read"
    metrics = "metrics"


@app.command()
def add(
    name: Name,
    keys: File,
    scope: Annotated[
        list[ScopeName] | None,
        typer.Option(
            help="query: run and steer queries; read: look at sources, relations and the cache; metrics. May be "
            "repeated. Default: query and read.",
            show_default=False,
        ),
    ] = None,
    concurrent: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Run at most N queries at once.")
    ] = None,
    per_minute: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Begin at most N queries a minute.")
    ] = None,
    max_calls: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="One query sends at most N requests.")
    ] = None,
    max_seconds: Annotated[
        str | None, typer.Option(metavar="TIME", help="One query takes at most so long: 90, 15m.")
    ] = None,
    max_rows: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="One query gives at most N rows.")
    ] = None,
    max_bytes: Annotated[
        str | None, typer.Option(metavar="SIZE", help="One query reads at most so much: 500kB, 10MB.")
    ] = None,
    expires: Annotated[
        str | None, typer.Option(metavar="TIME", help="From when on it is of no use: 12h, 90d.")
    ] = None,
) -> None:
    """Make a key. It is printed on stdout, this once: the file holds only its hash."""
    with told():
        from api.durations import seconds_of
        from api.http import keys as ring
        from api.terminal import stdout

        quota = ring.Quota(
            concurrent,
            per_minute,
            max_calls,
            _above_zero(
                "--max-seconds", None if max_seconds is None else seconds_of("--max-seconds", max_seconds)
            ),
            max_rows,
            _size(max_bytes),
        )
        scopes = frozenset(ring.SCOPES) & {s.value for s in scope or (ScopeName.query, ScopeName.read)}
        until = None if expires is None else _until(seconds_of("--expires", expires))
        token = ring.add(keys, name, scopes, quota, until)
        stdout().out(token)
        _explain(name, keys)


@app.command("list")
def list_(keys: File) -> None:
    """A line for each key: what it is for, its quotas, and until when. The keys themselves are not known."""
    with told():
        from api.http.keys import read
        from api.terminal import stdout
        from mediator.clock import wall

        now = wall()
        for line in [_told(key, now) for key in read(keys).values()] or ["there are no keys"]:
            stdout().print(line)


@app.command()
def remove(name: Name, keys: File) -> None:
    """Make a key worthless. A server that uses the file sees it within a second."""
    with told():
        from api.http import keys as ring
        from api.terminal import stdout

        ring.remove(keys, name)
        stdout().print(f"{name} removed from {keys}")


def _explain(name: str, file: Path) -> None:
    from api.terminal import stderr

    stderr().print(
        f"This is the key of {name}: keep it, as it cannot be shown again. {file} holds its hash.\n"
        "Give it as `Authorization: Bearer KEY`.",
        soft_wrap=True,
    )


def _told(key: Key, now: float) -> str:
    from dataclasses import asdict

    quota = [
        f"{name.replace('_', ' ')} {most:,}" for name, most in asdict(key.quota).items() if most is not None
    ]
    parts = [", ".join(sorted(key.scopes)), *([", ".join(quota)] if quota else []), _end(key.expires, now)]
    return f"{key.name}: {'; '.join(parts)}"


def _end(expires: float | None, now: float) -> str:
    from api.durations import length

    if expires is None:
        return "does not expire"
    return f"expires in {length(expires - now)}" if expires > now else f"expired {length(now - expires)} ago"


def _until(seconds: float) -> float:
    """The moment after so long, to the second, as far as the calendar goes."""
    from datetime import UTC, datetime

    from mediator.clock import wall

    _above_zero("--expires", seconds)
    try:
        return datetime.fromtimestamp(round(wall() + seconds), UTC).timestamp()
    except (OverflowError, ValueError, OSError):
        raise Mistake(
            "--expires: so long cannot be written as a date: leave it out, the key is for ever"
        ) from None


def _size(text: str | None) -> int | None:
    from sources.limits import size_of

    if text is None:
        return None
    try:
        size = size_of(text)
    except ValueError as error:
        raise Mistake(f"--max-bytes {text}: {error}") from None
    _above_zero("--max-bytes", size)
    return size


def _above_zero(option: str, amount: float | None) -> float | None:
    if amount is not None and amount <= 0:
        raise Mistake(f"{option}: expected more than nothing")
    return amount
