"""The model: what a spread takes on so many executors. All formulas are here.

A query reads N rows, n_a of them for its alias a; S is the number of slots, and of cells at most. The cube cuts
dimension d into s_d shares.

    copies of a row of a         c_a = product of s_d over the dimensions of which a has no column
    rows that cells are told     R   = sum of n_a * c_a
    rows of the fullest cell     F   = sum of n_a * f_a, where f_a is the larger of
                                 product of (p_d + (1 - p_d) / s_d): where the commonest value is, p_d being its share
                                 product of 1 / s_d * (1 + sqrt(2 ln S * sum of s_d * q_d)): how values fall by chance,
                                 q_d being the chance that two rows have the same one
                                 over the dimensions of which a has a column

    cutting    N * cut_row / S                      pieces are read, hashed and packed, each once, where a slot is free
    carrying   F * row_bytes * carry_byte           to Java, through the shuffle, into the state and the cell: its slot
    eddies     F * eddy_row + A / S * answer_row    joining, and writing A answers
    network    R * row_bytes / (E * NETWORK)        E executors, each with its own card
    disks      2 * R * row_bytes / (E * DISK)       what is shuffled, and the changes of the state
    batches    B * (epoch + cell + 2 * S * task + S * told_cell)    B micro-batches, each with two stages of S tasks

The time is the sum of all terms: none is taken to be hidden behind another, so it is what is promised at most. The
bound is the largest of them. A slot's memory holds its cell: F * memory_row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, log, prod, sqrt

from bench.scaling.costs import Costs
from bench.scaling.layouts import Layout, drawn
from pipeline.cells.hypercube import Hypercube
from pipeline.spread.stream import Pace

# Assumed, and not measured.
SLOTS = 4  # of an executor
NETWORK = 1.25e9  # bytes a second of an executor: 10 Gbit/s
DISK = 2e8  # the same, of its disk
MEMORY = 8e9  # bytes of a slot

PaceOf = Callable[[int], Pace]


@dataclass(frozen=True)
class Load:
    """What a cube makes of the rows."""

    cube: Hypercube
    copies: float  # of a row, on average
    mean: float  # rows of a cell
    fullest: float

    @property
    def skew(self) -> float:
        return self.fullest / self.mean


@dataclass(frozen=True)
class Forecast:
    executors: int
    load: Load
    terms: dict[str, float]  # seconds
    batches: int
    memory: float  # bytes of the fullest slot

    @property
    def seconds(self) -> float:
        return sum(self.terms.values())

    @property
    def bound(self) -> str:
        return max(self.terms, key=lambda term: self.terms[term])

    @property
    def fits(self) -> bool:
        return self.memory <= MEMORY


def load(layout: Layout, rows: float, cells: int, skewed: bool, sample: float = inf) -> Load:
    """As the formulas have it. Of a sample of so many rows of each relation, chance has a part in it as well."""
    cube, sizes = layout.cube(rows, cells), layout.sizes(rows)
    told = fullest = 0.0
    for alias, size in enumerate(sizes):
        told += size * prod(d.share for d in cube.dimensions if alias not in d.fields)
        fullest += size * _fullest(layout, cube, alias, skewed, sample)
    return Load(cube, told / rows, told / cube.cells, fullest)


def _fullest(layout: Layout, cube: Hypercube, alias: int, skewed: bool, sample: float) -> float:
    """The share of an alias's rows that the fullest cell is told."""
    hot, even, chance = 1.0, 1.0, 0.0
    for dimension in cube.dimensions:
        if alias in dimension.fields:
            common, twice = drawn(skewed and layout.is_hot(alias, dimension.fields[alias]))
            hot *= common + (1 - common) / dimension.share
            even /= dimension.share
            chance += dimension.share * twice if dimension.share > 1 else 0.0
    if even < 1:
        chance += 1 / even / sample
    return max(hot, min(1.0, even * (1 + sqrt(2 * log(cube.cells) * chance))))


def batches(size: float, pace: Pace) -> int:
    """Micro-batches that so many bytes are read in."""
    done, count = 0.0, 0
    while done < size and pace.room(count) < pace.most:
        done += pace.room(count)
        count += 1
    return count + max(0, -int(-(size - done) // pace.most))


def forecast(
    costs: Costs, layout: Layout, rows: float, executors: int, skewed: bool, pace: PaceOf
) -> Forecast:
    slots = executors * SLOTS
    there = load(layout, rows, slots, skewed)
    answers = max(layout.sizes(rows))
    sent = rows * there.copies * costs.row_bytes
    count = batches(rows * costs.row_bytes, pace(slots))
    terms = {
        "cutting": rows * costs.cut_row / slots,
        "carrying": there.fullest * costs.row_bytes * costs.carry_byte,
        "eddies": there.fullest * costs.eddy_row + answers / slots * costs.answer_row,
        "network": sent / (executors * NETWORK),
        "disks": 2 * sent / (executors * DISK),
        "batches": count * (costs.epoch + costs.cell + slots * (2 * costs.task + costs.told_cell)),
    }
    return Forecast(executors, there, terms, count, there.fullest * costs.memory_row)
