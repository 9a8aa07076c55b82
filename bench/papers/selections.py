"""Two selections of a given cost and selectivity over U, as in figures 4 to 6: `select k from u where s1 and s2`."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from bench.feeding import catalog_of
from bench.papers.eddies import DEFAULT, Entry, Race, U, in_turns, policies, raced, uniform
from bench.papers.fed import Fed
from bench.result import Result
from mediator.assembly import Settings
from mediator.catalog.delay import DELAY
from mediator.eddy.destinations import Select
from mediator.flow.batch import Signature

_FINE = 1_000  # steps of selectivity


@dataclass(frozen=True)
class Selection:
    """What a row costs, in units, and the share of rows that pass."""

    cost: float
    passing: float

    def sql(self, column: str, unit: float) -> str:
        """Spins for its cost, and then compares. `unit` is in microseconds."""
        return f"delay(u.{column}, {self.cost * unit:g}) < {round(self.passing * _FINE)}"


def options(parser: argparse.ArgumentParser) -> None:
    """What both experiments take."""
    parser.add_argument("--rows", type=int, default=U, help="of U (default: %(default)s)")
    parser.add_argument("--unit", type=float, default=0.5, help="microseconds of a unit of cost")
    parser.add_argument("--batch", type=int, default=500, help="rows in a batch")
    parser.add_argument("--rounds", type=int, default=2, help="contestants in turns, so many times")
    parser.add_argument("--seed", type=int, default=1, help="of U")


def raced_at(options: argparse.Namespace, s1: Selection, s2: Selection) -> Race:
    """Both orders, and every policy.

    A static plan takes conditions in the order in which they are written, so each of the orders is a text of its own.
    """
    random = np.random.default_rng(options.seed)
    table = {"k": np.arange(options.rows)}
    u = pa.table({**table, **{name: uniform(random, 0, _FINE, options.rows) for name in "ab"}})
    catalog, rounds = catalog_of({"u": u}).knowing([DELAY]), in_turns({"u": u}, options.batch)
    one, two = s1.sql("a", options.unit), s2.sql("b", options.unit)
    fed = Fed(f"select u.k from u where {one} and {two}", catalog, rounds)
    turned = Fed(f"select u.k from u where {two} and {one}", catalog, rounds)
    fixed = Settings(policy="fixed")
    return raced(
        {"s1 first": Entry(fed, fixed), "s2 first": Entry(turned, fixed)}, policies(fed), options.rounds
    )


def result_of(bench: str, options: argparse.Namespace, races: Mapping[float, Race]) -> Result:
    """Every contestant's time ÷ the better order's, at every point."""
    points = {f"{at:g}": _told(race) for at, race in races.items()}
    result = Result(bench, curves={f"{at:g}": race for at, race in races.items()})
    ratios = [race.ratios() for race in races.values()]
    result.figures["default_worst_ratio"] = max(at[DEFAULT] for at in ratios)
    result.detail |= {
        "setting": (
            f"{options.rows:,} rows of U in batches of {options.batch:,}; a unit is {options.unit:g} us of spinning a"
            f" row; contestants in turns, the best of {options.rounds} rounds in real time"
        ),
        "worst_ratio": {name: max(at[name] for at in ratios) for name in ratios[0]},
        "points": points,
    }
    return result


def _told(race: Race) -> dict[str, object]:
    here = race.shares(Signature(1), Select(0))
    turned = race.shares(Signature(1), Select(1))  # s1 is written second in the text that takes s2 first
    return {
        "better_order": race.best_static,
        "ratios": race.ratios(),
        "seconds": race.seconds(),
        "s1_first": {**here, "s2 first": turned["s2 first"]},
        "answers": race.answers,
    }
