"""The engine beside DuckDB and Polars on the same Arrow data: ratios of time and of memory, side by side."""

from __future__ import annotations

import argparse
import cProfile
import pstats
import sys
from collections.abc import Callable
from itertools import permutations
from math import ceil
from pathlib import Path
from statistics import median

from bench.cell import Cell, run
from bench.contestants import DUCKDB, POLARS, POLARS_STREAMING, Entry, contest, ours
from bench.result import Result
from bench.shapes import NAMES, shape

SUMMARY = "joins in memory, all tables streaming in, beside DuckDB and Polars"

HEADLINE = 65_536  # rows in a batch: the best of the sweep, for every figure
SWEEP = (256, 1_024, 4_096, 8_192, 16_384, 32_768, 65_536)
_ROWS, _QUICK = 1_000_000, 100_000
_FEW, _FINALISTS = 2, 3  # rounds in which all fixed orders run, and how many of them then race the policy
# Aliases from first to last; the others of the chain's six orders differ from these for no batch.
_ORDERS = {"int": ((0, 1, 2), (2, 1, 0)), "skew": ((0, 1, 2), (2, 1, 0))}
_STAR_ORDERS = tuple((0, *points) for points in permutations(range(1, 5)))


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rows", type=int, default=_ROWS, help="in a large table (default: %(default)s)")
    parser.add_argument(
        "--quick", action="store_const", const=_QUICK, dest="rows", help=f"{_QUICK:,} of them"
    )
    parser.add_argument(
        "--only", default="", metavar="FIGURE,...", help="figures that begin with one of these"
    )
    parser.add_argument("--rounds", type=int, default=7, help="of every race")
    parser.add_argument("--batch", type=int, default=HEADLINE, help="rows in a batch of the engine's input")
    parser.add_argument(
        "--profile", nargs="?", const="int", choices=NAMES, help="profile one of our runs instead"
    )
    parser.add_argument("--threads", type=int, default=1, help="of the run that is profiled")


def measure(options: argparse.Namespace) -> Result:
    """Every figure that is asked for, each from processes of its own."""
    if options.profile:
        return _profiled(options)
    local = _Local(options)
    for name, figure in local.figures.items():
        if not options.only or any(name.startswith(o) for o in options.only.split(",")):
            print(f"{name} ...", file=sys.stderr, flush=True)
            figure()
    return local.result


def draw(result: Result, file: Path) -> None:
    """Seconds of every contestant, shape by shape, and the sweep."""
    from bench.drawing import bars, saved

    races = {name: race["best_ms"] for name, race in result.detail.items() if name.endswith("t")}
    with saved(file, 1 + len(result.detail.get("sweep", ()))) as axes:
        bars(axes[0], races, "milliseconds, best of all rounds")
        for axis, (name, times) in zip(axes[1:], result.detail.get("sweep", {}).items(), strict=True):
            axis.plot([str(batch) for batch in times], list(times.values()), marker="o")
            axis.set(title=f"{name}: milliseconds by rows in a batch", ylim=0)


class _Local:
    def __init__(self, options: argparse.Namespace) -> None:
        self._rows: int = options.rows
        self._rounds = options.rounds
        self._ours = ours(options.batch)
        self.result = Result("local")
        self.result.detail |= {
            "rows": self._rows,
            "batch": options.batch,
            "taken": f"the best of {self._rounds} rounds, engines in turns, each in a process of its own;"
            " ratios are our time / theirs",
            "clock": "from SQL text (for Polars: from the lazy frame) to all answers as Arrow",
        }
        races = [(shape, threads) for shape in NAMES for threads in (1, 2)]
        self.figures: dict[str, Callable[[], None]] = {
            f"{shape}_{threads}t": self._racing(shape, threads) for shape, threads in races
        }
        self.figures |= {
            "rss_vs_duckdb": self._memory,
            "adaptive_vs_fixed": self._adaptive,
            "growth": self._growth,
            "sweep": self._sweep,
        }

    def _racing(self, shape: str, threads: int) -> Callable[[], None]:
        return lambda: self._race(shape, threads)

    def _race(self, shape: str, threads: int) -> None:
        entries = (self._ours, DUCKDB, POLARS, POLARS_STREAMING)
        outcome = run(Cell(shape, self._rows, threads, entries, self._rounds, check=True))
        best = {e.engine: outcome.best(e) for e in entries}
        name = f"{shape}_{threads}t"
        self.result.figures |= {
            f"{name}_vs_{rival.replace(' ', '_')}": best["mediator"] / best[rival]
            for rival in ("duckdb", "polars", "polars streaming")
        }
        self.result.detail[name] = {
            "answers": outcome.answers,
            "best_ms": {engine: _ms(seconds) for engine, seconds in best.items()},
            "median_ms": {e.engine: _ms(median(outcome.seconds[e.name])) for e in entries},
        }

    def _memory(self) -> None:
        """The process's peak beyond what it had before the run, kernels and libraries being loaded already."""
        peaks = {
            entry.engine: run(Cell("int", self._rows, 2, (entry,), memory=True)).peak
            for entry in (self._ours, DUCKDB, POLARS_STREAMING)
        }
        self.result.figures["rss_vs_duckdb"] = peaks["mediator"] / peaks["duckdb"]
        self.result.detail["rss"] = {engine: f"{peak / 2**20:.0f} MiB" for engine, peak in peaks.items()}

    def _adaptive(self) -> None:
        """Every fixed order a few rounds; then the best of them race two policies, so that none wins by luck: rank, and
        the default."""
        ratios: dict[str, list[float]] = {"adaptive_vs_fixed": [], "default_vs_fixed": []}
        rank = ours(self._ours.batch, "rank")
        details = self.result.detail["adaptive"] = {}
        for name, orders in (*_ORDERS.items(), ("star", _STAR_ORDERS)):
            fixed = [ours(self._ours.batch, "fixed", order) for order in orders]
            screened = run(Cell(name, self._rows, 1, tuple(fixed), _FEW))
            fixed.sort(key=screened.best)
            finalists = fixed[:_FINALISTS]
            final = run(Cell(name, self._rows, 1, (rank, self._ours, *finalists), self._rounds))
            best = min(finalists, key=final.best)
            for figure, entry in zip(ratios, (rank, self._ours), strict=True):
                ratios[figure].append(final.best(entry) / final.best(best))
            details[name] = {
                "ratio": {figure: round(of[-1], 3) for figure, of in ratios.items()},
                "rank_ms": _ms(final.best(rank)),
                "default_ms": _ms(final.best(self._ours)),
                "best_fixed_ms": _ms(final.best(best)),
                "best_fixed": best.name,
                "worst_fixed_ms": _ms(max(screened.best(f) for f in fixed)),
            }
        self.result.figures |= {figure: max(of) for figure, of in ratios.items()}

    def _growth(self) -> None:
        few = ceil(self._rounds / 2)
        at = {scale: run(Cell("int", scale * self._rows, 1, (self._ours, DUCKDB), few)) for scale in (1, 10)}
        growth = {e.engine: at[10].best(e) / at[1].best(e) / 10 for e in (self._ours, DUCKDB)}
        self.result.figures["growth"] = growth["mediator"]
        self.result.detail["growth"] = {
            "duckdb": round(growth["duckdb"], 3),
            **{f"{scale * self._rows} rows": _ms(at[scale].best(self._ours)) for scale in at},
        }

    def _sweep(self) -> None:
        entries = tuple(ours(batch) for batch in SWEEP)
        self.result.detail["sweep"] = {name: self._swept(name, entries) for name in ("int", "str")}

    def _swept(self, name: str, entries: tuple[Entry, ...]) -> dict[int, float]:
        outcome = run(Cell(name, self._rows, 2, entries, _FEW))
        return {entry.batch: _ms(outcome.best(entry)) for entry in entries}


def _profiled(options: argparse.Namespace) -> Result:
    run_once = contest(ours(options.batch), shape(options.profile, options.rows), options.threads)
    run_once()
    profile = cProfile.Profile()
    profile.runcall(run_once)
    pstats.Stats(profile).sort_stats("tottime").print_stats(40)
    return Result(
        "local", detail={"profiled": options.profile, "rows": options.rows, "threads": options.threads}
    )


def _ms(seconds: float) -> float:
    return round(1_000 * seconds, 1)
