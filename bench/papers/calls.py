"""Lookups issued, against the fewest that any choice of providers could have issued with hindsight.

The SteM paper lets the router decide which access methods are used; which provider an alias has, and when a lookup is
due, is then a matter of policy, and how few calls can be reached that way is nowhere measured. Here 200 random
federated queries are answered with the goal `fewest_calls`, from a cold start: nothing is known of any site but its
access methods. `hindsight` says exactly what the rival is. It settles one table after another, as a whole; the engine
may ask one table for a part of its values, and then another: so a ratio can be less than 1.

A drawing that hindsight can answer with fewer than 20 lookups is passed over and drawn anew, since one lookup more
would be a large ratio; the page says how many those were, and `worst_unfiltered` is the worst ratio with them in it
(÷ 1 where hindsight asks nothing). Queries without answers count like all others. `unseen_...` is the same of as many
queries whose seeds nothing was ever tried on.

The other goals answer the same queries, so that the dial shows. Scans are the same for all goals, and counted apart.
Time is virtual: each table is at a site of its own with its own latency, which answers 8 lookups at once; no socket is
used. What the goals are worth in time depends on that 8, so they are also timed at sites without such a limit.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
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
_SHOWN = 8
_UNLIMITED = 1 << 30  # lookups at once
_TIMED = {f"{AT_ONCE} at once": AT_ONCE, "no limit": _UNLIMITED}


@dataclass(frozen=True, slots=True)
class Case:
    federation: Federation
    least: Least
    answers: pa.Table
    few: tuple[Case, ...] = ()  # drawings of the seed that were passed over as they take few lookups
    redrawn: Mapping[str, int] = field(default_factory=dict)  # drawings that were passed over, by cause


@dataclass(frozen=True, slots=True)
class Judged:
    seed: int
    shape: str
    tables: int
    least: Least
    told: Mapping[str, Told]  # by goal
    unlimited: Mapping[str, Told]  # the same where sites answer any number at once
    few: Sequence[tuple[int, int]]  # of drawings that take few lookups: ours, and hindsight's
    redrawn: Mapping[str, int]

    @property
    def ratio(self) -> float:
        return self.of("fewest_calls")

    def of(self, goal: str) -> float:
        return self.told[goal].lookups / self.least.lookups


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--queries", type=int, default=200, help="how many (default: %(default)s)")
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="where their seeds begin")
    parser.add_argument(
        "--unseen", type=int, default=3_000, metavar="SEED", help="where those of the others do"
    )
    parser.add_argument("--processes", type=int, default=2, help="that share them (default: %(default)s)")
    parser.add_argument("--policy", default=Settings().policy, help="that routes (default: %(default)s)")


def measure(options: argparse.Namespace) -> Result:
    seeds = [n for first in (options.first, options.unseen) for n in range(first, first + options.queries)]
    judge = partial(judged, policy=options.policy)
    if options.processes == 1:
        return summed(
            [judge(seed) for seed in seeds[: options.queries]], [judge(s) for s in seeds[options.queries :]]
        )
    with ProcessPoolExecutor(options.processes, mp_context=get_context("spawn")) as pool:
        found = list(pool.map(judge, seeds, chunksize=4))
    return summed(found[: options.queries], found[options.queries :])


def judged(seed: int, policy: str) -> Judged:
    """One query by all goals. Raises where an answer is wrong."""
    case = case_of(seed)
    told, unlimited = (
        {str(goal): _told(case, Settings(policy=policy, goal=goal), at_once) for goal in GOALS}
        for at_once in _TIMED.values()
    )
    fewest = Settings(policy=policy, goal="fewest_calls")
    few = [(_told(of, fewest).lookups, of.least.lookups) for of in case.few]
    federation = case.federation
    return Judged(
        seed, federation.shape, len(federation.tables), case.least, told, unlimited, few, case.redrawn
    )


def _told(case: Case, settings: Settings, at_once: int = AT_ONCE) -> Told:
    found = run(case.federation, settings, at_once)
    if found.answers is None or not _same(found.answers, case.answers):
        raise RuntimeError(f"seed {case.federation.seed}, {settings.goal}: the answers are not DuckDB's")
    found.answers = None
    return found


def case_of(seed: int) -> Case:
    """The first federation of this seed that can be answered, that needs enough lookups, and whose answers are not too
    many; and what was passed over before it."""
    few: list[Case] = []
    redrawn: dict[str, int] = {}
    for attempt in count():
        found = _case(drawn(seed, attempt))
        if isinstance(found, Case) and found.least.lookups >= _FEW:
            return replace(found, few=tuple(few), redrawn=redrawn)
        if isinstance(found, Case):
            few.append(found)
        cause = found if isinstance(found, str) else f"fewer than {_FEW} lookups"
        redrawn[cause] = redrawn.get(cause, 0) + 1
    raise AssertionError("there is always another attempt")


def _case(federation: Federation) -> Case | str:
    """Ready to be judged; or why it can't be."""
    if all(relation.scans for relation in federation.catalog.relations.values()):
        return "nothing to look up"
    try:
        verdicts_of(understand(federation.sql, federation.catalog), federation.catalog)
        least = Hindsight(federation).least()
    except Unanswerable:
        return "cannot be answered"
    except TooLarge:
        return "joins of too many rows to be counted"
    answers = _answers(federation)
    return f"more than {_MANY:,} answers" if answers is None else Case(federation, least, answers)


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


def summed(judged: Sequence[Judged], unseen: Sequence[Judged]) -> Result:
    """The figures of these queries, and of those that nobody has looked at before."""
    ratios, others = [j.ratio for j in judged], [j.ratio for j in unseen]
    figures = {
        "median": median(ratios),
        "worst": max(ratios),
        "mean": mean(ratios),
        "worst_unfiltered": max(ratios + _of_few(judged)),
        "unseen_median": median(others),
        "unseen_worst": max(others),
        "unseen_worst_unfiltered": max(others + _of_few(unseen)),
    }
    for goal in GOALS:
        if goal != "fewest_calls":
            figures[f"{goal}_median"] = median(j.of(goal) for j in judged)
            figures[f"{goal}_worst"] = max(j.of(goal) for j in judged)
    detail = {
        "setting": f"{len(judged)} queries; virtual time, no sockets; {AT_ONCE} lookups at once at each table's site; "
        f"hindsight asks {_FEW} at least. Unseen: as many from seed {unseen[0].seed} on",
        "queries": len(judged),
        "without_answers": sum(not j.told["fewest_calls"].rows for j in judged),
        "tables": {"goal": _by_goal(judged), "passed over": _passed_over(judged, unseen)},
        "few": {
            "drawings": sum(len(j.few) for j in judged),
            "asked_more": sum(ours > least for j in judged for ours, least in j.few),
            "lookups": sum(ours for j in judged for ours, _ in j.few),
            "hindsight": sum(least for j in judged for _, least in j.few),
        },
        "above_1.2": sum(ratio > 1.2 for ratio in ratios),
        "above_1": sum(ratio > 1.0 for ratio in ratios),
        "below_1": sum(ratio < 1.0 for ratio in ratios),
        "lookups": {g: sum(j.told[g].lookups for j in judged) for g in GOALS}
        | {"hindsight": sum(j.least.lookups for j in judged)},
        "scanned_pages": {g: sum(j.told[g].pages for j in judged) for g in GOALS},
        "worst_seeds": _worst(judged),
        "unseen_worst_seeds": _worst(unseen),
    }
    return Result("calls", figures, detail, {"judged": judged})


def _of_few(judged: Sequence[Judged]) -> list[float]:
    return [ours / max(1, least) for j in judged for ours, least in j.few]


def _by_goal(judged: Sequence[Judged]) -> dict[str, dict[str, object]]:
    """Mean virtual seconds to the first row and to the end, by goal; and in how many queries a goal's first row came
    before that of `fewest_calls`, and after it."""
    found: dict[str, dict[str, object]] = {}
    for goal in GOALS:
        row: dict[str, object] = {"lookups": sum(j.told[goal].lookups for j in judged)}
        for says, told in zip(_TIMED, _both(judged), strict=True):
            some = [t for t in told if t[goal].rows]
            row[f"first row, {says}"] = round(mean([t[goal].first for t in some] or [0.0]), 2)
            row[f"end, {says}"] = round(mean(t[goal].ended for t in told), 2)
            row[f"first row earlier, later, {says}"] = _sooner(some, goal)
        found[goal] = row
    return found


def _both(judged: Sequence[Judged]) -> tuple[list[Mapping[str, Told]], list[Mapping[str, Told]]]:
    """In the order of `_TIMED`."""
    return [j.told for j in judged], [j.unlimited for j in judged]


def _sooner(told: Sequence[Mapping[str, Told]], goal: str) -> str:
    pairs = [(t[goal].first, t["fewest_calls"].first) for t in told]
    return f"{sum(a < b for a, b in pairs)}, {sum(a > b for a, b in pairs)}"


def _passed_over(judged: Sequence[Judged], unseen: Sequence[Judged]) -> dict[str, dict[str, object]]:
    """Drawings, by cause."""
    causes = sorted({cause for j in (*judged, *unseen) for cause in j.redrawn})
    return {
        cause: {
            "drawings": sum(j.redrawn.get(cause, 0) for j in judged),
            "of the unseen": sum(j.redrawn.get(cause, 0) for j in unseen),
        }
        for cause in causes
    }


def _worst(judged: Sequence[Judged]) -> dict[str, dict[str, Any]]:
    return {str(j.seed): _cause(j) for j in sorted(judged, key=lambda j: -j.ratio)[:_SHOWN]}


def _cause(judged: Judged) -> dict[str, Any]:
    """Where more was asked than hindsight would have: table by table."""
    plan = {table: (list(bind_set), lookups) for table, bind_set, lookups in judged.least.plan}
    ours = judged.told["fewest_calls"].by_table
    more = {t: ours.get(t, 0) - plan[t][1] for t in plan if ours.get(t, 0) != plan[t][1]}
    return {
        "ratio": round(judged.ratio, 3),
        "shape": f"{judged.shape} of {judged.tables}",
        "answers": judged.told["fewest_calls"].rows,
        "hindsight": {t: f"{n} by {', '.join(b)}" for t, (b, n) in plan.items()},
        "ours": ours,
        "asked_more": more,
    }
