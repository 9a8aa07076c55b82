"""Q1 of the SteM paper (figure 7): an index join whose rows are not held up behind one another.

R comes from a scan, S from an index that is slower; 1,000 rows of R have 250 values. The rival is the same join as one
module that handles R's rows in their order of arrival.
"""

from __future__ import annotations

import argparse
import asyncio
from math import ceil
from pathlib import Path

from bench.result import Result
from bench.rivals import index_join
from bench.site import Pace, Site
from bench.timed import Timeline, engine, least_area, middle

SUMMARY = "the SteM paper's Q1 over HTTP: an index join without head-of-line blocking"

SQL = "select * from r, s where r.a = s.x"


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rounds", type=int, default=3, help="contestants in turns, so many times")


def measure(options: argparse.Namespace) -> Result:
    return asyncio.run(measured(Pace(), options.rounds))


async def measured(pace: Pace, rounds: int) -> Result:
    """Figures are of the round whose run took the median time, except that every round must have the same lookups."""
    with Site(pace) as site:
        await engine(site, site.catalog, SQL, "/by-x")  # kernels and caches are warm from here on
        pairs, again = [], []
        for _ in range(rounds):
            first, second = await engine(site, site.catalog, SQL, "/by-x", times=2)
            pairs.append((first, await index_join(site)))
            again.append(second)
    ours = middle([mine for mine, _ in pairs])
    rival = next(rival for mine, rival in pairs if mine is ours)
    agree(pace, [run for pair in pairs for run in pair] + again)
    return compared(pace, ours, rival, [mine for mine, _ in pairs], again)


def draw(result: Result, file: Path) -> None:
    """Figure 7: results, and index probes, over time."""
    from bench.drawing import saved, steps

    with saved(file, 2) as axes:
        steps(axes[0], {n: t.curve() for n, t in result.curves.items()}, "Q1: results", "rows")
        steps(axes[1], {n: t.asked() for n, t in result.curves.items()}, "Q1: index probes", "lookups sent")


def agree(pace: Pace, runs: list[Timeline]) -> None:
    found = {run.answers for run in runs}
    if found != {pace.rows}:
        raise RuntimeError(f"{pace.rows} answers were to be found, and these were: {sorted(found)}")


def compared(
    pace: Pace, ours: Timeline, rival: Timeline, rounds: list[Timeline], again: list[Timeline]
) -> Result:
    page = pace.r_scan / pace.pages
    waves = ceil(pace.distinct / pace.concurrency)
    limit = max(page + waves * pace.lookup, pace.r_scan + pace.lookup)
    least, ratios = least_area(ours, [rival])
    figures = {
        "lookups": max(run.requests["s_x"] for run in rounds),
        "lookups_again": max(run.requests["s_x"] for run in again),
        "ttfr_vs_latency": ours.first / (page + pace.lookup),
        "completion_vs_limit": ours.ended / limit,
        "area_vs_best_rival": least,
    }
    detail = {
        "sql": SQL,
        "setting": setting(pace),
        "limit_s": round(limit, 3),
        "limit_is": f"R's first page, then {waves} lookups one after another",
        "seconds": [round(run.ended, 3) for run in rounds],
        "first_row_s": round(ours.first, 4),
        "again_s": [round(run.ended, 4) for run in again],
        "rival": {"seconds": round(rival.ended, 3), "lookups": rival.requests["s_x"]},
        "area_by_tenth": ratios,
        "taken": f"the median of {len(rounds)} rounds",
    }
    return Result("q1", figures, detail, {"SteMs": ours, "index join": rival})


def setting(pace: Pace) -> str:
    """The scale of it, in words."""
    return (
        f"real HTTP on loopback, 1:40 of the paper: {pace.rows} rows in pages of {pace.page}; R takes"
        f" {pace.r_scan:g} s, T {pace.t_scan:g} s, a lookup {1_000 * pace.lookup:g} ms;"
        f" {pace.concurrency} lookups under way at once"
    )
