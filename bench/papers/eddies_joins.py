"""Figures 7, 8 and 9 of the first paper on eddies: three tables, and which join first.

`R.a = S.a and S.b = T.b`; all rows come together, S is the table in the middle. In figure 7 R and S are joined by hash,
and T is behind an index that finds something for a tenth of S's rows; the paper's lottery is nearly as fast as the
better order. In figure 8 both are hash joins: a row of S finds 0.2 or 1.8 rows of R, and one of T; the lottery is near
the better order again, and naive between the two. Figure 9 is the share of S's rows that took the better order.

The paper's index join is done for every row that R has multiplied, so that it should come first where R matches 180 %.
Here a value is looked up once, however many rows have it, and what is found is joined with what is there: the hash join
comes first in either case, as it spares lookups.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from time import thread_time
from typing import Any

from bench.papers.axes import beside
from bench.papers.eddies import DEFAULT, Race, in_turns, ordered, policies, raced, three_tables
from bench.papers.eddies import R as R_ROWS
from bench.papers.eddies import S as S_ROWS
from bench.papers.eddies import T as T_ROWS
from bench.papers.fed import Fed
from bench.papers.indexes import Index, catalog_with
from bench.result import Result
from mediator.eddy.destinations import Probe
from mediator.flow.batch import Signature

SUMMARY = "figures 7, 8 and 9 of the paper on eddies: which of two joins first"

SQL = "select r.k, s.k as sk, t.c from r, s, t where r.a = s.a and s.b = t.b"
_R, _S, _T = range(3)  # aliases
_ORDERS = {"R first": (_S, _R, _T), "T first": (_S, _T, _R)}
_FIRST = {"R first": Probe(_R), "T first": Probe(_T)}


@dataclass(frozen=True)
class Point:
    """One of the four queries."""

    said: str
    matches: float  # rows of R that a row of S finds: 0.2 or 1.8
    lookup: float | None = None  # seconds of one in T; none where T is scanned


_LOOKUP = 2e-5
POINTS = {
    "index and hash, 180 %": Point("figure 7: R-S 180 %, T by an index that finds 10 %", 1.8, _LOOKUP),
    "index and hash, 20 %": Point("figure 7: R-S 20 %, T by an index that finds 10 %", 0.2, _LOOKUP),
    "hash and hash, 20 %": Point("figure 8: R-S 20 %, S-T 100 %", 0.2),
    "hash and hash, 180 %": Point("figure 8: R-S 180 %, S-T 100 %", 1.8),
}


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--scale", type=float, default=1.0, help="times the paper's rows")
    parser.add_argument("--batch", type=int, default=2_000, help="rows in a batch")
    parser.add_argument("--rounds", type=int, default=15, help="of two hash joins, contestants in turns")
    parser.add_argument("--index-rounds", type=int, default=2, help="of an index and a hash join")
    parser.add_argument("--seed", type=int, default=1, help="of the tables")
    parser.add_argument("--only", default="", help="points whose name begins so")


def measure(options: argparse.Namespace) -> Result:
    """Each of the four queries, by both orders and by all policies."""
    result = Result("eddies-joins")
    result.detail |= {"sql": SQL, "setting": _setting(options), "points": {}}
    for name, point in POINTS.items():
        if name.startswith(options.only):
            race = _race(point, options)
            result.curves[name] = race
            result.detail["points"][name] = _told(point, race)
    points = result.detail["points"]
    result.figures["default_worst_ratio"] = max(point["ratios"][DEFAULT] for point in points.values())
    result.detail["tables"] = {"query": {name: _in_short(point) for name, point in points.items()}}
    return result


def draw(result: Result, file: Path) -> None:
    """Figures 7 and 8: each contestant's time ÷ the better order's; 9: the share of rows that took that order."""
    from bench.drawing import saved

    points = result.detail["points"]
    with saved(file, 2) as axes:
        beside(
            axes[0], {name: p["ratios"] for name, p in points.items()}, "figures 7, 8: time / better order's"
        )
        beside(
            axes[1], {name: p["took_it"] for name, p in points.items()}, "figure 9: rows in the better order"
        )
        axes[0].axvline(1.0, color="black", linewidth=0.5)


def _race(point: Point, options: argparse.Namespace) -> Race:
    found = 1.0 if point.lookup is None else 0.1
    tables = three_tables(options.scale, options.seed, point.matches, found)
    indexes = [] if point.lookup is None else [Index("t", tables.pop("t"), "b", point.lookup)]
    arriving = in_turns(tables, options.batch)
    fed = Fed(SQL, catalog_with(tables, *indexes), arriving, indexes, clock=thread_time)
    rounds = options.index_rounds if indexes else options.rounds
    return raced({name: ordered(fed, order) for name, order in _ORDERS.items()}, policies(fed), rounds)


def _in_short(point: Mapping[str, Any]) -> dict[str, object]:
    """For the page: what there was to be won, and what the default made of it."""
    ours = point["ratios"][DEFAULT]
    return {
        "worse order ÷ better": point["at_stake"],
        "default ÷ better": ours,
        "random ÷ better": point["ratios"]["random"],
        "the default is": "slower than both"
        if ours > point["at_stake"]
        else "within them"
        if ours > 1
        else "ahead",
    }


def _told(point: Point, race: Race) -> dict[str, object]:
    better = race.best_static
    return {
        "is": point.said,
        "ratios": race.ratios(),
        "at_stake": race.at_stake,
        "seconds": race.seconds(),
        "better_order": better,
        "took_it": race.shares(Signature(1 << _S), _FIRST[better]),
        "lookups": {name: runs[-1].asked for name, runs in race.runs.items()} if point.lookup else None,
        "answers": race.answers,
    }


def _setting(options: argparse.Namespace) -> str:
    r, s, t = (round(options.scale * n) for n in (R_ROWS, S_ROWS, T_ROWS))
    return (
        f"{r:,} rows of R, {s:,} of S, {t:,} of T, interleaved in batches of {options.batch:,} so that all end"
        f" together; contestants in turns, best of {options.rounds} rounds of work (of {options.index_rounds} where"
        f" there is an index, which answers as soon as it is asked, and keeps its caller at work for"
        f" {1e6 * _LOOKUP:g} us a lookup)"
    )
