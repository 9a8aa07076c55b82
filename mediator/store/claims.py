"""Which stored rows entries vouch for: each for those of its binding that its own lookup brought, and no others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mediator.catalog.bindfields import EQUAL, field_of, holds, operator_of, subschema
from mediator.catalog.model import BindSet
from mediator.store.distinct import brought
from mediator.store.records import Covered, Declared

_ROW, _ENTRY = "#row", "#entry"

Places = NDArray[np.int64]


def claimed(declared: Declared, rows: pa.Table, covered: Sequence[Covered]) -> pa.Table:
    """The distinct rows for which any of these entries vouches, in their order."""
    if not declared.repeats:
        return rows
    row, entry = _met(declared, rows, covered)
    keep = np.zeros(len(rows), np.bool_)
    keep[row[_own(rows, covered, row, entry)]] = True
    return rows.filter(pa.array(keep))


def newest(declared: Declared, rows: pa.Table, covered: Sequence[Covered]) -> pa.Table:
    """The distinct rows for which that of these entries vouches that was asked last, of all whose binding they meet."""
    if not declared.repeats:
        return rows
    row, entry = _met(declared, rows, covered)
    at = np.array([c.at for c in covered], np.float64)[entry]
    last = np.full(len(rows), -np.inf)
    np.maximum.at(last, row, at)
    keep = np.zeros(len(rows), np.bool_)
    keep[row[_own(rows, covered, row, entry) & (at == last[row])]] = True
    return rows.filter(pa.array(keep))


def _own(rows: pa.Table, covered: Sequence[Covered], row: Places, entry: Places) -> NDArray[np.bool_]:
    """Of which of these pairs the row was brought by the entry's lookup."""
    of_entry = np.array([c.lookup for c in covered], np.int64)
    named = np.unique(of_entry[of_entry > 0])
    at, lookups = brought(rows)
    some = np.isin(lookups, named)
    there = at[some] * len(named) + np.searchsorted(named, lookups[some])
    pairs = row * len(named) + np.searchsorted(named, of_entry[entry])
    return np.isin(pairs, there) & (of_entry[entry] > 0)


def _met(declared: Declared, rows: pa.Table, covered: Sequence[Covered]) -> tuple[Places, Places]:
    """Every row with every entry whose binding it meets, as places among the rows and among the entries."""
    found: list[tuple[Places, Places]] = []
    places = sorted(range(len(covered)), key=lambda n: covered[n].bind_set)
    for bind_set, some in groupby(places, key=lambda n: covered[n].bind_set):
        if bind_set:
            found += _matching(declared, rows, bind_set, {n: covered[n] for n in some})
        else:
            found += [(np.arange(len(rows)), np.full(len(rows), n)) for n in some]
    if not found:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    row, entry = zip(*found, strict=True)
    return np.concatenate(row), np.concatenate(entry)


def _matching(
    declared: Declared, rows: pa.Table, bind_set: BindSet, covered: dict[int, Covered]
) -> Iterator[tuple[Places, Places]]:
    values = zip(*(c.binding for c in covered.values()), strict=True)
    schema = subschema(declared.schema, bind_set)
    arrays = [pa.array(list(v), field.type) for field, v in zip(schema, values, strict=True)]
    asked = pa.table([*arrays, pa.array(list(covered), pa.int64())], names=[*bind_set, _ENTRY])
    equal = [name for name in bind_set if operator_of(name) == EQUAL]
    bounds = [name for name in bind_set if name not in equal]
    read = list(dict.fromkeys([*equal, *map(field_of, bounds)]))
    given = rows.select(read).append_column(_ROW, pa.array(np.arange(len(rows))))
    if equal:
        pairs = [given.join(asked, keys=equal, join_type="inner", use_threads=False)]
    else:
        pairs = [_beside(given, entry) for entry in asked.to_batches(max_chunksize=1)]
    for part in pairs:
        keep = _within(part, bounds)
        yield part.column(_ROW).to_numpy()[keep], part.column(_ENTRY).to_numpy()[keep]


def _beside(rows: pa.Table, entry: pa.RecordBatch) -> pa.Table:
    """Every row with the bounds of one entry."""
    for name, column in zip(entry.schema.names, entry.columns, strict=True):
        rows = rows.append_column(name, pa.repeat(column[0], len(rows)))
    return rows


def _within(pairs: pa.Table, bounds: Sequence[str]) -> NDArray[np.bool_]:
    """Which rows are within their entry's bounds."""
    keep = np.ones(len(pairs), np.bool_)
    for name in bounds:
        value, bound = (pairs.column(n).combine_chunks() for n in (field_of(name), name))
        keep &= holds(name, value, bound).fill_null(False).to_numpy(zero_copy_only=False)
    return keep
