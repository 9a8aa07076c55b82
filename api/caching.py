"""`mediator cache`: what a store keeps of the sites' rows; shown, explained, expired, exported."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from api.exits import Mistake, told

if TYPE_CHECKING:
    from mediator.store.records import Covered, Held
    from mediator.store.store import Store

app = typer.Typer(help="Look after what a store keeps of the sites' rows.", no_args_is_help=True)

Folder = Annotated[
    Path, typer.Option("--store", metavar="DIR", help="The folder that `mediator query --store` wrote.")
]
Name = Annotated[str, typer.Argument(metavar="RELATION", show_default=False)]


@app.command()
def show(store: Folder) -> None:
    """What is kept, a line for each relation. Can be asked while another process uses the store."""
    with told():
        from mediator.clock import wall
        from mediator.store.store import look

        held = look(store)
        _print(
            [f"{h.declared.name}: {_size(h)}; {'; '.join(_ends(h, wall()))}" for h in held]
            or ["nothing is kept"]
        )
        _print(_sent(store, wall()))


@app.command()
def explain(relation: Name, store: Folder) -> None:
    """What of a relation would be answered without asking its sites, and for how long."""
    with told():
        from mediator.clock import wall
        from mediator.store.store import look_at

        held = look_at(store, relation)
        _print(_explained(held, wall()))


@app.command()
def expire(
    store: Folder,
    relation: Annotated[str | None, typer.Argument(metavar="[RELATION]", show_default=False)] = None,
    older_than: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="Only what was asked longer ago than this: 90 (seconds), 15m, 2h, 3d."
        ),
    ] = None,
) -> None:
    """Forget what was asked, and the rows that came of it: it will be asked again. Without RELATION, of all."""
    with told():
        from api.durations import seconds_of
        from mediator.clock import wall
        from mediator.store.store import existing

        until = float("inf")
        if older_than is not None:
            until = wall() - seconds_of("--older-than", older_than)
        with existing(store) as opened:
            _print(_expired(opened, [relation] if relation is not None else opened.names(), until))


@app.command()
def export(
    relation: Name, file: Annotated[Path, typer.Argument(metavar="FILE.parquet")], store: Folder
) -> None:
    """Write the fresh rows of a relation to a Parquet file."""
    with told():
        import pyarrow.parquet as pq

        from mediator.clock import wall
        from mediator.store.store import existing

        if file.suffix.lower() != ".parquet":
            raise Mistake(f"{file}: rows are exported as Parquet: give the file a name that ends in .parquet")
        with existing(store) as opened:
            rows = opened.table(relation, wall())
        try:
            pq.write_table(rows, file)
        except OSError as error:
            raise Mistake(f"{file}: cannot be written: {error.strerror or error}") from None
        _print([f"{_count(len(rows), 'row')} of {relation} in {file}"])


def _sent(store: Path, now: float) -> Iterator[str]:
    """What counts against daily budgets today (UTC): as much as was sent, or a little more after a kill."""
    from mediator.preflight import sent_today

    sent = sent_today(store, now)
    if sent is None:
        yield "requests today: not known, as the count was damaged; daily budgets count as spent"
    elif sent:
        yield f"requests today: {', '.join(f'{count:,} to {name}' for name, count in sorted(sent.items()))}"


def _expired(store: Store, names: Sequence[str], until: float) -> Iterator[str]:
    for name in names:
        entries, rows = store.expire(name, until)
        yield f"{name}: {_count(entries, 'entry', 'entries')} and {_count(rows, 'row')} forgotten"
    if not names:
        yield "nothing is kept"


def _explained(held: Held, now: float) -> Iterator[str]:
    from api.listing import sql_name

    declared = held.declared
    key = f"   key: {', '.join(declared.key)}" if declared.key else ""
    yield f"{declared.name}{key}"
    yield f"  {', '.join(f'{f.name} {sql_name(f.type)}' for f in declared.schema)}"
    yield f"  {_size(held)}"
    for line in _ends(held, now):
        yield f"  {line}"


def _size(held: Held) -> str:
    return (
        f"{_count(held.rows, 'row')} in {_count(len(held.segments), 'segment')}, {held.size / 1_000:,.1f} kB"
    )


def _ends(held: Held, now: float) -> list[str]:
    """What is covered, for each bind set: how much, how old, and for how long it may be relied on."""
    by_bind_set = attrgetter("bind_set")
    lines = [
        _end(bind_set, list(some), now)
        for bind_set, some in groupby(sorted(held.covered, key=by_bind_set), key=by_bind_set)
    ]
    return lines or ["no lookup has come to its end"]


def _end(bind_set: tuple[str, ...], covered: list[Covered], now: float) -> str:
    from api.durations import length

    ages = sorted(now - c.at for c in covered)
    expired = sum(c.until < now for c in covered)
    what = f"{_count(len(covered), 'binding')} of {', '.join(bind_set)}" if bind_set else "all rows"
    newest, oldest = length(ages[0]), length(ages[-1])
    asked = f"{oldest} ago" if newest == oldest else f"{newest} to {oldest} ago"
    if expired == len(covered):
        return f"{what}, asked {asked}, expired"
    first = min(c.until for c in covered if c.until >= now) - now
    fresh = f"fresh for {length(first)}" + (", at least" if len(covered) - expired > 1 else "")
    return f"{what}, asked {asked}, {fresh}" + (f"; {expired:,} expired" if expired else "")


def _count(n: int, one: str, many: str = "") -> str:
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def _print(lines: Iterator[str] | Sequence[str]) -> None:
    from api.cells import harmless
    from api.terminal import stdout

    for line in lines:
        stdout().print(harmless(line))
