"""A hypercube in which values that stand in very many rows have cells of their own.

All rows of one value point to one place along its dimension: where a value stands in a third of the rows, its cell has
a third of them, however many cells there are. So the rows of such a value are not cut by it. They have a *wing*: a cube
of their own, in which the rows of the largest relation are dealt out and meet all others that have the value. Rows that
lack the dimension go to the main cube and to every wing. An answer has one value there, and so is found in one of
them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mediator.query.model import Block, Column
from pipeline.cells.hashing import hashed
from pipeline.cells.hypercube import ROW, Cut, Dimension, Hypercube, Numbers, alone
from pipeline.cells.shares import shares_of


@dataclass(frozen=True)
class Winged(Cut):
    """`dimension` is the place in the main cube of the one whose values are heavy; `values` are their numbers, as
    `hashing.py` has them, each with its wing."""

    main: Hypercube
    dimension: int
    values: tuple[int, ...]
    wings: tuple[Hypercube, ...]

    @property
    def block(self) -> Block:  # type: ignore[override]
        return self.main.block

    @property
    def cells(self) -> int:
        return self.main.cells + sum(wing.cells for wing in self.wings)

    @cached_property
    def _parts(self) -> tuple[tuple[int, Hypercube], ...]:
        """The cubes, each with the number of its first cell."""
        found, first = [], 0
        for cube in (self.main, *self.wings):
            found.append((first, cube))
            first += cube.cells
        return tuple(found)

    def dealt(self, alias: int, rows: pa.RecordBatch) -> Iterator[tuple[Numbers, Numbers]]:
        part = self._part(alias, rows)
        for number, (first, cube) in enumerate(self._parts):
            if part is None:
                yield from ((first + cells, places) for cells, places in cube.dealt(alias, rows))
                continue
            kept = np.flatnonzero(part == number)
            if len(kept):
                some = rows if len(kept) == rows.num_rows else rows.take(pa.array(kept))
                yield from ((first + cells, kept[places]) for cells, places in cube.dealt(alias, some))

    def _part(self, alias: int, rows: pa.RecordBatch) -> Numbers | None:
        """Which cube each row belongs to, 0 for the main one; None where it has no value there, and belongs to all."""
        field = self.main.dimensions[self.dimension].fields.get(alias)
        return None if field is None else self._parted(self.main.values(alias, field, rows))

    def _parted(self, values: pa.Array) -> Numbers:
        numbers, there = hashed(values)
        found = np.zeros(len(numbers), np.int64)
        for at, value in enumerate(self.values, 1):
            found[(numbers == np.uint64(value)) & there] = at
        return found

    @property
    def checks(self) -> bool:
        return self.main.checks

    @property
    def points(self) -> tuple[Column | None, ...]:
        """Columns that say where an answer lies."""
        return tuple(point for _, cube in self._parts for point in cube.points)

    def own(self, cell: int, gather: Mapping[Column, pa.Array], count: int) -> NDArray[np.bool_]:
        """Which answers are this cell's."""
        number = max(n for n, (first, _) in enumerate(self._parts) if first <= cell)
        first, cube = self._parts[number]
        point = self.main.points[self.dimension]
        assert point is not None
        mine: NDArray[np.bool_] = self._parted(gather[point]) == number
        return mine & cube.own(cell - first, gather, count)


def winged(
    cube: Hypercube, sizes: Sequence[float], heavy: Mapping[int, Mapping[int, float]]
) -> Hypercube | Winged:
    """With a wing for each heavy value of the dimension that has most rows in them. `heavy` says, for dimensions of
    the cube, what part of the rows that have it each heavy value stands in, by the value's number."""
    weights = {
        d: sum(values.values()) for d, values in heavy.items() if values and cube.dimensions[d].share > 1
    }
    if not weights:
        return cube
    dimension = max(weights, key=weights.__getitem__)
    values = tuple(heavy[dimension])
    wings = tuple(_wing(cube, dimension, sizes, part) for part in heavy[dimension].values())
    return Winged(cube, dimension, values, wings)


def _wing(cube: Hypercube, dimension: int, sizes: Sequence[float], part: float) -> Hypercube:
    """As many cells as the main cube has, where the rows can be cut otherwise."""
    there = cube.dimensions[dimension].fields
    within = [size * part if alias in there else size for alias, size in enumerate(sizes)]
    fields = [d.fields for n, d in enumerate(cube.dimensions) if n != dimension]
    dealt = [alias for alias in alone(cube.block) if alias in there]
    if dealt:
        fields = [*fields, {max(dealt, key=lambda alias: within[alias]): ROW}]
    shares = shares_of(fields, within, cube.cells)
    return Hypercube(cube.block, tuple(Dimension(f, s) for f, s in zip(fields, shares, strict=True)))


def main_of(cube: Hypercube | Winged) -> Hypercube:
    """The part that has no heavy values, or all of it."""
    return cube.main if isinstance(cube, Winged) else cube
