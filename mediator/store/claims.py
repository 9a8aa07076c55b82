"""Which stored rows an entry vouches for: those of its binding that were sent after it was asked."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import numpy as np
import pyarrow as pa

from mediator.catalog.model import BindSet
from mediator.store.records import SENT, Covered, Declared

_ROW, _AT = "#row", "#at"


def claimed(declared: Declared, rows: pa.Table, covered: Sequence[Covered]) -> pa.Table:
    """The rows that these entries vouch for, in their order."""
    sent = rows.column(SENT).to_numpy()
    keep = np.zeros(len(rows), np.bool_)
    for bind_set, some in groupby(sorted(covered, key=_by_bind_set), key=_by_bind_set):
        if not bind_set:
            keep |= (sent >= min(c.at for c in some)) if declared.repeats else True
        else:
            keep[_matching(declared, rows, bind_set, list(some))] = True
    return rows.filter(pa.array(keep))


def _matching(
    declared: Declared, rows: pa.Table, bind_set: BindSet, covered: Sequence[Covered]
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    values = zip(*(c.binding for c in covered), strict=True)
    arrays = [pa.array(list(v), declared.schema.field(f).type) for f, v in zip(bind_set, values, strict=True)]
    asked = pa.table([*arrays, pa.array([c.at for c in covered], pa.float64())], names=[*bind_set, _AT])
    given = rows.select([*bind_set, SENT]).append_column(_ROW, pa.array(np.arange(len(rows))))
    joined = given.join(asked, keys=list(bind_set), join_type="inner", use_threads=False)
    fresh = joined.column(SENT).to_numpy() >= joined.column(_AT).to_numpy()
    found: np.ndarray[tuple[int], np.dtype[np.int64]] = joined.column(_ROW).to_numpy()[fresh]
    return found


def _by_bind_set(covered: Covered) -> BindSet:
    return covered.bind_set
