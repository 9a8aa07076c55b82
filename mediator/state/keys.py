"""What a probe brings along: key values of many rows, taken from columns of any relation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mediator.flow.batch import Rows, as_ids
from mediator.state.columns import Keyed
from mediator.state.kernels import codes as code_kernels

Codes = NDArray[np.int64]
Ids = NDArray[np.int32]
Mask = NDArray[np.bool_]

NO_MASK: Mask = np.zeros(0, np.bool_)
NO_IDS: Ids = np.zeros(0, np.int32)


@dataclass(frozen=True, slots=True)
class Part:
    """One key column's values: these rows of that column."""

    column: Keyed
    rows: Rows
    within: tuple[int, int] | None = None  # whole numbers that are less or more match nothing, as NULL does

    def codes(self) -> Codes:
        codes = self.column.codes()
        if isinstance(self.rows, range):
            return codes[self.rows.start : self.rows.stop]
        out = np.empty(len(self.rows), np.int64)
        code_kernels.gather(codes, self.rows, out)
        return out

    def mask(self) -> Mask | None:
        """Which of them are not NULL, nor out of range; none where all are so."""
        valid, rows = self.column.valid, self.rows
        picked: Mask | None = None
        if valid is not None:
            picked = valid[rows.start : rows.stop] if isinstance(rows, range) else valid[rows]
        if self.within is not None:
            least, most = self.within
            codes = self.codes()
            inside = (codes >= least) & (codes <= most)
            picked = inside if picked is None else picked & inside
        return None if picked is None or picked.all() else picked


@dataclass(frozen=True, slots=True)
class Keys:
    """A key for each of many rows. Rows with a NULL part match nothing."""

    parts: tuple[Part, ...]
    together: Codes | None  # of several parts, one code for each row
    valid: Mask | None  # of those, which have no NULL part; none where none has

    def __len__(self) -> int:
        return len(self.parts[0].rows)

    @property
    def exact(self) -> bool:
        """Whether equal codes mean equal keys."""
        return self.together is None and self.parts[0].column.exact

    def codes(self) -> Codes:
        """One for each row."""
        return self.parts[0].codes() if self.together is None else self.together

    def whole(self) -> Mask:
        """Which of them have no NULL part."""
        valid = self.parts[0].mask() if self.together is None else self.valid
        return np.ones(len(self), np.bool_) if valid is None else valid

    def check(self, at: Ids, stored: Sequence[Keyed], rows: Ids) -> Mask:
        """Which of the pairs (key `at`, stored row) are truly equal."""
        out = np.ones(len(at), np.bool_)
        for part, column in zip(self.parts, stored, strict=True):
            part.column.same(_picked(part.rows, at), column, rows, out)
        return out


def keys_of(parts: Sequence[Part]) -> Keys:
    """The keys that one or several columns' values are."""
    if len(parts) == 1:
        return Keys(tuple(parts), None, None)
    codes, valid = parts[0].codes().copy(), parts[0].mask()
    for part in parts[1:]:
        code_kernels.combine(codes, part.codes())
        mask = part.mask()
        if mask is not None:
            valid = mask if valid is None else valid & mask
    return Keys(tuple(parts), codes, valid)


def _picked(rows: Rows, at: Ids) -> Ids:
    if isinstance(rows, range):
        return at + np.int32(rows.start) if rows.start else at
    return as_ids(rows)[at]
