"""`mediator profile`: what harvests and runs were like, as a small file that later runs begin with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from api.exits import Mistake, told
from api.options import CatalogPaths, Variables, pairs

if TYPE_CHECKING:
    from pipeline.profiling.job import Profiled

_TOLD = 0.5  # of as many pairs of values as there could be: fewer are worth a line
_FEW = 20.0  # rows, below which chance can look like a rule


def profile(
    store: Annotated[
        Path | None,
        typer.Option("--store", metavar="DIR", help="Whose harvests are looked at, and where it goes."),
    ] = None,
    other: Annotated[
        list[Path] | None,
        typer.Option(
            "--from",
            metavar="DIR",
            help="Another store whose harvests and measurements count; may be repeated.",
        ),
    ] = None,
    trace: Annotated[
        list[Path] | None,
        typer.Option(
            "--trace",
            metavar="FILE",
            help="What `mediator query --trace` kept, or a folder of it; may be repeated.",
        ),
    ] = None,
    catalog: CatalogPaths = None,
    variable: Variables = None,
) -> None:
    """Make a profile of what was harvested and measured: how many values, what joins, what goes together, how fast and
    how often wrong the sites are. One job in Spark; needs Java.

    Runs with this store begin with it: policies know what joins bring before they have tried, `explain` what selections
    leave. What a run sees for itself goes before it.
    """
    with told():
        from api.catalogs import to_read
        from api.terminal import stderr
        from pipeline.profiling.job import profile as made
        from pipeline.session import local_session

        if store is None:
            raise Mistake("say of what, and where it is to go: --store DIR")
        known = to_read(catalog or [], pairs("--set", variable), demo=False)
        with local_session() as spark:
            done = made(spark, known, store, others=other or (), runs=trace or ())
        for line in _lines(done):
            stderr().print(line, soft_wrap=True)


def _lines(done: Profiled) -> Iterator[str]:
    from api.cells import harmless

    said, size = done.said, done.path.stat().st_size
    yield harmless(f"{done.path}: {size / 1_000:,.1f} kB, made in {done.seconds:.1f} s")
    for name, one in sorted(said["relations"].items()):
        whole = "all of it" if one["whole"] else "some of it"
        yield harmless(f"  {name}: {one['rows']:,} rows, {whole}; {_columns(one)}")
        for column, found in one["columns"].items():
            if found["heavy"] and found["heavy"][0][1] >= _FEW:
                value, rows = found["heavy"][0]
                yield harmless(f"    heavy: {column} = {value[:40]!r} in {rows:,} rows")
        for pair in one["together"]:
            yield from _correlated(one, pair)
    for method in said["measured"]:
        yield harmless(f"  {_measured(method)}")
    for run in said["runs"]:
        cause = f" ({run['cause']})" if run["cause"] else ""
        yield harmless(
            f"  in traces: {run['relation']}.{run['method']}: {run['lookups']:,} {run['how']}{cause}, median "
            f"{run['seconds'][1]:.3g} s"
        )


def _columns(one: dict[str, Any]) -> str:
    return (
        ", ".join(f"{found['distinct']:,} {name}" for name, found in one["columns"].items()) or "no columns"
    )


def _correlated(one: dict[str, Any], pair: dict[str, Any]) -> Iterator[str]:
    """Where two columns have far fewer pairs of values than they could have."""
    from api.cells import harmless

    names, columns = pair["columns"], one["columns"]
    if any(name not in columns or columns[name]["distinct"] < 2 for name in names):
        return
    counts = [columns[name]["distinct"] for name in names]
    most = min(counts[0] * counts[1], one["rows"])
    least = max(counts)
    # A key tells everything, and is no news; nor is what could not be otherwise.
    if one["rows"] >= _FEW and 2 * least < one["rows"] and pair["distinct"] < _TOLD * most:
        yield harmless(f"    together: {names[0]} and {names[1]} have {pair['distinct']:,} pairs of {most:,}")


def _measured(method: dict[str, Any]) -> str:
    from mediator.store.statistics import entry

    place, found = entry(method)
    latency = found.latency
    return (
        f"{place.relation}.{place.method} at {place.source}: {found.requests:,.0f} requests, median "
        f"{latency.quantile(0.5):.3g} s, 95 % within {latency.quantile(0.95):.3g} s, {found.error_rate:.1%} failed"
    )
