"""What it costs to be able to adapt, where there is nothing to gain by it.

The study of overheads (2004) puts eddies into PostgreSQL and runs queries all of whose plans cost the same, at
re-optimization frequencies from every tuple to every 1,000 tuples. It claims that selections cost about twice the
base system's time where they are next to free and almost nothing on top where a row takes 10 us or more (figure 5),
that joins cost no more than symmetric hash joins do anyway (figure 6) and that index joins cost next to nothing
(figure 7), in each case as long as the order is not thought over for every tuple.

Here what is routed is a batch, and each case is set against the fixed policy in the same engine: what is left is the
cost of deciding. `default_frequency` is the default settings' time ÷ the fixed route's, the worst over all cases;
`every_batch` the same with an order that is thought over for every batch. By default a choice is also held for some
work, and visits that bring nothing new are not told; who thinks every 1, 10, 100 or 1,000 batches holds nothing and is
told of every visit. How often each really thought is counted, in runs of their own.
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
from mediator.eddy.policies.foresight import Foresight
from mediator.eddy.policies.outlook import Outlook
from mediator.eddy.routing import Router
from mediator.flow.batch import Batch

SUMMARY = "what deciding costs where every plan costs the same: selections, joins and index joins"

FREQUENCIES = (1, 10, 100, 1_000)
_DEFAULT, _FIXED = "default", "fixed"
_FEW = 2  # rounds
_INDEXED = 10  # times as many rows, where they are looked up: so it is in the study
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
            f"tables of {options.rows:,} rows (index joins: {_INDEXED * options.rows:,}) in batches of"
            f" {options.batch:,}; contestants in turns, the best of {options.rounds} rounds"
            f" ({_FEW} where rows are delayed or"
            " looked up); delays by the wall clock, all else by"
            " the thread's work"
        ),
        "batch": options.batch,
        "default": (
            f"{Settings().policy}, thought over every {Settings().revisit} batches of a signature at most, and held for"
            f" {1e3 * Settings().held:g} ms of work"
        ),
        **_counted(chosen),
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
    frequencies = {_every(n): Entry(case.fed, Settings(revisit=n, held=0.0)) for n in FREQUENCIES}
    fixed = {_FIXED: Entry(case.fed, Settings(policy="fixed"))}
    return fixed, {_DEFAULT: Entry(case.fed, Settings()), **frequencies}


def _every(batches: int) -> str:
    return f"every {batches:,}"


def _counted(chosen: list[Case]) -> dict[str, object]:
    """What routing takes, and how often it is thought over, in every case."""
    routed = {case.name: routing(case) for case in chosen}
    return {
        "routing_us_a_batch": {
            name: {entry: round(of.microseconds, 2) for entry, of in entries.items()}
            for name, entries in routed.items()
        },
        "tables": {
            "decisions": {
                name: {
                    "batches with a choice": entries[_FIXED].choices,
                    **{entry: of.thoughts for entry, of in entries.items() if entry != _FIXED},
                }
                for name, entries in routed.items()
            }
        },
    }


@dataclass(slots=True)
class Routing:
    """What became of a run's batches: where there was more than one way, and how often a policy thought about it."""

    choices: int = 0
    thoughts: int = 0
    routed: int = 0
    seconds: float = 0.0  # of finding ways and of learning

    @property
    def microseconds(self) -> float:
        """A batch."""
        return 1e6 * self.seconds / max(1, self.routed)


def routing(case: Case) -> dict[str, Routing]:
    """By contestant; in runs of their own."""
    fixed, others = _contestants(case)
    return {name: _watched(entry) for name, entry in {**fixed, **others}.items()}


class _Eye:
    """Stands between the engine's steps while one run is counted."""

    def __init__(self) -> None:
        self.seen = Routing()
        self._choosing = False

    def timed(self, step: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any, **named: Any) -> Any:
            began = thread_time()
            try:
                return step(*arguments, **named)
            finally:
                self.seen.seconds += thread_time() - began

        return timed

    def finding(self, find: Callable[..., Any]) -> Callable[..., Any]:
        timed = self.timed(find)

        def finding(router: Router, batch: Batch) -> Any:
            self.seen.routed += 1
            self.seen.choices += len(router.array(batch.signature)) > 1
            return timed(router, batch)

        return finding

    def choosing(self, choose: Callable[..., Any]) -> Callable[..., Any]:
        def choosing(*arguments: Any) -> Any:
            self._choosing = True
            try:
                return choose(*arguments)
            finally:
                self._choosing = False

        return choosing

    def thinking(self, nearest: Callable[..., Any]) -> Callable[..., Any]:
        """Who holds a choice does not come here, and who looks ahead comes more than once."""

        def thinking(*arguments: Any) -> Any:
            self.seen.thoughts += self._choosing
            self._choosing = False
            return nearest(*arguments)

        return thinking


def _watched(entry: Entry) -> Routing:
    eye = _Eye()
    with (
        patch.object(Router, "next", eye.finding(Router.next)),
        patch.object(Router, "learn", eye.timed(Router.learn)),
        patch.object(Foresight, "choose", eye.choosing(Foresight.choose)),
        patch.object(Outlook, "nearest", eye.thinking(Outlook.nearest)),
    ):
        entry.run()
    return eye.seen


# The queries


def cases(rows: int, batch: int) -> Iterator[Case]:
    """All of the study's figure 4, over tables of so many rows in batches of so many."""
    yield from _selections(_wisconsin(rows, 1), batch)
    for count in (3, 4, 5):
        for listed in ("*", "count(*)"):
            yield _join(_tables("tenk", rows, count), listed, batch)
    for count in (3, 4, 5):
        for every in (10, 1_000):
            yield _index_join(_tables("hundredk", _INDEXED * rows, count), every, batch)


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
        yield _case(f"delay-{microseconds}", "selections", f"{sql} {dear}", {"tenk1": table}, batch, clock)


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
