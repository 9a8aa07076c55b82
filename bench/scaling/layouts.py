"""The joins that are scaled up: their blocks, how large each relation is, and how its keys are drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bench.feeding import catalog_of
from mediator.query.model import Block, BlockStage
from mediator.query.understand import understand
from pipeline.cells.hypercube import Hypercube, hypercube

VALUES = 1_000_000  # different keys of each class
ZIPF = 0.8


@dataclass(frozen=True)
class Layout:
    """`shares` says how many of all rows each relation has, `fields` its columns; of `hot` ones the values are drawn by
    Zipf's law where keys are skewed, all others' evenly."""

    name: str
    sql: str
    shares: Mapping[str, float]
    fields: Mapping[str, Sequence[str]]
    hot: frozenset[tuple[str, str]]

    @cached_property
    def block(self) -> Block:
        tables = {
            name: pa.table({f: pa.array([], pa.int64()) for f in fields})
            for name, fields in self.fields.items()
        }
        (stage,) = understand(self.sql, catalog_of(tables)).stages
        assert isinstance(stage, BlockStage)
        return stage.block

    def sizes(self, rows: float) -> list[float]:
        return [rows * self.shares[alias.relation.name] for alias in self.block.aliases]

    def cube(self, rows: float, cells: int) -> Hypercube:
        return hypercube(self.block, self.sizes(rows), cells)

    def is_hot(self, alias: int, field: str) -> bool:
        return (self.block.aliases[alias].relation.name, field) in self.hot

    def rows(self, relation: str, count: int, skewed: bool, random: np.random.Generator) -> pa.RecordBatch:
        """A sample."""
        columns = {}
        for field in self.fields[relation]:
            hot = skewed and (relation, field) in self.hot
            drawn = _zipf(count, random) if hot else random.integers(0, VALUES, count)
            columns[field] = pa.array(drawn)
        return pa.record_batch(columns)


def drawn(hot: bool) -> tuple[float, float]:
    """Of a column's values: the share of the commonest, and the chance that two rows have the same one."""
    if not hot:
        return 1 / VALUES, 1 / VALUES
    shares = _zipfs() / _zipfs().sum()
    return float(shares[0]), float(np.sum(shares**2))


def _zipfs() -> NDArray[np.float64]:
    return np.arange(1, VALUES + 1, dtype=np.float64) ** -ZIPF


def _zipf(count: int, random: np.random.Generator) -> NDArray[np.int64]:
    sums = np.cumsum(_zipfs())
    found: NDArray[np.int64] = np.searchsorted(sums, random.random(count) * sums[-1]).astype(np.int64)
    return np.minimum(found, VALUES - 1)


LAYOUTS: Mapping[str, Layout] = {
    "pair": Layout(
        "pair",
        "SELECT r.a, r.x, s.y FROM r JOIN s ON r.a = s.a",
        {"r": 0.5, "s": 0.5},
        {"r": ("a", "x"), "s": ("a", "y")},
        frozenset({("r", "a")}),
    ),
    "chain": Layout(
        "chain",
        "SELECT r.x, s.a, s.b, t.y FROM r JOIN s ON r.a = s.a JOIN t ON s.b = t.b",
        {"r": 1 / 3, "s": 1 / 3, "t": 1 / 3},
        {"r": ("a", "x"), "s": ("a", "b"), "t": ("b", "y")},
        frozenset({("r", "a"), ("s", "b")}),
    ),
    "star": Layout(
        "star",
        "SELECT f.k, d1.x AS x1, d2.x AS x2, d3.x AS x3, d4.x AS x4 FROM f JOIN d1 ON f.d1 = d1.d "
        "JOIN d2 ON f.d2 = d2.d JOIN d3 ON f.d3 = d3.d JOIN d4 ON f.d4 = d4.d",
        {"f": 0.96, "d1": 0.01, "d2": 0.01, "d3": 0.01, "d4": 0.01},
        {"f": ("k", "d1", "d2", "d3", "d4"), **{f"d{n}": ("d", "x") for n in range(1, 5)}},
        frozenset(("f", f"d{n}") for n in range(1, 5)),
    ),
}
