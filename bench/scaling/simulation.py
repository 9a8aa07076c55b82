"""Sampled rows, dealt out by the pipeline's own cubes and hashes: what really goes where."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from bench.scaling.layouts import LAYOUTS, Layout
from bench.scaling.model import SLOTS, load

EXECUTORS = (10, 100, 1_000)
_MANY = 1e9  # rows that cubes are cut for


@dataclass(frozen=True)
class Dealt:
    """What became of a sample, and what the model says."""

    layout: str
    keys: str
    executors: int
    shares: tuple[int, ...]
    copies: float
    skew: float  # the fullest cell ÷ the mean
    model_copies: float
    model_skew: float

    @property
    def off(self) -> float:
        """How far the model is off."""
        return max(abs(self.model_copies / self.copies - 1), abs(self.model_skew / self.skew - 1))

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def simulated(sample: int) -> list[Dealt]:
    """All layouts, with keys that are even and that are skewed."""
    return [
        dealt(layout, executors, skewed, sample)
        for layout in LAYOUTS.values()
        for skewed in (False, True)
        for executors in EXECUTORS
    ]


def dealt(layout: Layout, executors: int, skewed: bool, sample: int, seed: int = 1) -> Dealt:
    """Of each relation a sample of so many rows stands for all of its own."""
    model = load(layout, _MANY, executors * SLOTS, skewed, sample)
    told = np.zeros(model.cube.cells)
    random = np.random.default_rng(seed)
    sent = 0.0
    for alias, size in zip(layout.block.aliases, layout.sizes(_MANY), strict=True):
        relation = alias.relation.name
        rows = layout.rows(relation, sample, skewed, random)
        here = np.zeros_like(told)
        for cells, places in model.cube.shared(relation, rows):
            here[cells] += len(places)
        told += here * (size / sample)
        sent += here.sum() * (size / sample)
    return Dealt(
        layout.name,
        "skewed" if skewed else "even",
        executors,
        tuple(d.share for d in model.cube.dimensions),
        round(sent / _MANY, 4),
        round(float(told.max() / told.mean()), 4),
        round(model.copies, 4),
        round(model.skew, 4),
    )


def read(said: list[dict[str, Any]]) -> Iterator[Dealt]:
    """From what `as_dict` wrote."""
    for one in said:
        yield Dealt(**{**one, "shares": tuple(one["shares"])})
