"""Lookups issued, against the fewest that any choice of providers could have issued with hindsight.

The SteM paper lets the router decide which access methods are used; which provider an alias has, and when a lookup is
due, is then a matter of policy, and how few calls can be reached that way is nowhere measured. Here 200 random
federated queries are answered with the goal `fewest_calls`, from a cold start: nothing is known of any site but its
access methods. `hindsight` says exactly what the rival is. It settles one table after another, as a whole; the engine
may ask one table for a part of its values, and then another: so a ratio can be less than 1.

The other goals answer the same queries, so that the dial shows. Scans are the same for all goals, and counted apart.
Time is virtual: each table is at a site of its own with its own latency, which answers 8 lookups at once; no socket is
used.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import count
from multiprocessing import get_context
from pathlib import Path
from statistics import mean, median
from typing import Any

import duckdb
import pyarrow as pa

from bench.papers.asked import AT_ONCE, Told, run
from bench.papers.federations import Federation, drawn
from bench.papers.hindsight import Hindsight, Least, TooLarge
from bench.result import Result
from mediator.answering import verdicts_of
from mediator.assembly import Settings
from mediator.eddy.goals.goal import GOALS
from mediator.errors import Unanswerable
from mediator.query.understand import understand

SUMMARY = "lookups issued against the fewest that hindsight can find, on random federated queries"

_FEW = 20  # lookups: with fewer a ratio says little
_MANY = 50_000  # answers: with more a query only takes longer
_EMPTY = 10  # every so many queries one may be without answers
_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Case:
    federation: Federation
    least: Least
    answers: pa.Table


@dataclass(frozen=True, slots=True)
class Judged:
    seed: int
    shape: str
    tables: int
    least: Least
    told: Mapping[str, Told]  # by goal

    @property
    def ratio(self) -> float:
        return self.of("fewest_calls")

    def of(self, goal: str) -> float:
        return self.told[goal].lookups / self.least.lookups


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--queries", type=int, default=200, help="how many (default: %(default)s)")
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="where their seeds begin")
    parser.add_argument("--processes", type=int, default=2, help="that share them (default: %(default)s)")
    parser.add_argument("--policy", default=Settings().policy, help="that routes (default: %(default)s)")


def measure(options: argparse.Namespace) -> Result:
    seeds = range(options.first, options.first + options.queries)
    judge = partial(judged, policy=options.policy)
    if options.processes == 1:
        return _result([judge(seed) for seed in seeds])
    with ProcessPoolExecutor(options.processes, mp_context=get_context("spawn")) as pool:
        return _result(list(pool.map(judge, seeds, chunksize=4)))


def judged(seed: int, policy: str) -> Judged:
    """One query by all goals. Raises where an answer is wrong."""
    case = case_of(seed)
    told: dict[str, Told] = {}
    for goal in GOALS:
        told[goal] = found = run(case.federation, Settings(policy=policy, goal=goal))
        if found.answers is None or not _same(found.answers, case.answers):
            raise RuntimeError(f"seed {seed}, {goal}: the answers are not DuckDB's")
        found.answers = None
    federation = case.federation
    return Judged(seed, federation.shape, len(federation.tables), case.least, told)


def case_of(seed: int) -> Case:
    """The first federation of this seed that can be answered, that needs enough lookups, and whose answers are neither
    too many nor, of most queries, none."""
    for attempt in count():
        federation = drawn(seed, attempt)
        if all(relation.scans for relation in federation.catalog.relations.values()):
            continue
        try:
            verdicts_of(understand(federation.sql, federation.catalog), federation.catalog)
            least = Hindsight(federation).least()
        except (Unanswerable, TooLarge):
            continue
        answers = _answers(federation)
        if least.lookups >= _FEW and answers is not None and (answers.num_rows or seed % _EMPTY == 0):
            return Case(federation, least, answers)
    raise AssertionError("there is always another attempt")


def draw(result: Result, file: Path) -> None:
    """Calls against time, a dot for each query and goal, both as multiples of what `all_rows` took."""
    from bench.drawing import saved

    judged: list[Judged] = result.curves["judged"]
    with saved(file, 2) as axes:
        for goal in GOALS:
            calls = [j.of(goal) for j in judged]
            seconds = [j.told[goal].ended / j.told["all_rows"].ended for j in judged]
            axes[0].scatter(calls, seconds, s=12, alpha=0.6, label=goal)
        axes[0].set(
            title="calls against time",
            xlabel="lookups ÷ hindsight",
            ylabel="time ÷ all_rows",
            xscale="log",
            yscale="log",
        )
        axes[0].legend()
        for goal in GOALS:
            axes[1].plot(sorted(j.of(goal) for j in judged), label=goal)
        axes[1].set(title="lookups ÷ hindsight", xlabel="queries, sorted", ylabel="ratio", yscale="log")
        axes[1].legend()


def _answers(federation: Federation) -> pa.Table | None:
    """By DuckDB; none if they are too many."""
    with duckdb.connect(config={"threads": 1}) as duck:
        for name, table in federation.tables.items():
            duck.register(name, table)
        found = duck.sql(f"SELECT * FROM ({federation.sql}) LIMIT {_MANY + 1}").to_arrow_table()
    assert isinstance(found, pa.Table)
    return found if found.num_rows <= _MANY else None


def _same(ours: pa.Table, theirs: pa.Table) -> bool:
    keys = [(name, "ascending") for name in theirs.column_names]
    if ours.num_rows != theirs.num_rows:
        return False
    ours, theirs = ours.sort_by(keys), theirs.sort_by(keys)
    return all(ours.column(n).to_pylist() == theirs.column(n).to_pylist() for n in theirs.column_names)


def _result(judged: Sequence[Judged]) -> Result:
    ratios = [j.ratio for j in judged]
    figures = {"median": median(ratios), "worst": max(ratios), "mean": mean(ratios)}
    for goal in GOALS:
        if goal != "fewest_calls":
            figures[f"{goal}_median"] = median(j.of(goal) for j in judged)
            figures[f"{goal}_worst"] = max(j.of(goal) for j in judged)
    worst = sorted(judged, key=lambda j: -j.ratio)[:_SHOWN]
    detail = {
        "setting": f"{len(judged)} queries; virtual time, no sockets; {AT_ONCE} lookups at once at each table's site; "
        f"hindsight asks {_FEW} at least; one query in {_EMPTY} may be without answers",
        "queries": len(judged),
        "above_1.2": sum(ratio > 1.2 for ratio in ratios),
        "above_1": sum(ratio > 1.0 for ratio in ratios),
        "below_1": sum(ratio < 1.0 for ratio in ratios),
        "lookups": {g: sum(j.told[g].lookups for j in judged) for g in GOALS}
        | {"hindsight": sum(j.least.lookups for j in judged)},
        "scanned_pages": {g: sum(j.told[g].pages for j in judged) for g in GOALS},
        "virtual_s_to_the_end": {g: round(mean(j.told[g].ended for j in judged), 2) for g in GOALS},
        "virtual_s_to_the_first_row": {
            g: round(mean(j.told[g].first for j in judged if j.told[g].rows), 2) for g in GOALS
        },
        "worst_seeds": {str(j.seed): _cause(j) for j in worst},
    }
    return Result("calls", figures, detail, {"judged": judged})


def _cause(judged: Judged) -> dict[str, Any]:
    """Where more was asked than hindsight would have: table by table."""
    plan = {table: (list(bind_set), lookups) for table, bind_set, lookups in judged.least.plan}
    ours = judged.told["fewest_calls"].by_table
    more = {t: ours.get(t, 0) - plan[t][1] for t in plan if ours.get(t, 0) != plan[t][1]}
    return {
        "ratio": round(judged.ratio, 3),
        "shape": f"{judged.shape} of {judged.tables}",
        "hindsight": {t: f"{n} by {', '.join(b)}" for t, (b, n) in plan.items()},
        "ours": ours,
        "asked_more": more,
    }
