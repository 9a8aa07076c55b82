"""Which rows go to which cells.

Each class of columns that are equal in every answer is a dimension of a cube, cut into shares. A row goes where its
values of those columns point, and to every cell along the dimensions of which it has no column. So the rows of an
answer meet in one cell, the one that the answer's values point to, and each cell can find its answers without knowing
of the others.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mediator.query.model import Block, Column
from pipeline.cells.hashing import hashed, hashed_rows
from pipeline.cells.shares import shares_of

Numbers = NDArray[np.int64]
ROW = "#row as a whole"  # in place of a column


@dataclass(frozen=True)
class Dimension:
    """`fields` is the column of each alias that has one; `share` is how many cells there are along it."""

    fields: Mapping[int, str]
    share: int


class Cut(ABC):
    """A block's rows, cut into cells."""

    block: Block

    @abstractmethod
    def dealt(self, alias: int, rows: pa.RecordBatch) -> Iterator[tuple[Numbers, Numbers]]:
        """Cells that the same rows of one alias go to, and the places of those rows in the batch."""

    def cells_of(self, relation: str, rows: pa.RecordBatch) -> Iterator[tuple[int, Numbers]]:
        """For each cell that any of the rows go to, their places in the batch."""
        for cells, places in self.shared(relation, rows):
            for cell in cells.tolist():
                yield cell, places

    def shared(self, relation: str, rows: pa.RecordBatch) -> Iterator[tuple[Numbers, Numbers]]:
        """Cells that the same rows go to, and the places of those rows in the batch. Each cell is named once."""
        aliases = [a.number for a in self.block.aliases if a.relation.name == relation]
        found = [one for alias in aliases for one in self.dealt(alias, rows)]
        return iter(found) if len(aliases) < 2 else united(found)


@dataclass(frozen=True)
class Hypercube(Cut):
    block: Block
    dimensions: tuple[Dimension, ...]

    @property
    def cells(self) -> int:
        return prod(d.share for d in self.dimensions)

    def dealt(self, alias: int, rows: pa.RecordBatch) -> Iterator[tuple[Numbers, Numbers]]:
        """What goes where by the columns of one alias. A cell's number is the sum of what its place along each
        dimension comes to: the known ones lead a row to a first cell, the others from there to all that have a copy."""
        first, there = np.zeros(rows.num_rows, np.int64), np.ones(rows.num_rows, np.bool_)
        copies = np.zeros(1, np.int64)
        stride = self.cells
        for dimension in self.dimensions:
            stride //= dimension.share
            found = self._coordinates(dimension, alias, rows)
            if found is None:
                copies = np.add.outer(copies, np.arange(dimension.share) * stride).ravel()
            else:
                first += found * stride
                there &= found >= 0
        kept = np.flatnonzero(there)
        for cell, places in grouped(first[kept], self.cells):
            yield cell + copies, kept[places]

    def _coordinates(self, dimension: Dimension, alias: int, rows: pa.RecordBatch) -> Numbers | None:
        """Along one dimension; -1 for rows that can be in no answer, None for all that there are."""
        field = dimension.fields.get(alias)
        if field is None:
            return None
        if field == ROW:
            return whole(rows, dimension.share)
        return coordinates(self.values(alias, field, rows), dimension.share)

    def values(self, alias: int, field: str, rows: pa.RecordBatch) -> pa.Array:
        for computed in self.block.aliases[alias].computed:
            if computed.name == field:
                return computed.evaluate(rows.select(list(computed.reads)))
        return rows.column(field)

    @property
    def checks(self) -> bool:
        """Whether rows may meet in cells that are not theirs. Where a relation stands in the block more than once, what
        comes for one of its aliases is there for the others; and rows of the statement's own are everywhere."""
        names = [a.relation.name for a in self.block.aliases]
        return len(set(names)) < len(names) or any(a.relation.literal is not None for a in self.block.aliases)

    def own(self, cell: int, gather: Mapping[Column, pa.Array], count: int) -> NDArray[np.bool_]:
        """Which answers are this cell's, by the `points` of each dimension."""
        mine = np.ones(count, np.bool_)
        at = np.unravel_index(cell, [d.share for d in self.dimensions]) if self.dimensions else ()
        for point, wanted, dimension in zip(self.points, at, self.dimensions, strict=True):
            if point is not None and dimension.share > 1:
                mine &= coordinates(gather[point], dimension.share) == wanted
        return mine

    @property
    def points(self) -> tuple[Column | None, ...]:
        """A column of each dimension that says where an answer lies along it."""
        found: list[Column | None] = []
        for dimension in self.dimensions:
            alias, field = next(iter(dimension.fields.items()))
            found.append(None if field == ROW else Column(alias, field))
        return tuple(found)


def grouped(numbers: Numbers, most: int) -> Iterator[tuple[int, Numbers]]:
    """Each number below `most` that there is, and its places, in their order."""
    small = numbers.astype(np.uint16) if most <= 1 << 16 else numbers  # which NumPy sorts much faster
    order = np.argsort(small, kind="stable")
    ends = np.flatnonzero(np.diff(numbers[order], append=-1)) + 1
    start = 0
    for end in ends.tolist():
        yield int(numbers[order[start]]), order[start:end]
        start = end


def united(found: Iterable[tuple[Numbers, Numbers]]) -> Iterator[tuple[Numbers, Numbers]]:
    """Where several aliases send rows to a cell: each of the rows once."""
    by_cell: dict[int, list[Numbers]] = {}
    for cells, places in found:
        for cell in cells.tolist():
            by_cell.setdefault(cell, []).append(places)
    for cell, several in sorted(by_cell.items()):
        yield np.array([cell]), several[0] if len(several) == 1 else np.unique(np.concatenate(several))


def coordinates(values: pa.Array, share: int) -> Numbers:
    """Where values point along a dimension; -1 for NULL, which equals nothing."""
    numbers, there = hashed(values)
    found = (numbers >> np.uint64(32)).astype(np.int64) % share
    found[~there] = -1
    return found


def whole(rows: pa.RecordBatch, share: int) -> Numbers:
    """Where rows as such point along a dimension: equal ones, which may come more than once, to the same place."""
    return (hashed_rows(rows) >> np.uint64(32)).astype(np.int64) % share


def hypercube(block: Block, sizes: Sequence[float], cells: int) -> Hypercube:
    """A cube of at most so many cells in which each has the fewest rows. `sizes` are those of the aliases, as far as
    anybody knows."""
    dimensions = [
        fields for c in block.classes if c.constant is None and len(fields := _fields(c.columns)) > 1
    ]
    if (
        not dimensions
    ):  # nothing is equal: the rows of the largest relation are dealt out, and meet all others
        dealt = alone(block)
        dimensions = [{max(dealt, key=lambda a: sizes[a]): ROW}] if dealt else []
    shares = shares_of(dimensions, sizes, cells)
    return Hypercube(block, tuple(Dimension(f, s) for f, s in zip(dimensions, shares, strict=True)))


def alone(block: Block) -> list[int]:
    """Aliases whose rows can be dealt out: those of a site, whose relation stands in the block once."""
    names = [a.relation.name for a in block.aliases]
    return [
        a
        for a in range(len(names))
        if names.count(names[a]) == 1 and block.aliases[a].relation.literal is None
    ]


def _fields(columns: Sequence[Column]) -> dict[int, str]:
    """One column of each alias: the others of it are equal in every answer."""
    return {c.alias: c.field for c in reversed(columns)}
