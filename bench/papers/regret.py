"""How much the default policy loses against the best fixed order with hindsight, on random queries.

The papers compare on a few queries of their own, and the STAIRs study on 475 random ones, where the better of two
techniques is faster by a factor. Here every query has as its rival the best order of its aliases, found after the fact:
all orders are costed from counts of rows (`orders`), the twelve likeliest race, and the winner is raced anew against
the default, so that it does not profit from the luck that made it the winner. All contestants run in the same engine,
in turns; the figures are of seconds of work of the best round. Beside them, as `work`, stands the same ratio of rows
probed with and rows found, in which no clock has a part.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from statistics import median

import numpy as np

from bench.papers.judging import Judged, explained, judged, rounds, setting
from bench.result import Result
from mediator.assembly import Settings
from mediator.state.warming import devote

SUMMARY = "random queries: the default against the best fixed order with hindsight"

_CHECKED = 10  # every so many seeds DuckDB has its say
_SHOWN = 10
_TOLD = 50  # after so many it says how far it is


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--queries", type=int, default=500, help="how many (default: %(default)s)")
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="where their seeds begin")
    parser.add_argument("--processes", type=int, default=2, help="that share them (default: %(default)s)")
    parser.add_argument("--policy", default=Settings().policy, help="in the default's place")
    parser.add_argument("--only", type=int, metavar="SEED", help="this one alone")
    parser.add_argument("--explain", action="store_true", help="with --only: the case in full")


def measure(options: argparse.Namespace) -> Result:
    """Every seed, or the only one."""
    if options.explain and options.only is None:
        raise SystemExit("--explain shows one case: say which with --only SEED")
    if options.explain:
        devote()
        return Result("regret", detail=explained(options.only, options.policy))
    seeds = (
        [options.only] if options.only is not None else range(options.first, options.first + options.queries)
    )
    return summed(_all(seeds, options.policy, options.processes), options.policy)


def summed(cases: Sequence[Judged], policy: str) -> Result:
    """The figures of these cases."""
    ratios = [c.ratio for c in cases]
    figures = {
        "median": median(ratios),
        "p99": float(np.percentile(ratios, 99)),
        "worst": max(ratios),
        "saved_vs_worst": median(c.default / c.worst for c in cases),
        "estimated_worst_vs_best": median(c.span for c in cases),
        "work_median": median(c.work for c in cases),
        "work_p99": float(np.percentile([c.work for c in cases], 99)),
        "work_worst": max(c.work for c in cases),
    }
    worst = sorted(cases, key=lambda c: -c.ratio)[:_SHOWN]
    detail = {
        "policy": policy,
        "setting": (
            f"{len(cases)} random queries from seed {cases[0].seed} on, 3 to 7 tables of 1k to 100k rows; {setting()}"
        ),
        "taken": rounds(),
        "tables": {"drawings": _drawings(cases), "queries": _by_length(cases)},
        "checked_by_duckdb": sum(c.checked for c in cases),
        "median_by_kind": _by(cases, lambda c: c.kind),
        "median_by_tables": _by(cases, lambda c: str(c.tables)),
        "ms_of_the_best_order": _spread([1e3 * c.best for c in cases]),
        "ratio": _spread(ratios),
        "work": _spread([c.work for c in cases]),
        "steps": _spread([c.steps for c in cases]),
        "deciding": _spread([c.deciding / c.default for c in cases]),
        "worst": [_shown(c) for c in worst],
    }
    curves = {
        "time": sorted(ratios),
        "work": sorted(c.work for c in cases),
        "worst": sorted(c.default / c.worst for c in cases),
    }
    return Result("regret", figures, detail, curves)


def draw(result: Result, file: Path) -> None:
    """Every query's ratio, the best first; like figure 8 of the STAIRs paper."""
    from bench.drawing import saved

    with saved(file, 2) as axes:
        for name, label in (("time", "seconds"), ("work", "rows probed and found")):
            axes[0].plot(result.curves[name], label=label)
        axes[0].axhline(1.0, color="grey", linewidth=0.8)
        axes[0].set(title="default / best fixed order", xlabel="queries, in order", yscale="log")
        axes[0].legend()
        axes[1].plot(result.curves["worst"])
        axes[1].axhline(1.0, color="grey", linewidth=0.8)
        axes[1].set(title="default / worst fixed order that was run", xlabel="queries, in order", ylim=0)


def _all(seeds: Sequence[int], policy: str, processes: int) -> list[Judged]:
    one = partial(_judged, policy=policy)
    if processes < 2 or len(seeds) < 2:
        devote()
        return [one(seed) for seed in seeds]
    with ProcessPoolExecutor(processes, get_context("spawn"), devote) as pool:
        done = []
        for case in pool.map(one, seeds):
            done.append(case)
            if not len(done) % _TOLD:
                print(f"{len(done)} of {len(seeds)} queries ...", file=sys.stderr, flush=True)
        return done


def _judged(seed: int, policy: str) -> Judged:
    return judged(seed, policy, check=not seed % _CHECKED)


def _drawings(cases: Sequence[Judged]) -> dict[str, dict[str, object]]:
    """What became of all that was drawn."""
    causes = sorted({cause for c in cases for cause in c.redrawn})
    counts = {cause: sum(c.redrawn.get(cause, 0) for c in cases) for cause in causes}
    counts = {"taken": len(cases), **counts}
    total = sum(counts.values())
    return {name: {"how many": n, "share": f"{100 * n / total:.0f} %"} for name, n in counts.items()}


def _by_length(cases: Sequence[Judged]) -> dict[str, dict[str, object]]:
    """Ratios of those queries that are over soon, and of the others."""
    parts = {"best order below 8 ms": [c.ratio for c in cases if c.short]}
    parts["longer"] = [c.ratio for c in cases if not c.short]
    return {
        name: {
            "how many": len(ratios),
            "median": round(median(ratios), 3),
            "p99": round(float(np.percentile(ratios, 99)), 3),
            "worst": round(max(ratios), 3),
        }
        for name, ratios in parts.items()
        if ratios
    }


def _by(cases: Sequence[Judged], of: Callable[[Judged], str]) -> dict[str, float]:
    groups: dict[str, list[float]] = {}
    for case in cases:
        groups.setdefault(of(case), []).append(case.ratio)
    return {name: round(median(some), 3) for name, some in sorted(groups.items())}


def _spread(values: Sequence[float]) -> dict[str, float]:
    at = (0, 10, 25, 50, 75, 90, 95, 99, 100)
    return {f"p{p}": round(float(v), 3) for p, v in zip(at, np.percentile(values, at), strict=True)}


def _shown(case: Judged) -> dict[str, object]:
    return {
        "seed": case.seed,
        "ratio": round(case.ratio, 3),
        "work": round(case.work, 3),
        "steps": round(case.steps, 3),
        "deciding_ms": round(1e3 * case.deciding, 2),
        "default_ms": round(1e3 * case.default, 2),
        "best_ms": round(1e3 * case.best, 2),
        "worst_ms": round(1e3 * case.worst, 2),
        "best_order": "-".join(map(str, case.order)),
        "answers": case.answers,
        **case.said,
        "causes": case.causes,
        "default_went": case.went,
        "best_went": case.should,
    }
