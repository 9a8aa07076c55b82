"""A glance at what would come of a probe: some of a batch's keys compared with some of those that it would meet.

No index is needed for it, so that a destination that would be a mistake is found out before one is made for it. It
tells a join that multiplies from one that does not; how much less than one match a row has, it cannot tell.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mediator.eddy.joining import Join
from mediator.eddy.run import Run
from mediator.flow.batch import Batch, Rows
from mediator.state.columns import Keyed
from mediator.state.kernels.codes import count_pairs

_ROWS, _MET = 512, 2_048
_SLOTS = 8_192  # for the keys that are met

Ids = NDArray[np.int32]


class Glance(NamedTuple):
    """Of so many rows and so many that they may meet, how many pairs match."""

    rows: int
    met: int
    pairs: int


def glance(run: Run, join: Join, batch: Batch) -> Glance | None:
    """None where it is not the equality of one column that counts, or there is nothing to compare."""
    if len(join.fields) != 1 or join.checks:
        return None
    (field,), (source,) = join.fields, join.sources
    rows = batch.rows[source.alias]
    assert rows is not None
    near, far = _some(rows, _ROWS), _some(_met(run, join, batch), _MET)
    if not (len(near) and len(far)):
        return None
    left = _keys(run.store(batch, source.alias).column(source.field).keyed(), near)
    right = _keys(run.view(join.alias).stem.store.column(field).keyed(), far)
    pairs = count_pairs(left, right, np.empty(_SLOTS, np.int64), np.zeros(_SLOTS, np.int32))
    return Glance(len(near), len(far), int(pairs))


def _met(run: Run, join: Join, batch: Batch) -> Rows:
    return run.aliases[join.alias].ids(batch.seen[join.alias], batch.since)


def _some(rows: Rows, most: int) -> Ids:
    """These, or so many of them, evenly."""
    if len(rows) <= most:
        return np.asarray(rows, np.int32)
    at = np.arange(most) * len(rows) // most
    return (at + rows.start).astype(np.int32) if isinstance(rows, range) else rows[at]


def _keys(column: Keyed, rows: Ids) -> NDArray[np.int64]:
    """Without those that are NULL, which match nothing."""
    codes = column.codes_of(rows)
    return codes if column.valid is None else codes[column.valid[rows]]
