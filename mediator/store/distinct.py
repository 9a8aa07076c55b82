"""Equal rows are one row, which was brought by all the lookups that brought any of them."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mediator.store.records import LISTED, LOOKUPS

Numbers = NDArray[np.int64]


def distinct(rows: pa.Table, only: Collection[int] | None = None, but: Collection[int] = ()) -> pa.Table:
    """Each row once, with the lookups that brought it, or `only` with those of them; without any it is left out.

    A NULL equals a NULL here.
    """
    names = [n for n in rows.column_names if n != LOOKUPS]
    at, lookups = brought(rows)
    if only is not None or but:
        chosen = np.isin(lookups, list(but), invert=True) if only is None else np.isin(lookups, list(only))
        at, lookups = at[chosen], lookups[chosen]
    pairs = rows.select(names).take(pa.array(at)).append_column(LOOKUPS, pa.array(lookups, pa.int64()))
    try:
        found = pairs.group_by(names, use_threads=False).aggregate([(LOOKUPS, "distinct")])
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        return _by_text(pairs, names)
    return found.rename_columns(
        [LOOKUPS if n == f"{LOOKUPS}_distinct" else n for n in found.column_names]
    ).select(rows.column_names)


def brought(rows: pa.Table) -> tuple[Numbers, Numbers]:
    """The place of each row, in ascending order, as often as it has lookups that brought it; and those."""
    lookups = rows.column(LOOKUPS).combine_chunks()
    return pc.list_parent_indices(lookups).to_numpy().astype(np.int64), pc.list_flatten(lookups).to_numpy()


def _by_text(pairs: pa.Table, names: list[str]) -> pa.Table:
    """For types that Arrow does not group by."""
    first: dict[str, int] = {}
    lookups: dict[int, set[int]] = {}
    columns = [pairs.column(n).to_pylist() for n in names]
    for number, (row, lookup) in enumerate(
        zip(zip(*columns, strict=True), pairs.column(LOOKUPS).to_pylist(), strict=True)
    ):
        lookups.setdefault(first.setdefault(repr(row), number), set()).add(lookup)
    listed = pa.array([sorted(some) for some in lookups.values()], LISTED)
    return pairs.select(names).take(pa.array(list(lookups), pa.int64())).append_column(LOOKUPS, listed)
