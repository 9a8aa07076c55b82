"""Figure 4 of the first paper on eddies: two selections of equal selectivity, the cost of one of which varies.

Half of the rows pass each. s2 costs 5 units a row, s1 from 1 to 9. The paper's naive eddy is nearly as good as the
better order throughout, without being told any cost, as back-pressure sends most rows to the cheaper one first; its
lottery is a little better still.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from bench.papers import selections
from bench.papers.axes import over
from bench.papers.selections import Selection, raced_at, result_of
from bench.result import Result

SUMMARY = "figure 4 of the paper on eddies: two selections, one of which costs more and more"

_HALF = 0.5
_S2 = Selection(5, _HALF)
COSTS = tuple(range(1, 10))


def options(parser: argparse.ArgumentParser) -> None:
    selections.options(parser)
    parser.add_argument("--costs", type=float, nargs="+", default=COSTS, help="of s1, in units")


def measure(options: argparse.Namespace) -> Result:
    """Both orders and every policy, for every cost of s1."""
    races = {cost: raced_at(options, Selection(cost, _HALF), _S2) for cost in options.costs}
    return result_of("eddies-cost", options, races)


def draw(result: Result, file: Path) -> None:
    """Figure 4: the time of every contestant; and the share of rows that went to s1 first."""
    from bench.drawing import saved

    points = result.detail["points"]
    with saved(file, 2) as axes:
        seconds = {at: p["seconds"] for at, p in points.items()}
        over(axes[0], seconds, "figure 4: s2 costs 5, half pass", "cost of s1, in units", "seconds")
        first = {at: p["s1_first"] for at, p in points.items()}
        over(axes[1], first, "rows that took s1 first", "cost of s1, in units", "share")
