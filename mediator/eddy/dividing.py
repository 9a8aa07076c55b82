"""Ways to tell rows apart by one of their columns, and which of them saves most.

What a row costs in one order of destinations or another is known of the sample, so to try a column is to add up: sorted
by its values, or by value, whichever order is best for each side.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import permutations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray

from mediator.eddy.run import Mask
from mediator.query.model import Column

Labels = NDArray[np.int64]
Figures = NDArray[np.float64]

_FEW = 16  # values that are told apart one by one
_CUTS = 31  # places where a range of values is cut in two, to see which is best
_ALL = 3  # destinations of which all orders are looked at
_GAIN = 0.1  # share of the work that going apart has to save


@dataclass(frozen=True, slots=True)
class Division:
    """Every row of a batch belongs to one part, counted from 1. A row of which nothing is said belongs to the first."""

    column: Column
    parts: int
    below: object = None  # what is smaller is the second part
    groups: tuple[tuple[object, ...], ...] = ()  # the values of the second part, of the third, ...

    def label(self, values: pa.Array) -> Labels:
        if not self.groups:
            return self._smaller(values) + np.int64(1)
        labels = np.ones(len(values), np.int64)
        for part, group in enumerate(self.groups, 2):
            labels[_flags(pc.is_in(values, value_set=pa.array(group, values.type)))] = part
        return labels

    def _smaller(self, values: pa.Array) -> Mask:
        if not values.null_count and (pt.is_integer(values.type) or pt.is_floating(values.type)):
            smaller: Mask = values.to_numpy() < self.below
            return smaller
        return _flags(pc.less(values, pa.scalar(self.below, values.type)))

    @property
    def text(self) -> str:
        """For people."""
        if not self.groups:
            return f"{self.column.field} < {self.below}"
        shown = [
            ", ".join(map(str, group[:3])) + (", ..." if len(group) > 3 else "") for group in self.groups
        ]
        return f"{self.column.field} in " + " | ".join(shown)


def best_division(
    columns: Mapping[Column, pa.Array], counts: Figures, price: Figures
) -> tuple[Division, float] | None:
    """The division that saves most, and what it saves a row; none where going apart saves too little.

    `counts` says what comes of each row at each destination, `price` what a row costs there. Half of the rows choose,
    the others judge.
    """
    costs = _costs(counts, price)
    choosing = np.arange(len(counts)) % 2 == 0
    mine = costs[choosing]
    best: tuple[float, Division] | None = None
    for column, values in columns.items():
        for cost, division in _tried(column, values.filter(pa.array(choosing)), mine):
            if best is None or cost < best[0]:
                best = cost, division
    if best is None:
        return None
    division = best[1]
    whole = float(costs[~choosing, mine.sum(axis=0).argmin()].sum())
    saved = whole - _apart(costs, division.label(columns[division.column]), choosing)
    return (division, saved / max(1, int((~choosing).sum()))) if saved > _GAIN * whole else None


def _tried(column: Column, values: pa.Array, costs: Figures) -> Iterator[tuple[float, Division]]:
    """What rows cost if they are divided by this column, in the ways that suit it."""
    if _ordered(values.type):
        yield from _cut(column, values, costs)
    if _equal(values.type):
        yield from _grouped(column, values, costs)


def _cut(column: Column, values: pa.Array, costs: Figures) -> Iterator[tuple[float, Division]]:
    """In two, at the value where that is best."""
    numbers = _numbers(values)
    order = np.argsort(numbers)
    ordered = numbers[order]
    places = _places(len(order))
    places = np.searchsorted(ordered, ordered[places])  # cut before the first of equal values
    places = places[(places > 0) & ~np.isnan(ordered[places])]
    if not len(places):
        return
    sums = np.cumsum(costs[order], axis=0)
    below = sums[places - 1]
    total = below.min(axis=1) + (sums[-1] - below).min(axis=1)
    found = int(total.argmin())
    value = _plain(values.take([int(order[places[found]])]))
    if value is not None:
        yield float(total[found]), Division(column, 2, below=value[0])


@cache
def _places(count: int) -> Labels:
    """Where so many values in their order may be cut."""
    return np.unique(np.linspace(0, count - 1, _CUTS + 2)[1:-1].astype(np.int64))


def _grouped(column: Column, values: pa.Array, costs: Figures) -> Iterator[tuple[float, Division]]:
    """In groups of values that are best served by the same order, where there are few values."""
    coded = pc.dictionary_encode(values)
    distinct = len(coded.dictionary)
    if not 1 < distinct <= _FEW:
        return
    plain = _plain(coded.dictionary)
    if plain is None:
        return
    codes = coded.indices.fill_null(distinct).to_numpy(zero_copy_only=False)
    sums = np.stack([np.bincount(codes, c, minlength=distinct + 1) for c in costs.T], axis=1)
    wishes: dict[int, list[object]] = {}
    for value, wish in zip(plain, sums.argmin(axis=1)[:distinct], strict=True):
        wishes.setdefault(int(wish), []).append(value)
    if len(wishes) > 1:
        by_size = sorted(wishes.values(), key=len, reverse=True)
        groups = tuple(tuple(group) for group in by_size[1:])
        yield float(sums.min(axis=1).sum()), Division(column, len(by_size), groups=groups)


def _plain(values: pa.Array) -> list[object] | None:
    """As Python has them; none where it has no such values, like days before the year 1."""
    if pa.types.is_temporal(values.type) and getattr(values.type, "unit", "") == "ns":
        return None  # finer than Python's; where pandas is installed they come as something else
    try:
        plain: list[object] = values.to_pylist()
    except (ValueError, OverflowError):
        return None
    return plain


def _apart(costs: Figures, labels: Labels, choosing: Mask) -> float:
    """What the judging rows cost if each part has the order that is best for the choosing ones."""
    total = 0.0
    for part in np.unique(labels):
        mine = labels == part
        order = costs[mine & choosing].sum(axis=0).argmin()
        total += float(costs[mine & ~choosing, order].sum())
    return total


def _costs(counts: Figures, price: Figures) -> Figures:
    """By row and order: what comes of a row at one destination goes on to the next."""
    spent = price * (1.0 + counts)
    columns = []
    for order in _orders(counts, price):
        going, total = np.ones(len(counts)), np.zeros(len(counts))
        for n in order:
            total += going * spent[:, n]
            going = going * counts[:, n]
        columns.append(total)
    return np.stack(columns, axis=1)


def _orders(counts: Figures, price: Figures) -> list[Sequence[int]]:
    """All of them; where there are too many, each destination first and the others by rank."""
    size = len(price)
    if size <= _ALL:
        return list(permutations(range(size)))
    mean = counts.mean(axis=0)
    ranked = [int(n) for n in np.argsort((mean - 1.0) / (price * (1.0 + mean)))]
    return [[first, *(n for n in ranked if n != first)] for first in ranked]


def _numbers(values: pa.Array) -> Figures:
    """Values in their order, as numbers; NaN where there is none."""
    if pt.is_date(values.type) or pt.is_timestamp(values.type):
        values = values.cast(pa.int32() if pt.is_date32(values.type) else pa.int64())
    numbers: Figures = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return numbers


def _flags(found: pa.Array) -> Mask:
    flags: Mask = found.fill_null(False).to_numpy(zero_copy_only=False)
    return flags


def _ordered(kind: pa.DataType) -> bool:
    return bool(pt.is_integer(kind) or pt.is_floating(kind) or pt.is_date(kind) or pt.is_timestamp(kind))


def _equal(kind: pa.DataType) -> bool:
    return bool(_ordered(kind) or pt.is_string(kind) or pt.is_large_string(kind) or pt.is_boolean(kind))
