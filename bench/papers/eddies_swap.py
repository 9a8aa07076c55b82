"""Figures 10 and 11 of the first paper on eddies: two external indexes, which change their speeds while the query runs.

`R.a = S.a and R.b = T.b`; R's 30,000 rows are scanned, S and T are looked up, and for 1 % of the rows each has a match.
At first S answers at once and T takes 5 s a lookup; after 30 s they swap. Either static plan runs into the slow one:
S first with the 1,000 rows that are left after the swap, T first with the 6 before it and the 300 that T let pass. The
paper's windowed lottery is far better than both. In figure 11 R has 4,000 rows, the indexes find 10 % and cost 1 and
100 units, and which is which changes with every 1,000 rows. The eddy sends most rows to the cheap one first throughout.

The scale is not the same for all. The phase is 20 times shorter than the paper's (30 s), and a slow lookup 833 times
(5 s): some 250 slow lookups fit into the first phase where the paper's has room for 6. With 1:20 for both the better
static plan alone would need 75 s. So a static plan is caught by less than in the paper, and a row that was sent the
wrong way to see how things are costs less as well.

An index answers one lookup at a time, in the order in which it is asked; but nobody waits for it: a row that was sent
to look something up there is queued there, and stays. So the sooner a policy sees a queue, the fewer rows stand in it.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pyarrow as pa

from bench.papers.axes import beside, lines
from bench.papers.eddies import DEFAULT, Entry, Race, ordered, policies, raced
from bench.papers.indexes import Index
from bench.papers.swapping import Cost, Live
from bench.result import Result
from mediator.assembly import Settings
from mediator.eddy.destinations import Probe
from mediator.flow.batch import Signature

SUMMARY = "figures 10 and 11 of the paper on eddies: two external indexes that swap their speeds"

SQL = "select r.k, s.c as sc, t.c as tc from r, s, t where r.a = s.a and r.b = t.b"
_R, _S, _T = range(3)  # aliases
_ORDERS = {"S first": (_R, _S, _T), "T first": (_R, _T, _S)}
_ROWS, _FOUND, _IN_PHASE_ONE = 30_000, 0.01, 29_000
_FEW_ROWS, _OFTEN, _TURN = 4_000, 0.1, 1_000
_DRAWN = (DEFAULT, "windowed", "lottery")


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--scale", type=float, default=1.0, help="times the paper's rows")
    parser.add_argument("--phase", type=float, default=1.5, help="seconds until the swap: 30 in the paper")
    parser.add_argument("--slow", type=float, default=0.006, help="seconds of a slow lookup: 5 in the paper")
    parser.add_argument("--batch", type=int, default=50, help="rows of R in a batch")
    parser.add_argument("--unit", type=float, default=1e-5, help="seconds of a unit of cost in figure 11")
    parser.add_argument("--small-batch", type=int, default=10, help="rows of R in a batch in figure 11")
    parser.add_argument("--window", type=int, default=256, help="rows of the windowed lottery's window")
    parser.add_argument("--rounds", type=int, default=1, help="contestants in turns, so many times")
    parser.add_argument("--seed", type=int, default=1, help="of the tables")


def measure(options: argparse.Namespace) -> Result:
    """Both figures, by both orders and by all policies."""
    warm = _live(options, 1_000, _OFTEN, (_nothing, _nothing), 100, 0.0)
    for order in _ORDERS.values():
        ordered(warm, order).run()  # kernels and caches are warm from here on
    swapped, toggled = _figure_10(options), _figure_11(options)
    result = Result("eddies-swap", curves={"swapped": swapped, "toggled": toggled})
    result.curves["moves"] = _moves(options)
    result.figures = {
        "default_vs_best_static": swapped.ratios()[DEFAULT],
        "toggled_vs_best_static": toggled.ratios()[DEFAULT],
    }
    result.detail |= {
        "sql": SQL,
        "setting": _setting(options),
        "figure_10": _told(swapped),
        "figure_11": _told(toggled),
    }
    return result


def draw(result: Result, file: Path) -> None:
    """Figure 10: the time of each contestant, and lookups over time; figure 11: where rows of R went first."""
    from bench.drawing import saved

    with saved(file, 3) as axes:
        beside(axes[0], {n: result.detail[n]["seconds"] for n in ("figure_10", "figure_11")}, "seconds")
        served = {name: runs[-1].served for name, runs in result.curves["swapped"].runs.items()}
        lines(axes[1], served, "figure 10", "seconds", "lookups answered", stepped=True)
        moves = {name: [(at, 100 * s) for at, s in curve] for name, curve in result.curves["moves"].items()}
        lines(axes[2], moves, "figure 11: rows of R", "rows that have come", "% that went to S first")


def _nothing(binding: object, at: float) -> float:
    return 0.0


def _figure_10(options: argparse.Namespace) -> Race:
    rows = round(options.scale * _ROWS)
    swap = options.phase

    def cost_of_s(binding: object, at: float) -> float:
        return options.slow if at >= swap else 0.0

    def cost_of_t(binding: object, at: float) -> float:
        return options.slow if at < swap else 0.0

    seconds = options.phase * _ROWS / _IN_PHASE_ONE
    return _raced(options, _live(options, rows, _FOUND, (cost_of_s, cost_of_t), options.batch, seconds))


def _figure_11(options: argparse.Namespace) -> Race:
    """What a lookup costs is a matter of its row's place in R, as if R had come only as fast as it was worked off."""
    return _raced(options, _toggling(options))


def _toggling(options: argparse.Namespace) -> Live:
    rows, turn = round(options.scale * _FEW_ROWS), max(1, round(options.scale * _TURN))
    unit: float = options.unit

    def cost(binding: object, dear: int) -> float:
        assert isinstance(binding, int)
        return unit * (100 if binding // turn % 2 == dear else 1)

    costs = (lambda binding, at: cost(binding, 1)), (lambda binding, at: cost(binding, 0))
    seconds = (
        1.25 * rows * 100 * _OFTEN * options.unit
    )  # what the dear index needs for the rows that are let through
    return _live(options, rows, _OFTEN, costs, options.small_batch, seconds)


def _moves(options: argparse.Namespace) -> dict[str, list[tuple[float, float]]]:
    """Of the rows of R so far, how many went to S first, over how many have come: by a run of its own each."""
    live = _toggling(options)
    return {name: entry.moves(_R, _S) for name, entry in _entries(options, live).items() if name in _DRAWN}


def _live(
    options: argparse.Namespace, rows: int, found: float, costs: tuple[Cost, Cost], batch: int, seconds: float
) -> Live:
    """R, whose row k has k for a and for b, so that each lookup is another one; and what is found of them."""
    random = np.random.default_rng(options.seed)
    k = np.arange(rows)
    r = pa.table({"k": k, "a": k, "b": k})
    indexes = []
    for name, field in (("s", "a"), ("t", "b")):
        keys = np.sort(random.choice(rows, max(1, round(found * rows)), replace=False))
        indexes.append(Index(name, pa.table({field: keys, "c": keys + 1}), field))
    return Live(SQL, "r", r, dict(zip(indexes, costs, strict=True)), batch, seconds)


def _entries(options: argparse.Namespace, live: Live) -> dict[str, Entry]:
    windowed = Entry(live, Settings(policy="windowed", window=options.window))
    return {**policies(live), "windowed": windowed}


def _raced(options: argparse.Namespace, live: Live) -> Race:
    statics = {name: ordered(live, order) for name, order in _ORDERS.items()}
    return raced(statics, _entries(options, live), options.rounds, warmed=True)


def _told(race: Race) -> dict[str, object]:
    return {
        "best_static": race.best_static,
        "ratios": race.ratios(),
        "seconds": race.seconds(),
        "s_first": race.shares(Signature(1 << _R), Probe(_S)),
        "lookups": {name: runs[-1].asked for name, runs in race.runs.items()},
        "answers": race.answers,
    }


def _setting(options: argparse.Namespace) -> str:
    rows, few = round(options.scale * _ROWS), round(options.scale * _FEW_ROWS)
    return (
        f"figure 10: {rows:,} rows of R come in {options.phase * _ROWS / _IN_PHASE_ONE:.3g} s, in batches of"
        f" {options.batch:,}; the swap is after {options.phase:g} s instead of 30 s, and a slow lookup takes"
        f" {1e3 * options.slow:g} ms instead of 5 s (1:{30 / options.phase:.0f} and 1:{5 / options.slow:.0f}, so that"
        f" {options.phase / options.slow:.0f} slow lookups fit into the first phase instead of 6)."
        f" Figure 11: {few:,} rows in batches of {options.small_batch:,}, a"
        f" unit is {1e6 * options.unit:g} us. Each index answers one lookup at a time; lookups sleep for real."
        f" Contestants in turns, best of {options.rounds} rounds; the window of the windowed lottery is"
        f" {options.window:,} rows"
    )
