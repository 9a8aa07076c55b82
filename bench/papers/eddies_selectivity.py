"""Figures 5 and 6 of the first paper on eddies: two selections of equal cost, the selectivity of one of which varies.

Both cost 5 units a row; half of the rows pass s2, and from none to all of them s1. The paper's naive eddy falls about
half-way between the better and the worse order, as it does not see how many rows come back; its lottery is near the
better order. Figure 6 is the share of rows that took s1 first: it hardly moves with the naive eddy, and follows the
selectivity with the lottery.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from bench.papers import selections
from bench.papers.axes import over
from bench.papers.selections import Selection, raced_at, result_of
from bench.result import Result

SUMMARY = "figures 5 and 6 of the paper on eddies: two selections, one of which lets more and more rows pass"

_S2 = Selection(5, 0.5)
PASSING = tuple(tenth / 10 for tenth in range(11))


def options(parser: argparse.ArgumentParser) -> None:
    selections.options(parser)
    parser.add_argument(
        "--passing", type=float, nargs="+", default=PASSING, help="share of rows that pass s1"
    )


def measure(options: argparse.Namespace) -> Result:
    """Both orders and every policy, for every selectivity of s1."""
    races = {passing: raced_at(options, Selection(5, passing), _S2) for passing in options.passing}
    return result_of("eddies-selectivity", options, races)


def draw(result: Result, file: Path) -> None:
    """Figure 5: the time of every contestant; figure 6: the share of rows that took s1 first."""
    from bench.drawing import saved

    points = result.detail["points"]
    with saved(file, 2) as axes:
        seconds = {at: p["seconds"] for at, p in points.items()}
        over(axes[0], seconds, "figure 5: both cost 5, half pass s2", "share that passes s1", "seconds")
        first = {at: p["s1_first"] for at, p in points.items()}
        over(axes[1], first, "figure 6: rows that took s1 first", "share that passes s1", "share")
