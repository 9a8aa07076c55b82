"""Q1 of the SteM paper (figure 7): `R.a = S.x`, where R is scanned and S is looked up.

The paper claims that with SteMs results come nearly linearly over time, as rows of R that know their match pass those
that wait for theirs, while the index join as one module holds all up behind one another; both send the same 250
lookups. It asks in the order in which rows come.

Asked more here: how near are answers, in the mean, to a bound that knows all rows in advance? It has the site's own
times, as they were scripted: a page of R each so many milliseconds, a lookup each 20, two at once, and nothing for
HTTP. It asks in the best order that there is, whether the rows are there yet or not: which lookup has which turn is
an assignment problem, and it is solved exactly. So what is lost against it is all that the engine, the client and the
server take, and what the order of lookups costs. Beside it, as `greedy_vs_bound`, stands whoever knows all rows and
asks at each turn for the value that most rows will wait for when it is answered.
"""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path
from statistics import median

import numpy as np
from numpy.typing import NDArray

from bench import q1
from bench.papers.assignment import assigned
from bench.result import Result
from bench.rivals import index_join
from bench.site import Pace, Site
from bench.timed import Timeline, engine, middle
from fixtures.papers_data import Papers
from mediator.assembly import Settings

SUMMARY = "figure 7 of the SteM paper, and a bound that knows every row in advance"

OURS, IN_ORDER, RIVAL = "SteMs", "SteMs, in order of arrival", "index join"
_PATH = "/by-x"


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rounds", type=int, default=3, help="contestants in turns, so many times")
    parser.add_argument("--rows", type=int, default=1_000, help="of R; a quarter as many values")


def measure(options: argparse.Namespace) -> Result:
    rows = options.rows
    share = rows / Pace.rows
    pace = Pace(rows=rows, distinct=rows // 4, r_scan=Pace.r_scan * share, t_scan=Pace.t_scan * share)
    return asyncio.run(_measured(pace, options.rounds))


def draw(result: Result, file: Path) -> None:
    """Figure 7 with the bound in it: results, and index probes, over time."""
    from bench.drawing import saved, steps

    runs = {name: run for name, run in result.curves.items() if isinstance(run, Timeline)}
    results = {name: run.curve() for name, run in runs.items()}
    with saved(file, 2) as axes:
        steps(axes[0], {**results, "the bound": result.curves["the bound"]}, "Q1: results", "rows")
        steps(axes[1], {name: run.asked() for name, run in runs.items()}, "Q1: index probes", "lookups sent")


async def _measured(pace: Pace, rounds: int) -> Result:
    """Figures are of the round whose run took the median time, those against the bound the median of all rounds."""
    runs: dict[str, list[Timeline]] = {OURS: [], IN_ORDER: [], RIVAL: []}
    again = []
    with Site(pace) as site:
        await engine(site, site.catalog, q1.SQL, _PATH)  # kernels and caches are warm from here on
        for _ in range(rounds):
            first, second = await engine(site, site.catalog, q1.SQL, _PATH, times=2)
            runs[OURS].append(first)
            again.append(second)
            runs[IN_ORDER] += await engine(site, site.catalog, q1.SQL, _PATH, settings=Settings(urgent=False))
            runs[RIVAL].append(await index_join(site))
    q1.agree(pace, [run for of in runs.values() for run in of] + again)
    ours = middle(runs[OURS])
    at = runs[OURS].index(ours)
    result = q1.compared(pace, ours, runs[RIVAL][at], runs[OURS], again)
    _add_bound(result, pace, runs)
    result.bench = "stems-q1"
    result.curves = {**{name: of[at] for name, of in runs.items()}, "the bound": _curve(bound(pace))}
    return result


def _add_bound(result: Result, pace: Pace, runs: dict[str, list[Timeline]]) -> None:
    best, greedy = _mean(bound(pace)), _mean(most_waited_for(pace))
    means = {name: [_mean(run.rows) for run in of] for name, of in runs.items()}
    result.figures["mean_arrival_vs_bound"] = median(means[OURS]) / best
    result.figures["arrival_order_vs_bound"] = median(means[IN_ORDER]) / best
    result.figures["greedy_vs_bound"] = greedy / best
    result.detail["mean_arrival_s"] = {
        "the bound": round(best, 4),
        "the most waited for first": round(greedy, 4),
        **{name: [round(mean, 4) for mean in of] for name, of in means.items()},
    }
    result.detail["bound_is"] = (
        f"every value asked from the start on, {pace.concurrency} at once, {1_000 * pace.lookup:g} ms each, in the"
        " order that is best for these rows (an assignment, solved exactly); a row is answered when both it and its"
        " value are there"
    )


def bound(pace: Pace) -> list[tuple[float, int]]:
    """When each row would be answered at the earliest, in the mean, by who knows them all."""
    arriving = _arriving(pace)
    turns = _turns(pace, len(arriving))
    costs = np.array([[np.maximum(rows, at).sum() for at in turns] for rows in arriving])
    return _answered(arriving, turns[assigned(costs)])


def most_waited_for(pace: Pace) -> list[tuple[float, int]]:
    """The same of who asks, at each turn, for what most rows will wait for by then."""
    arriving = _arriving(pace)
    known, left = np.zeros(len(arriving)), list(range(len(arriving)))
    for at in _turns(pace, len(arriving)):
        value = max(left, key=lambda v: (int((arriving[v] <= at).sum()), -arriving[v].min()))
        known[value] = at
        left.remove(value)
    return _answered(arriving, known)


def _arriving(pace: Pace) -> list[NDArray[np.float64]]:
    """By value, when each of its rows of R comes."""
    page = pace.r_scan / pace.pages
    found: dict[int, list[float]] = {}
    for n, value in enumerate(Papers(pace.rows, distinct=pace.distinct).r.column("a").to_pylist()):
        found.setdefault(value, []).append(page * (n // pace.page + 1))
    return [np.array(times) for times in found.values()]


def _turns(pace: Pace, count: int) -> NDArray[np.float64]:
    """When so many lookups end, where one follows the other at once."""
    return np.array([pace.lookup * (1 + n // pace.concurrency) for n in range(count)])


def _answered(arriving: list[NDArray[np.float64]], known: NDArray[np.float64]) -> list[tuple[float, int]]:
    times = np.concatenate([np.maximum(rows, at) for rows, at in zip(arriving, known, strict=True)])
    return [(float(at), 1) for at in np.sort(times)]


def _mean(rows: list[tuple[float, int]]) -> float:
    """Seconds after which a row was there, in the mean."""
    return sum(at * count for at, count in rows) / sum(count for _, count in rows)


def _curve(rows: list[tuple[float, int]]) -> list[tuple[float, float]]:
    return [(0.0, 0.0), *((at, float(n)) for n, (at, _) in enumerate(rows, 1))]
