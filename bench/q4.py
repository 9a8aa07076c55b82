"""Q4 of the SteM paper (figure 8): T can be scanned, and looked up by key; the engine does both.

The rivals are the same engine with a catalog that leaves it one way: without T's scan it is an index join, without T's
index a symmetric hash join.
"""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path

from bench.q1 import setting
from bench.result import Result
from bench.site import Pace, Site, without
from bench.timed import Timeline, engine, least_area, middle

SUMMARY = "the SteM paper's Q4 over HTTP: a hybrid of index and hash join"

SQL = "select * from r, t where r.key = t.key"
_PATH = "/by-key"


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rounds", type=int, default=3, help="contestants in turns, so many times")


def measure(options: argparse.Namespace) -> Result:
    return asyncio.run(measured(Pace(), options.rounds))


async def measured(pace: Pace, rounds: int) -> Result:
    """Figures are of the round whose run took the median time."""
    with Site(pace) as site:
        ways = {
            "hybrid": site.catalog,
            "index join": without(site.catalog, "t", "scan"),
            "hash join": without(site.catalog, "t", "by_key"),
        }
        await engine(site, site.catalog, SQL, _PATH)  # kernels and caches are warm from here on
        runs: dict[str, list[Timeline]] = {name: [] for name in ways}
        for _ in range(rounds):
            for name, catalog in ways.items():
                runs[name] += await engine(site, catalog, SQL, _PATH)
    found = {run.answers for of in runs.values() for run in of}
    if found != {pace.rows}:
        raise RuntimeError(f"{pace.rows} answers were to be found, and these were: {sorted(found)}")
    return _result(pace, runs)


def draw(result: Result, file: Path) -> None:
    """Figure 8: results over time, early and whole; and index probes."""
    from bench.drawing import saved, steps

    curves = {name: timeline.curve() for name, timeline in result.curves.items()}
    with saved(file, 3) as axes:
        steps(axes[0], curves, "Q4: results, at first", "rows")
        axes[0].set(xlim=(0, 0.2 * result.curves["hybrid"].ended), ylim=(0, 150))
        steps(axes[1], curves, "Q4: results", "rows")
        steps(axes[2], {n: t.asked() for n, t in result.curves.items()}, "Q4: index probes", "lookups sent")


def _result(pace: Pace, runs: dict[str, list[Timeline]]) -> Result:
    ours = middle(runs["hybrid"])
    at = runs["hybrid"].index(ours)
    rivals = {name: of[at] for name, of in runs.items() if name != "hybrid"}
    limit = max(pace.r_scan, pace.t_scan)
    least, ratios = least_area(ours, list(rivals.values()))
    figures = {
        "lookups": float(ours.requests["t_key"]),
        "ttfr_vs_latency": ours.first / (pace.r_scan / pace.pages + pace.lookup),
        "completion_vs_limit": ours.ended / limit,
        "area_vs_best_rival": least,
    }
    detail = {
        "sql": SQL,
        "setting": setting(pace),
        "limit_s": round(limit, 3),
        "limit_is": f"the {pace.pages} pages of T, which must follow one another",
        "seconds": {name: [round(run.ended, 3) for run in of] for name, of in runs.items()},
        "first_row_s": {name: round(of[at].first, 4) for name, of in runs.items()},
        "lookups": {name: [run.requests["t_key"] for run in of] for name, of in runs.items()},
        "area_by_tenth": ratios,
        "taken": f"the median of {len(runs['hybrid'])} rounds",
    }
    return Result("q4", figures, detail, {"hybrid": ours, **rivals})
