"""The horizontally partitioned join (the STAIRs paper, section 5.4, figure 9): two halves of a table that want two
plans.

R, S and T have 50,000 rows each. A row of the first half of S joins with five rows of R and none of T, one of the
second half with none of R and five of T. A static plan does the one half right and the other wrong; the paper's eddies
change over in the middle and are much faster than the best static plan. It leaves for the future what to do when the
halves are not apart in time, and only an attribute tells them apart.

What is taken here. The paper reads stored tables and does not say in which turns; R and T have come before S begins, as
a static plan would build both hash tables before it probes them. (Where all three come in step, R's and T's rows find
half of the useless pairs, and no route of theirs avoids it: `in_step`.) The halves of R and T follow S's. Rows are keys
and numbers only: the paper's 100 bytes are stored once by every plan alike (`hundred_bytes`). In the paper a pair of
rows costs about what it costs to read a row, and here some tenths of that: with 50 matches in the place of 5 the joins
outweigh the rest as they do there (`fifty_by_arrival`, `fifty_by_column`).

`least` is what no routing could get below: the time of a run in which every row of S goes the right way at once, ÷ the
best static plan. `ns_a_pair` is what the two are apart, for each pair of rows that is found and probed for nothing.
`work` is the default's rows probed with and rows found ÷ the best static plan's.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from bench.papers.halves import FANOUT, KINDS, SQL, case_of, right_at_once
from bench.papers.racing import Outcome, agreed, best
from bench.papers.turns import in_turns
from bench.papers.watching import shares, work
from bench.result import Result
from mediator.assembly import Settings
from mediator.state.warming import devote

SUMMARY = "the STAIRs paper's partitioned join: the default against the best static plan"

# S's rows choose between R and T; all that rows of R and T can do is to go to S. So these are all static plans.
_STATIC = {"R first": (0, 1, 2), "T first": (2, 1, 0)}
_RIGHT = "right at once"
_FIGURES = {"by_arrival": "by_arrival", "by_content": "by_column"}
_SWEPT = (1_000, 4_000, 8_000)  # rows in a batch, beside the usual
_PARTS = 8  # of the run, in which `--explain` says where rows went


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rows", type=int, default=50_000, help="in each table (default: %(default)s)")
    parser.add_argument("--batch", type=int, default=2_000, help="rows in a batch (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=15, help="contestants in turns, so many times")
    parser.add_argument("--policy", default=Settings().policy, help="in the default's place")
    parser.add_argument("--only", choices=list(KINDS), metavar="CASE", help="this one alone: %(choices)s")
    parser.add_argument("--explain", action="store_true", help="where the rows went, in eighths of the run")


def measure(options: argparse.Namespace) -> Result:
    """Every case, or the only one."""
    devote()
    contest = _Contest(options)
    names = [options.only] if options.only else list(KINDS)
    cases = {name: contest.of(name, options.batch) for name in names}
    figures = {figure: cases[name]["ratio"] for figure, name in _FIGURES.items() if name in cases}
    detail = {
        "policy": options.policy,
        "sql": SQL,
        "setting": f"{options.rows:,} rows each in batches of {options.batch:,}; a row of S has {FANOUT} matches in R"
        " or in T; R and T have come when S begins",
        "taken": f"seconds of work of the best of {options.rounds} rounds, contestants in turns",
        "cases": cases,
        "tables": {"case": {name: _in_short(case) for name, case in cases.items()}},
    }
    if not options.only:
        detail["batches"] = {
            name: {batch: contest.brief(name, batch) for batch in _SWEPT} for name in _FIGURES.values()
        }
    return Result("partitions", figures, detail, {name: case["ms"] for name, case in cases.items()})


def draw(result: Result, file: Path) -> None:
    """Figure 9, for every case."""
    from bench.drawing import saved

    with saved(file, 1) as axes:
        contestants = list(next(iter(result.curves.values())))
        for place, contestant in enumerate(contestants):
            shown = {name: ms[contestant] for name, ms in result.curves.items() if contestant in ms}
            at = [list(result.curves).index(name) + 0.2 * place for name in shown]
            axes[0].barh(at, list(shown.values()), 0.2, label=contestant)
        axes[0].set(
            title="milliseconds, best of all rounds", yticks=[n + 0.3 for n in range(len(result.curves))]
        )
        axes[0].set_yticklabels(list(result.curves))
        axes[0].invert_yaxis()
        axes[0].legend()


def _in_short(case: Mapping[str, Any]) -> dict[str, object]:
    """For the page."""
    return {
        "default ÷ best static": case["ratio"],
        "least": case.get("least", "-"),
        "work": case["work"],
        "best static, ms": min(case["ms"][plan] for plan in _STATIC),
        "ns a pair": case.get("ns_a_pair", "-"),
    }


class _Contest:
    def __init__(self, options: argparse.Namespace) -> None:
        self._rows: int = options.rows
        self._rounds: int = options.rounds
        self._explain: bool = options.explain
        static = {name: Settings(policy="fixed", order=order) for name, order in _STATIC.items()}
        self._entries = {"default": Settings(policy=options.policy)} | static

    def of(self, name: str, batch: int) -> dict[str, Any]:
        """A case, and how it came about."""
        kind = KINDS[name]
        case = case_of(kind, self._rows, batch)
        runs = self._raced(name, batch)
        seconds = {contestant: best(some) for contestant, some in runs.items()}
        static = min(seconds[plan] for plan in _STATIC)
        seen = {n: case.watch(settings)[1] for n, settings in self._entries.items()}
        measured: dict[str, Any] = {
            "says": kind.says,
            "ratio": round(seconds["default"] / static, 4),
            "work": round(work(seen["default"].steps) / min(work(seen[n].steps) for n in _STATIC), 3),
            "deciding_ms": round(1e3 * seen["default"].deciding, 2),
            "ms": {n: round(1e3 * s, 2) for n, s in seconds.items()},
            "median_ms": {n: round(1e3 * median(o.seconds for o in some), 2) for n, some in runs.items()},
        }
        if _RIGHT in seconds:
            measured["least"] = round(seconds[_RIGHT] / static, 3)
            pairs = self._rows // 2 * kind.fanout
            measured["ns_a_pair"] = round(1e9 * (static - seconds[_RIGHT]) / pairs, 1)
        if self._explain:
            measured["went"] = {n: shares(eyes.steps, len(case.rounds), _PARTS) for n, eyes in seen.items()}
        return measured

    def brief(self, name: str, batch: int) -> dict[str, float]:
        """Its ratios alone."""
        seconds = {contestant: best(some) for contestant, some in self._raced(name, batch).items()}
        static = min(seconds[plan] for plan in _STATIC)
        return {"ratio": round(seconds["default"] / static, 3), "least": round(seconds[_RIGHT] / static, 3)}

    def _raced(self, name: str, batch: int) -> dict[str, list[Outcome]]:
        """Every contestant so many times, in turns; and one who is right at once, where the data can make it so."""
        kind = KINDS[name]
        case = case_of(kind, self._rows, batch)
        right = None if kind.halves == "in step" else right_at_once(kind, self._rows, batch)
        case.run(self._entries["R first"])  # so that the first in the race does not find everything cold
        contestants = {n: partial(case.run, settings) for n, settings in self._entries.items()}
        if right is not None:
            contestants[_RIGHT] = partial(right.run, self._entries["T first"])
        runs = in_turns(contestants, self._rounds)
        agreed({n: some[0] for n, some in runs.items() if n != _RIGHT})
        return runs
