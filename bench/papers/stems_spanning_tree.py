"""A cyclic query in which each source stalls in turn: partial answers, and no spanning tree to be bound to.

The SteM paper states, and does not show, that a plan over a fixed spanning tree of a cyclic query is held up wherever
it goes through a source that stalls, and that an eddy over SteMs, which fixes none, gives out partial results over the
edges that are left. Here R, S and T are joined in a circle; one of the three answers nothing at first.

The rivals are the three spanning trees in the same engine: the same query with one of the three equalities written so
that it can be tested only when rows of all three relations are there. A result is an answer, or a partial answer that
joins what can be joined: rows of one relation alone are not counted.

`first_partial_vs_latency` is, of the first record of such partial answers, the time from the arrival of the last page
that one has a row of to when it is told, in latencies: the time that one page takes; of all that the record holds, the
one that has waited longest. The worst of the three stalls, each the median of its rounds. `p95_partial_vs_latency` is
the same for all but one in twenty of the partial answers of a run.

`vs_best_tree` compares with the tree that does best in that stall, which one only knows afterwards: the
worst of the three stalls, and of time to complete, ours ÷ the tree's, and area under results over time, the tree's ÷
ours, up to the end of the longer run; medians of the rounds' ratios. `vs_one_tree` is the same for the tree that does
best in all three together: a plan is made before anybody knows what will stall.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, median

from bench.papers.triangle import COLUMNS, Noting, Pace, Triangle
from bench.papers.turns import turned
from bench.result import Result
from mediator.access import HttpTransport
from mediator.answering import Mediator
from mediator.output.records import Partial, Rows

SUMMARY = "a cyclic query, each of whose sources stalls in turn: partial answers against fixed spanning trees"

OURS = "SteMs"
_SELECT = "select r.k as rk, s.k as sk, t.k as tk, r.a, s.b, t.c from r, s, t where "
_EDGES = {"R-S": "r.a = s.a", "S-T": "s.b = t.b", "T-R": "t.c = r.c"}
# The same condition, that nobody can test before there are rows of all three.
_CHECKS = {"R-S": "r.a + t.k - t.k = s.a", "S-T": "s.b + r.k - r.k = t.b", "T-R": "t.c + s.k - s.k = r.c"}
STATEMENTS: Mapping[str, str] = {
    OURS: _SELECT + " and ".join(_EDGES.values()),
    **{f"without {d}": _SELECT + " and ".join({**_EDGES, d: _CHECKS[d]}.values()) for d in _EDGES},
}
TREES = [name for name in STATEMENTS if name != OURS]


@dataclass(slots=True)
class Run:
    """Times are seconds from the start."""

    results: list[tuple[float, int]] = field(
        default_factory=list
    )  # answers, and partial ones of two relations
    waited: list[float] = field(
        default_factory=list
    )  # of each partial one, since the last page that it has a row of
    first: float | None = None  # of the first record, the longest of these
    answers: int = 0
    partials: int = 0
    ended: float = 0.0

    def area(self, until: float) -> float:
        """Under results over time, in results × seconds."""
        return sum(count * (until - at) for at, count in self.results)

    def curve(self) -> list[tuple[float, float]]:
        total, points = 0, [(0.0, 0.0)]
        for at, count in self.results:
            total += count
            points.append((at, float(total)))
        return [*points, (self.ended, float(total))]


Stalls = Mapping[str, Sequence[Mapping[str, Run]]]  # by the source that stalls: rounds of runs by contestant


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rounds", type=int, default=5, help="contestants in turns, so many times")
    parser.add_argument("--rows", type=int, default=300, help="of each relation")


def measure(options: argparse.Namespace) -> Result:
    return asyncio.run(measured(Pace(rows=options.rows), options.rounds))


async def measured(pace: Pace, rounds: int) -> Result:
    stalls: dict[str, list[dict[str, Run]]] = {}
    with Triangle(pace) as triangle:
        for name in STATEMENTS:
            await _run(triangle, "s", name)  # kernels and caches are warm from here on
        for stalled in COLUMNS:
            stalls[stalled] = [
                {name: await _run(triangle, stalled, name) for name in turned(list(STATEMENTS), n)}
                for n in range(rounds)
            ]
    answers = {run.answers for all_ in stalls.values() for runs in all_ for run in runs.values()}
    if len(answers) != 1:
        raise RuntimeError(f"the answers differ: there are {sorted(answers)} of them")
    return _result(pace, rounds, stalls)


def draw(result: Result, file: Path) -> None:
    """Results over time, for each source that stalls."""
    from bench.drawing import saved, steps

    with saved(file, len(result.curves)) as axes:
        for axis, (stalled, runs) in zip(axes, result.curves.items(), strict=True):
            curves = {name: run.curve() for name, run in runs.items()}
            steps(axis, curves, f"{stalled.upper()} stalls", "answers and partial answers")
            axis.axvspan(0, result.detail["stall_s"], alpha=0.1)


async def _run(triangle: Triangle, stalled: str, name: str) -> Run:
    """One query in a mediator of its own, told everything."""
    loop, run, page = asyncio.get_running_loop(), Run(), triangle.pace.page
    triangle.stall(stalled)
    async with HttpTransport(triangle.catalog.sources) as http:
        noting = Noting(http)
        async with Mediator(triangle.catalog, transport=noting) as mediator:
            began = loop.time()
            async with mediator.answering(STATEMENTS[name], partials=True, most_partials=1 << 20) as answers:
                async for record in answers.records():
                    now = loop.time()
                    if isinstance(record, Rows):
                        run.results.append((now - began, record.batch.num_rows))
                        run.answers += record.batch.num_rows
                    elif isinstance(record, Partial) and len(record.missing) == 1:
                        run.results.append((now - began, len(record.ids)))
                        run.partials += len(record.ids)
                        waited = _waited(record, noting, page, now)
                        run.first = max(waited) if run.first is None else run.first
                        run.waited += waited
                run.ended = loop.time() - began
                if not answers.report.complete:
                    raise RuntimeError(f"incomplete: {answers.report}")
    return run


def _waited(record: Partial, noting: Noting, page: int, now: float) -> list[float]:
    found = []
    for row in record.batch.select([f"{n}k" for n in COLUMNS]).to_pylist():
        came = [
            noting.came[name, row[f"{name}k"] // page + 1] for name in COLUMNS if row[f"{name}k"] is not None
        ]
        found.append(now - max(came))
    return found


def _result(pace: Pace, rounds: int, stalls: Stalls) -> Result:
    firsts = {stalled: median(_first(runs[OURS]) for runs in all_) for stalled, all_ in stalls.items()}
    times = {s: {tree: _median(all_, tree, _slower) for tree in TREES} for s, all_ in stalls.items()}
    areas = {s: {tree: _median(all_, tree, _smaller) for tree in TREES} for s, all_ in stalls.items()}
    # The ratio to the best tree is the largest of those to all trees.
    best = {stalled: max(*times[stalled].values(), *areas[stalled].values()) for stalled in stalls}
    one = {
        tree: max(fmean(times[s][tree] for s in stalls), fmean(areas[s][tree] for s in stalls))
        for tree in TREES
    }
    p95 = {s: median(_p95(runs[OURS].waited) for runs in all_) / pace.latency for s, all_ in stalls.items()}
    figures = {
        "first_partial_vs_latency": max(firsts.values()) / pace.latency,
        "p95_partial_vs_latency": max(p95.values()),
        "vs_best_tree": max(best.values()),
        "vs_one_tree": max(one.values()),
    }
    shown = {stalled: all_[rounds // 2] for stalled, all_ in stalls.items()}
    detail = {
        "setting": (
            f"real HTTP on loopback; R, S and T of {pace.rows} rows each, {pace.values} values in a join column, in"
            f" pages of {pace.page}, {1e3 * pace.latency:g} ms each, one after another; one of the three answers"
            f" nothing for {pace.stall:g} s"
        ),
        "stall_s": pace.stall,
        "taken": f"medians of {rounds} rounds, contestants in turns",
        "first_partial_s": {s: round(at, 4) for s, at in firsts.items()},
        "p95_partial_vs_latency": {s: round(latencies, 2) for s, latencies in p95.items()},
        "time_ratios": {s: _rounded(ratios) for s, ratios in times.items()},
        "area_ratios": {s: _rounded(ratios) for s, ratios in areas.items()},
        "answers": next(iter(shown.values()))[OURS].answers,
        "partials": {s: {name: run.partials for name, run in runs.items()} for s, runs in shown.items()},
        "seconds": {s: {n: round(run.ended, 3) for n, run in runs.items()} for s, runs in shown.items()},
    }
    return Result("stems-spanning-tree", figures, detail, dict(shown))


def _median(rounds: Sequence[Mapping[str, Run]], tree: str, ratio: Callable[[Run, Run], float]) -> float:
    return median(ratio(runs[OURS], runs[tree]) for runs in rounds)


def _slower(ours: Run, theirs: Run) -> float:
    return ours.ended / theirs.ended


def _smaller(ours: Run, theirs: Run) -> float:
    until = max(ours.ended, theirs.ended)
    return theirs.area(until) / ours.area(until)


def _first(run: Run) -> float:
    if run.first is None:
        raise RuntimeError("no partial answer was told")
    return run.first


def _p95(waited: Sequence[float]) -> float:
    return sorted(waited)[int(0.95 * (len(waited) - 1))]


def _rounded(ratios: Mapping[str, float]) -> dict[str, float]:
    return {name: round(ratio, 3) for name, ratio in ratios.items()}
