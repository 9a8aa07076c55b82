"""`python -m bench paper NAME`: one of the papers' experiments, or one that asks more than they did."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Protocol

from bench.papers import (
    calls,
    eddies_cost,
    eddies_delay,
    eddies_joins,
    eddies_selectivity,
    eddies_swap,
    every,
    overheads,
    partitions,
    regret,
    stems_competition,
    stems_priority,
    stems_q1,
    stems_q4,
    stems_spanning_tree,
)
from bench.result import Result

SUMMARY = "the papers' experiments, one by name"


class Experiment(Protocol):
    """What a module of `bench/papers` offers to be one."""

    SUMMARY: str

    def options(self, parser: argparse.ArgumentParser) -> None:
        """Add the experiment's own options."""
        ...

    def measure(self, options: argparse.Namespace) -> Result:
        """Run it."""
        ...

    def draw(self, result: Result, file: Path) -> None:
        """Draw what was measured."""
        ...


EXPERIMENTS: dict[str, Experiment] = {
    "calls": calls,
    "all": every,
    "eddies-cost": eddies_cost,
    "eddies-delay": eddies_delay,
    "eddies-joins": eddies_joins,
    "eddies-selectivity": eddies_selectivity,
    "eddies-swap": eddies_swap,
    "overheads": overheads,
    "partitions": partitions,
    "regret": regret,
    "stems-competition": stems_competition,
    "stems-priority": stems_priority,
    "stems-q1": stems_q1,
    "stems-q4": stems_q4,
    "stems-spanning-tree": stems_spanning_tree,
}


def options(parser: argparse.ArgumentParser) -> None:
    names = parser.add_subparsers(dest="experiment", metavar="EXPERIMENT", required=True)
    for name, experiment in EXPERIMENTS.items():
        own = names.add_parser(name, help=experiment.SUMMARY, description=experiment.SUMMARY)
        common(own)
        experiment.options(own)


def common(parser: argparse.ArgumentParser) -> None:
    """What every bench and every experiment takes."""
    parser.add_argument("--json", action="store_true", help="only the JSON line")
    parser.add_argument("--plot", nargs="?", const="", metavar="FILE", help="draw it (into bench/plots/)")


def measure(options: argparse.Namespace) -> Result:
    return EXPERIMENTS[options.experiment].measure(options)


def draw(result: Result, file: Path) -> None:
    EXPERIMENTS[result.bench].draw(result, file)
