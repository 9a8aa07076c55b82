"""What the experiments of the first paper on eddies share: its tables, and the contest.

A static plan is the same engine, in which every batch takes the same order; a policy is the same engine in which it
decides. What a contestant takes is set against the best static plan of the same point, each at its best round.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random

import numpy as np
import pyarrow as pa

from bench.feeding import Arrival, arrivals
from bench.papers.runs import Look, Run, Runs, sent
from bench.papers.turns import in_turns as taken_in_turns
from mediator.assembly import POLICIES, Settings
from mediator.eddy.destinations import Destination, Probe
from mediator.eddy.eddy import Eddy
from mediator.eddy.policies.random import AtRandom
from mediator.eddy.policies.usual import Usual
from mediator.eddy.policy import Coming, Policy
from mediator.flow.batch import Signature

R, S, T, U = 10_000, 80_000, 10_000, 50_000  # rows, as in the paper's table 1
DEFAULT = "default"
# Besides the default; and random, which is made here, as the engine's own tries also what serves no goal.
POLICY_NAMES = tuple(name for name in POLICIES if name not in ("fixed", "random", Settings().policy))
_USUAL = 1.8  # rows of R that a row of S finds, as table 1 has them


class Anywhere(AtRandom):
    """Whichever of the destinations that come into question: the policies' baseline. It builds what they build."""

    def __init__(self) -> None:
        super().__init__(Random(0))

    def sample(self, signature: Signature, destination: Destination) -> int:
        return 0

    def survey(self, signature: Signature, legal: Sequence[Destination], rows: int) -> None:
        return None

    def builds(self, coming: Coming) -> bool:
        return Usual.builds(self, coming)


@dataclass(frozen=True)
class Entry:
    """A contestant: what it runs, and how."""

    fed: Runs
    settings: Settings
    instead: Callable[[], Policy] | None = None  # makes the policy, where it is none of the engine's

    def run(self, after: Look | None = None) -> Run:
        return self.fed.run(self.settings, None if self.instead is None else self.instead(), after)

    def moves(self, of: int, to: int) -> list[tuple[float, float]]:
        """In a run of its own: of an alias's rows so far, which share went to another alias first, over how many have
        come."""
        points: list[tuple[float, float]] = []

        def look(eddy: Eddy) -> None:
            here, there = sent(eddy.routing.flows, Signature(1 << of), Probe(to))
            if here:
                points.append((float(eddy.run.view(of).count), there / here))

        self.run(look)
        return points


def policies(fed: Runs) -> dict[str, Entry]:
    """The default first, then every other policy by name."""
    named = {name: Entry(fed, Settings(policy=name)) for name in POLICY_NAMES}
    return {DEFAULT: Entry(fed, Settings()), **named, "random": Entry(fed, Settings(), Anywhere)}


def ordered(fed: Runs, order: Sequence[int]) -> Entry:
    """A static plan: the aliases in one order."""
    return Entry(fed, Settings(policy="fixed", order=tuple(order)))


@dataclass(slots=True)
class Race:
    """All runs of a point, and which of the contestants are the static plans."""

    runs: dict[str, list[Run]]
    statics: tuple[str, ...]

    def best(self, name: str) -> float:
        """Of all rounds: what others on the machine did to it least."""
        return min(run.seconds for run in self.runs[name])

    @property
    def answers(self) -> int:
        return next(iter(self.runs.values()))[0].answers

    @property
    def best_static(self) -> str:
        return min(self.statics, key=self.best)

    @property
    def at_stake(self) -> float:
        """The worst static plan ÷ the best one: what there is to be won by choosing."""
        return round(max(map(self.best, self.statics)) / self.best(self.best_static), 3)

    def ratios(self) -> dict[str, float]:
        """Every contestant ÷ the best static plan."""
        best = self.best(self.best_static)
        return {name: round(self.best(name) / best, 3) for name in self.runs}

    def seconds(self) -> dict[str, float]:
        return {name: round(self.best(name), 4) for name in self.runs}

    def shares(self, signature: Signature, destination: Destination) -> dict[str, float]:
        """For every contestant, in its last round."""
        return {name: round(runs[-1].share(signature, destination), 3) for name, runs in self.runs.items()}


def raced(
    statics: Mapping[str, Entry], others: Mapping[str, Entry], rounds: int, warmed: bool = False
) -> Race:
    """Each so many rounds, in turns that begin with another one each time. Raises `RuntimeError` when answers
    differ."""
    for entry in () if warmed else statics.values():
        entry.run()  # kernels and caches are warm from here on
    entries = {**statics, **others}
    with _little_garbage():
        runs = taken_in_turns({name: entry.run for name, entry in entries.items()}, rounds)
    agree([(name, run) for name, of in runs.items() for run in of])
    return Race(runs, tuple(statics))


@contextmanager
def _little_garbage() -> Iterator[None]:
    """What there is already is not looked through again before every run."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def agree(runs: Iterable[tuple[str, Run]]) -> None:
    """Raises `RuntimeError` unless all found the same answers."""
    found = {(name, run.answers, run.total) for name, run in runs}
    if len({said[1:] for said in found}) > 1:
        raise RuntimeError(f"the answers differ: {found}")


def in_turns(tables: Mapping[str, pa.Table], batch: int) -> list[list[Arrival]]:
    """The tables in batches that end together, each batch a round of its own."""
    return [[arrival] for landed in arrivals(tables, batch) for arrival in landed]


def three_tables(scale: float, seed: int, matches: float, found: float = 1.0) -> dict[str, pa.Table]:
    """R(k, a), S(k, a, b) and T(b, c), of so many times the paper's rows.

    A row of S finds `matches` rows of R: 1.8 by the paper's table 1, where R.a is on 500..5500 and S.a on 0..5000, and
    less where R.a is on more values. It finds a row of T in so many cases as `found` says; in the others it has a value
    that T has not, of as many as T has.
    """
    random = np.random.default_rng(seed)
    r, s, t = (max(1, round(scale * rows)) for rows in (R, S, T))
    values = max(1, round(scale * 5_000))
    least, most = (values // 10, values // 10 + values) if matches == _USUAL else (0, round(r / matches))
    return {
        "r": pa.table({"k": np.arange(r), "a": uniform(random, least, most, r)}),
        "s": pa.table(
            {
                "k": np.arange(s),
                "a": uniform(random, 0, values, s),
                "b": pa.array(random.integers(0, t, s) + t * (random.random(s) >= found)),
            }
        ),
        "t": pa.table({"b": random.permutation(t), "c": np.arange(t)}),
    }


def uniform(random: np.random.Generator, least: int, most: int, rows: int) -> pa.Array:
    """Whole numbers from `least`, below `most`."""
    return pa.array(random.integers(least, most, rows))
