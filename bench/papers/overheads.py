"""What it costs to be able to adapt, where there is nothing to gain by it.

The study of overheads (2004) puts eddies into PostgreSQL and runs queries all of whose plans cost the same, at
re-optimization frequencies from every tuple to every 1,000 tuples. It claims that selections cost about twice the
base system's time where they are next to free and almost nothing on top where a row takes 10 us or more (figure 5),
that joins cost no more than symmetric hash joins do anyway (figure 6) and that index joins cost next to nothing
(figure 7), in each case as long as the order is not thought over for every tuple.

Here what is routed is a batch, and each case is set against the fixed policy in the same engine: what is left is the
cost of deciding. `default_frequency` is the default settings' time ÷ the fixed route's, the worst over all cases;
`every_batch` the same with an order that is thought over for every batch.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, thread_time
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa

from bench.feeding import arrivals, catalog_of
from bench.papers.eddies import Entry, raced
from bench.papers.fed import Clock, Fed
from bench.papers.indexes import Index, catalog_with
from bench.result import Result
from mediator.assembly import Settings
from mediator.catalog.delay import DELAY
from mediator.eddy.routing import Router

SUMMARY = "what deciding costs where every plan costs the same: selections, joins and index joins"

FREQUENCIES = (1, 10, 100, 1_000)
_DEFAULT, _FIXED = "default", "fixed"
_FEW = 2  # rounds
_SHORT = 10  # times fewer rows, where each takes 100 us
_HALF = 2  # times fewer rows, where each is looked up
_SWEEP = (10, 100, 1_000)  # rows in a batch
_FIGURES = {
    "selections": "figure 5: selections",
    "joins": "figure 6: symmetric joins",
    "indexes": "figure 7: index joins",
}


@dataclass(frozen=True)
class Case:
    """A query of the study's figure 4, ready to be run."""

    name: str
    figure: str
    sql: str
    fed: Fed
    slow: bool = False  # takes so long that few rounds have to do


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rows", type=int, default=10_000, help="in a table (default: %(default)s)")
    parser.add_argument("--batch", type=int, default=100, help="rows in a batch")
    parser.add_argument("--rounds", type=int, default=5, help="contestants in turns, so many times")
    parser.add_argument("--only", default="", metavar="CASE,...", help="cases that begin with one of these")


def measure(options: argparse.Namespace) -> Result:
    """Every case, and the worst of each contestant."""
    chosen = _chosen(list(cases(options.rows, options.batch)), options.only)
    races = {
        case.name: raced(*_contestants(case), min(options.rounds, _FEW) if case.slow else options.rounds)
        for case in chosen
    }
    ratios = {name: race.ratios() for name, race in races.items()}
    worst = {entry: max(at[entry] for at in ratios.values()) for entry in next(iter(ratios.values()))}
    result = Result("overheads")
    result.figures |= {"default_frequency": worst[_DEFAULT], "every_batch": worst[_every(1)]}
    result.detail |= {
        "setting": (
            f"tables of {options.rows:,} rows (with a delay of 100 us: {options.rows // _SHORT:,}; index joins, which"
            f" the study does over 100,000: {options.rows // _HALF:,}) in batches of {options.batch:,};"
            f" contestants in turns, the best of up to {options.rounds} rounds; delays by the wall clock, all else by"
            " the thread's work"
        ),
        "batch": options.batch,
        "default": f"{Settings().policy}, thought over every {Settings().revisit} batches of a signature at most",
        "routing_us_a_batch": {case.name: routing(case) for case in chosen},
        "by_rows_in_a_batch": _swept(options),
        "worst_ratio": worst,
        "ratios": ratios,
        "milliseconds": {
            name: {entry: round(1e3 * s, 2) for entry, s in race.seconds().items()}
            for name, race in races.items()
        },
    }
    result.curves |= {"figure": {case.name: case.figure for case in chosen}}
    return result


def draw(result: Result, file: Path) -> None:
    """The study's figures 5, 6 and 7: times ÷ the fixed route's."""
    from bench.drawing import saved
    from bench.papers.axes import beside

    figures: Mapping[str, str] = result.curves["figure"]
    drawn = {f: t for f, t in _FIGURES.items() if f in figures.values()}
    with saved(file, len(drawn)) as axes:
        for axis, (figure, title) in zip(axes, drawn.items(), strict=True):
            groups = {n: r for n, r in result.detail["ratios"].items() if figures[n] == figure}
            beside(axis, groups, f"{title}; time ÷ the fixed route's")
            axis.axvline(1.0, color="black", linewidth=0.8)


def _chosen(known: list[Case], only: str) -> list[Case]:
    for start in only.split(","):
        if not any(case.name.startswith(start) for case in known):
            raise SystemExit(
                f"no case begins with {start!r}; there are {', '.join(case.name for case in known)}"
            )
    return [case for case in known if case.name.startswith(tuple(only.split(",")))]


def _swept(options: argparse.Namespace) -> dict[int, dict[str, float]]:
    """The join of three tables, by the size of its batches: two contestants' times ÷ the fixed route's."""
    found = {}
    for batch in _SWEEP:
        case = _join(_tables("tenk", options.rows, 3), "count(*)", batch)
        fixed, others = _contestants(case)
        ratios = raced(fixed, {name: others[name] for name in (_DEFAULT, _every(1))}, _FEW).ratios()
        found[batch] = {name: ratio for name, ratio in ratios.items() if name != _FIXED}
    return found


def _contestants(case: Case) -> tuple[dict[str, Entry], dict[str, Entry]]:
    frequencies = {_every(n): Entry(case.fed, Settings(revisit=n)) for n in FREQUENCIES}
    fixed = {_FIXED: Entry(case.fed, Settings(policy="fixed"))}
    return fixed, {_DEFAULT: Entry(case.fed, Settings()), **frequencies}


def _every(batches: int) -> str:
    return f"every {batches:,}"


def routing(case: Case) -> dict[str, float]:
    """Microseconds that finding a batch's way and learning from it take, by contestant; in runs of their own."""
    fixed, others = _contestants(case)
    entries = {**fixed, **others}
    return {name: round(_timed(entries[name]), 2) for name in (_FIXED, _DEFAULT, _every(1))}


def _timed(entry: Entry) -> float:
    spent, routed = 0.0, 0

    def timing(step: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any) -> Any:
            nonlocal spent
            began = thread_time()
            try:
                return step(*arguments)
            finally:
                spent += thread_time() - began

        return timed

    find, learn = Router.next, Router.learn
    counted = timing(find)

    def counting(*arguments: Any) -> Any:
        nonlocal routed
        routed += 1
        return counted(*arguments)

    with patch.object(Router, "next", counting), patch.object(Router, "learn", timing(learn)):
        entry.run()
    return 1e6 * spent / max(1, routed)


# The queries


def cases(rows: int, batch: int) -> Iterator[Case]:
    """All of the study's figure 4, over tables of so many rows in batches of so many."""
    yield from _selections(_wisconsin(rows, 1), batch)
    for count in (3, 4, 5):
        for listed in ("*", "count(*)"):
            yield _join(_tables("tenk", rows, count), listed, batch)
    for count in (3, 4, 5):
        for every in (10, 1_000):
            yield _index_join(_tables("hundredk", rows // _HALF, count), every, batch)


def _join(tables: dict[str, pa.Table], listed: str, batch: int) -> Case:
    sql = f"SELECT {listed} FROM {', '.join(tables)} WHERE {_star(list(tables))}"
    name = f"select-{'all' if listed == '*' else 'count'}-{len(tables)}"
    return _case(name, "joins", sql, tables, batch, thread_time)


def _selections(table: pa.Table, batch: int) -> Iterator[Case]:
    domains = {"two": 2, "four": 4, "ten": 10}
    plain = " AND ".join(f"{name} < {values}" for name, values in domains.items())
    sql = "SELECT count(*) FROM tenk1 WHERE"
    yield _case("no-delay", "selections", f"{sql} {plain}", {"tenk1": table}, batch, thread_time)
    for microseconds in (0, 10, 100):
        dear = " AND ".join(f"delay({n}, {microseconds}) < {values}" for n, values in domains.items())
        clock = perf_counter if microseconds else thread_time
        few = table.slice(0, table.num_rows // _SHORT) if microseconds >= 100 else table
        yield _case(f"delay-{microseconds}", "selections", f"{sql} {dear}", {"tenk1": few}, batch, clock)


def _case(name: str, figure: str, sql: str, tables: Mapping[str, pa.Table], batch: int, clock: Clock) -> Case:
    catalog = catalog_of(tables).knowing([DELAY])
    fed = Fed(sql, catalog, arrivals(tables, batch), clock=clock)
    return Case(name, figure, sql, fed, slow=clock is perf_counter)


def _index_join(tables: dict[str, pa.Table], every: int, batch: int) -> Case:
    """The first table is read, and the others are looked up by what its rows say."""
    first, *others = tables
    indexes = [Index(name, tables[name], "unique2") for name in others]
    rounds = arrivals({first: tables[first]}, batch)
    sql = f"SELECT * FROM {', '.join(tables)} WHERE {first}.unique2 % {every} = 0 AND {_star(list(tables))}"
    catalog = catalog_with({first: tables[first]}, *indexes)
    fed = Fed(sql, catalog, rounds, indexes, clock=thread_time)
    return Case(f"index-{len(tables)}-{every}", "indexes", sql, fed, slow=True)


def _tables(kind: str, rows: int, count: int) -> dict[str, pa.Table]:
    return {f"{kind}{n}": _wisconsin(rows, n) for n in range(1, count + 1)}


def _star(tables: list[str]) -> str:
    return " AND ".join(f"{tables[0]}.unique2 = {name}.unique2" for name in tables[1:])


def _wisconsin(rows: int, seed: int) -> pa.Table:
    """The four columns that the study names, in an order of their own."""
    unique = np.random.default_rng(seed).permutation(rows)
    return pa.table({"unique2": unique, "two": unique % 2, "four": unique % 4, "ten": unique % 10})
