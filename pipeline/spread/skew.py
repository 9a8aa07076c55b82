"""Values that stand in so many rows that they need cells of their own: by a profile, or in rows that are there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from mediator.binding.holding import Holding
from mediator.catalog.profile import Profile
from mediator.state.stem import SteM
from pipeline.cells.hashing import hashed
from pipeline.cells.hypercube import ROW, Hypercube

SAMPLE = 100_000  # rows of a relation that are looked at
_FEW = 1_000  # rows below which nothing is said
_LEAST, _MOST = (
    0.02,
    8,
)  # part of the rows that a heavy value has at least; how many of them have cells of their own

Sample = Callable[[str], pa.RecordBatch | None]  # some rows of a relation, if there are any
Parts = dict[int, float]  # what part of the rows each value has, by its number


def held(stock: Mapping[str, SteM | Holding]) -> Sample:
    """Rows of each relation that this process has, or that a store has all of."""

    def sample(relation: str) -> pa.RecordBatch | None:
        match stock.get(relation):
            case SteM(store=store):
                return store.rows(range(min(store.n, SAMPLE)))
            case Holding(rows=rows) if rows:
                return rows.slice(0, SAMPLE).combine_chunks().to_batches()[0]
        return None

    return sample


def heavy(cube: Hypercube, sizes: Sequence[float], sample: Sample, profile: Profile) -> dict[int, Parts]:
    """By the dimensions of a cube, the values that would make one cell half as large again as the others."""
    found = {}
    for number, dimension in enumerate(cube.dimensions):
        if dimension.share < 2:
            continue
        parts = _weighed(
            [
                (sizes[alias], _parts(cube, alias, field, sample, profile))
                for alias, field in dimension.fields.items()
                if field != ROW
            ]
        )
        least = max(_LEAST, 0.5 / dimension.share)
        most = sorted(parts, key=parts.__getitem__, reverse=True)[:_MOST]
        found[number] = {value: parts[value] for value in most if parts[value] >= least}
    return found


def _weighed(columns: Sequence[tuple[float, Parts]]) -> Parts:
    """Of all rows together that have the dimension."""
    total, found = sum(size for size, _ in columns) or 1.0, Parts()
    for size, parts in columns:
        for value, part in parts.items():
            found[value] = found.get(value, 0.0) + part * size / total
    return found


def named(cube: Hypercube, dimension: int, number: int, sample: Sample, profile: Profile) -> str:
    """The value that has this number, as text."""
    for alias, field in cube.dimensions[dimension].fields.items():
        rows = sample(cube.block.aliases[alias].relation.name)
        seen = [] if rows is None else [cube.values(alias, field, rows)]
        for values in (*seen, _profiled(cube, alias, field, profile)[0]):
            numbers, there = hashed(values)
            for place in np.flatnonzero((numbers == np.uint64(number)) & there)[:1].tolist():
                return str(values[place].as_py())
    return f"number {number}"


def _parts(cube: Hypercube, alias: int, field: str, sample: Sample, profile: Profile) -> Parts:
    """Of one alias's rows: by what is held, or else by the profile."""
    rows = sample(cube.block.aliases[alias].relation.name)
    if rows is not None and rows.num_rows >= _FEW:
        return counted(cube.values(alias, field, rows))
    values, parts = _profiled(cube, alias, field, profile)
    return dict(zip(hashed(values)[0].tolist(), parts, strict=True))


def _profiled(cube: Hypercube, alias: int, field: str, profile: Profile) -> tuple[pa.Array, list[float]]:
    """The heavy values of a profile, and what part of the rows each stands in."""
    relation = cube.block.aliases[alias].relation
    known = profile.relations.get(relation.name)
    column = known.columns.get(field) if known is not None else None
    if known is None or column is None or not column.heavy or known.rows < _FEW:
        return pa.array([], pa.string()), []
    texts, rows_of = zip(*column.heavy, strict=True)
    try:
        values = pa.array(texts, pa.string()).cast(relation.schema.field(field).type)
    except pa.ArrowInvalid:  # it was of another type when the profile was made
        return pa.array([], pa.string()), []
    return values, [rows / known.rows for rows in rows_of]


def counted(values: pa.Array) -> Parts:
    """Those that stand in more than a few of the rows."""
    numbers, there = hashed(values)
    distinct, counts = np.unique(numbers[there], return_counts=True)
    some = np.flatnonzero(counts >= _LEAST * max(1, len(numbers)))
    return {int(distinct[n]): float(counts[n]) / len(numbers) for n in some}
