"""Rows of several aliases side by side, joined by the codes of the columns that are equal in every answer.

Codes that are equal by chance bring rows together that do not belong together, and never keep any apart. So what is
found here may be too much, and is never too little.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mediator.eddy.run import Run
from mediator.flow.batch import Batch, Rows, Signature, as_ids
from mediator.query.model import EqualClass
from mediator.state.kernels import codes as code_kernels
from mediator.state.keys import Part

Ids = NDArray[np.int32]
Codes = NDArray[np.int64]
Mask = NDArray[np.bool_]

MOST = 1 << 21  # rows of one table: what would be larger is left apart


@dataclass(frozen=True, slots=True)
class Table:
    """Combinations of rows. `merged` are all aliases that went into it, `rows` those whose rows are still needed."""

    rows: Mapping[int, Ids]
    merged: int

    def __len__(self) -> int:
        return len(next(iter(self.rows.values())))

    @property
    def kept(self) -> int:
        return sum(1 << alias for alias in self.rows)

    def take(self, positions: NDArray[np.int64] | Mask) -> Table:
        return Table({alias: ids[positions] for alias, ids in self.rows.items()}, self.merged)

    def batch(self, aliases: int) -> Batch:
        """As a batch that could have come by, and that nothing is to be joined with."""
        vectors: list[Rows | None] = [self.rows.get(alias) for alias in range(aliases)]
        return Batch(Signature(self.kept), tuple(vectors), (0,) * aliases)


class Joiner:
    """Joins tables of one run."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self.classes = [c for c in run.block.classes if len({col.alias for col in c.columns}) > 1]

    def single(self, alias: int, ids: Rows) -> Table:
        """Rows of one alias, less those that no answer can have: with a NULL that is to equal something."""
        rows = as_ids(ids)
        keep = np.ones(len(rows), np.bool_)
        for equal in self._run.block.classes:
            own = [c.field for c in equal.columns if c.alias == alias]
            if not own or (len(equal.columns) == 1 and equal.constant is None):
                continue
            first = self._codes(alias, own[0], rows)
            for field in own:
                mask = self._part(alias, field, rows).mask()
                if mask is not None:
                    keep &= mask
                keep &= self._codes(alias, field, rows) == first
        return Table({alias: rows if keep.all() else rows[keep]}, 1 << alias)

    def shared(self, left: Collection[int], right: Collection[int]) -> list[EqualClass]:
        """The classes that have columns on both sides."""
        return [
            c
            for c in self.classes
            if any(col.alias in left for col in c.columns) and any(col.alias in right for col in c.columns)
        ]

    def keys(self, table: Table, classes: Sequence[EqualClass]) -> Codes:
        """One code for each row of what it has in these classes."""
        found: Codes | None = None
        for equal in classes:
            column = next(c for c in equal.columns if c.alias in table.rows)
            codes = self._codes(column.alias, column.field, table.rows[column.alias])
            if found is None:
                found = codes.copy()
            else:
                code_kernels.combine(found, codes)
        return np.zeros(len(table), np.int64) if found is None else found

    def met(self, left: Table, right: Table) -> Mask:
        """Which rows of the left table have a match in the right one."""
        classes = self.shared(left.rows, right.rows)
        if not classes or not len(right):
            return np.full(len(left), bool(len(right)))
        return np.isin(self.keys(left, classes), self.keys(right, classes))

    def joined(self, left: Table, right: Table) -> Table | None:
        """Both, side by side; none where that is too much."""
        classes = self.shared(left.rows, right.rows)
        keys, others = self.keys(left, classes), self.keys(right, classes)
        order = np.argsort(others, kind="stable")
        others = others[order]
        low, high = np.searchsorted(others, keys, "left"), np.searchsorted(others, keys, "right")
        counts = high - low
        total = int(counts.sum())
        if total > MOST:
            return None
        at = np.repeat(np.arange(len(keys)), counts)
        within = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
        beside = order[np.repeat(low, counts) + within]
        rows = {alias: ids[at] for alias, ids in left.rows.items()}
        rows |= {alias: ids[beside] for alias, ids in right.rows.items()}
        return self._checked(Table(rows, left.merged | right.merged), left, right)

    def projected(self, table: Table, needed: Collection[int]) -> Table:
        """What is left when only the rows of these aliases matter, each combination once."""
        kept = [alias for alias in table.rows if alias in needed] or [next(iter(table.rows))]
        if len(kept) == len(table.rows):
            return table
        codes = np.zeros(len(table), np.int64)
        for alias in kept:
            ids = table.rows[alias].astype(np.int64)
            codes = np.unique(codes, return_inverse=True)[1] * (int(ids.max(initial=0)) + 1) + ids
        _, first = np.unique(codes, return_index=True)
        return Table({alias: table.rows[alias][first] for alias in kept}, table.merged)

    def _checked(self, table: Table, left: Table, right: Table) -> Table:
        """Less what fails a cheap predicate over both sides."""
        for predicate in self._run.block.predicates:
            across = predicate.aliases & left.kept and predicate.aliases & right.kept
            if predicate.costly or not across or predicate.aliases & ~table.kept or not len(table):
                continue
            batch = table.batch(len(self._run.aliases))
            keep = predicate.test({c: self._run.gather(batch, c) for c in predicate.reads})
            table = table.take(keep)
        return table

    def _part(self, alias: int, field: str, rows: Ids) -> Part:
        return Part(self._run.view(alias).stem.store.column(field).keyed(), rows)

    def _codes(self, alias: int, field: str, rows: Ids) -> Codes:
        return self._part(alias, field, rows).codes()


def together(
    joiner: Joiner, tables: Sequence[Table], needed: Callable[[Table], Collection[int]]
) -> list[Table]:
    """Tables that a class ties to each other made one, the smaller first, each with the rows of those aliases alone
    that are still `needed`. What would grow too large stays apart."""
    left = reduced(joiner, tables)
    left = [joiner.projected(table, needed(table)) for table in left]
    apart: set[tuple[int, int]] = set()
    while True:
        pairs = [
            (len(a) * len(b), i, j)
            for i, a in enumerate(left)
            for j, b in enumerate(left)
            if i < j and (a.merged, b.merged) not in apart and joiner.shared(a.rows, b.rows)
        ]
        if not pairs:
            return left
        _, i, j = min(pairs)
        both = joiner.joined(left[i], left[j])
        if both is None:
            apart.add((left[i].merged, left[j].merged))
            continue
        left = [t for n, t in enumerate(left) if n not in (i, j)]
        left.append(joiner.projected(both, needed(both)))


def reduced(joiner: Joiner, tables: Sequence[Table]) -> list[Table]:
    """Each table less the rows that have no match in another, until that changes nothing."""
    left, changed = list(tables), True
    while changed:
        changed = False
        for n, table in enumerate(left):
            for other in left:
                if other is not table and len(table) and joiner.shared(table.rows, other.rows):
                    keep = joiner.met(table, other)
                    if not keep.all():
                        table, changed = table.take(keep), True
            left[n] = table
    return left
