"""What a probe brings along: key values of many rows, taken from columns of any relation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mediator.flow.batch import Rows
from mediator.state.columns import Keyed, as_ids
from mediator.state.kernels import codes as code_kernels

Codes = NDArray[np.int64]
Ids = NDArray[np.int32]
Mask = NDArray[np.bool_]

NO_MASK: Mask = np.zeros(0, np.bool_)


@dataclass(frozen=True, slots=True)
class Part:
    """One key column's values: these rows of that column."""

    column: Keyed
    rows: Rows


@dataclass(frozen=True, slots=True)
class Keys:
    """One code per row. Rows with a NULL part are invalid: they match nothing."""

    parts: tuple[Part, ...]
    codes: Codes
    valid: Mask | None
    exact: bool

    def __len__(self) -> int:
        return len(self.codes)

    def check(self, at: Ids, stored: Sequence[Keyed], rows: Ids) -> Mask | None:
        """Which of the pairs (key `at`, stored row) are truly equal; none when the codes say it all."""
        if self.exact:
            return None
        out = np.ones(len(at), np.bool_)
        for part, column in zip(self.parts, stored, strict=True):
            part.column.same(_picked(part.rows, at), column, rows, out)
        return out


def keys_of(parts: Sequence[Part]) -> Keys:
    """The codes of one or several key columns' values."""
    valid: Mask | None = None
    for part in parts:
        mask = _gathered_mask(part)
        if mask is not None:
            valid = mask if valid is None else valid & mask
    first = _gathered_codes(parts[0])
    if len(parts) == 1:
        return Keys(tuple(parts), first, valid, parts[0].column.exact)
    codes = first.copy()
    for part in parts[1:]:
        code_kernels.combine(codes, _gathered_codes(part))
    return Keys(tuple(parts), codes, valid, False)


def _gathered_codes(part: Part) -> Codes:
    codes = part.column.codes()
    if isinstance(part.rows, range):
        return codes[part.rows.start : part.rows.stop]
    out = np.empty(len(part.rows), np.int64)
    code_kernels.gather(codes, part.rows, out)
    return out


def _gathered_mask(part: Part) -> Mask | None:
    valid = part.column.valid
    if valid is None:
        return None
    picked: Mask = (
        valid[part.rows.start : part.rows.stop] if isinstance(part.rows, range) else valid[part.rows]
    )
    return None if picked.all() else picked


def _picked(rows: Rows, at: Ids) -> Ids:
    if isinstance(rows, range):
        return at + np.int32(rows.start) if rows.start else at
    return as_ids(rows)[at]
