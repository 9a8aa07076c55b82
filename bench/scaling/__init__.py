"""What 10, 100 and 1,000 executors would do: computed from what was measured here, and borne out by a simulation.

`costs.py` has what a row, a byte, a micro-batch and a task cost; `--measure` measures them anew (it needs Java), else
those are used that are kept beside the page. `model.py` has the formulas. `simulation.py` deals out sampled rows by the
pipeline's own cubes, and `page.py` writes what came of it all into `docs/scaling.md`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from bench.result import Result

SUMMARY = "what many executors would do, computed from what was measured; with --page, into docs/scaling.md"


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--measure", action="store_true", help="measure what things cost anew (needs Java)")
    parser.add_argument(
        "--rows", type=int, default=2_000_000, help="that are measured on (default: %(default)s)"
    )
    parser.add_argument("--sample", type=int, default=1_000_000, help="rows of a relation that are simulated")
    parser.add_argument(
        "--page", action="store_true", help="write it into docs/scaling.md, and keep the figures"
    )


def measure(options: argparse.Namespace) -> Result:
    from bench.scaling import page
    from bench.scaling.costs import measured
    from bench.scaling.simulation import simulated

    costs = measured(options.rows) if options.measure else page.read().costs
    found = page.Kept(costs, simulated(options.sample), options.sample)
    if options.page:
        page.write(found)
    return page.result(found)


def draw(result: Result, file: Path) -> None:
    """What the time of each number of executors is made of."""
    from bench.drawing import saved

    with saved(file, len(result.curves)) as axes:
        for axis, (name, by_executors) in zip(axes, result.curves.items(), strict=True):
            below = [0.0] * len(by_executors)
            for term in next(iter(by_executors.values())):
                share = [terms[term] / sum(terms.values()) for terms in by_executors.values()]
                axis.bar(list(by_executors), share, bottom=below, label=term)
                below = [a + b for a, b in zip(below, share, strict=True)]
            axis.set(title=name, ylabel="share of the time")
            axis.legend()
