"""What a method promises of the rows of one lookup, held against those that came."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from mediator.access.method import Method
from mediator.catalog.bindfields import field_of, holds, shown
from mediator.catalog.model import BindSet
from mediator.catalog.wrapper import Binding
from mediator.errors import CutShort, NotAsDeclared


def check_exact(method: Method, bind_set: BindSet, bindings: Sequence[Binding], rows: pa.RecordBatch) -> None:
    """Raises `NotAsDeclared` for a row that was not asked for, where none is to come.

    It is often the only sign that a site took no notice of a parameter: then what it sent is not all of what was asked.
    """
    if not method.declared.exact or not bind_set or not rows.num_rows:
        return
    asked = np.zeros(rows.num_rows, np.bool_)
    for binding in bindings:
        met = np.ones(rows.num_rows, np.bool_)
        for name, value in zip(bind_set, binding, strict=True):
            met &= _met(rows, name, value)
        asked |= met
    if not asked.all():
        row = int(np.flatnonzero(~asked)[0])
        raise NotAsDeclared(_stray(bind_set, bindings, rows.slice(row, 1)))


def cut_short(method: Method, bind_set: BindSet, rows: int) -> CutShort | None:
    """The error that so many rows of one lookup are, if there may be more that did not come."""
    most = method.declared.at_most
    if most is None or rows < most:
        return None
    others = [name for name in method.declared.optional if name not in bind_set]
    more = f": {' or '.join(map(shown, others))} in the query would ask for fewer" if others else ""
    return CutShort(f"{rows:,} rows came, and at_most says that no more than {most:,} do{more}")


def _met(rows: pa.RecordBatch, name: str, value: object) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    column = rows.column(field_of(name))
    met = holds(name, column, pa.scalar(value, column.type)).fill_null(False)
    flags: np.ndarray[tuple[int], np.dtype[np.bool_]] = met.to_numpy(zero_copy_only=False)
    return flags


def _stray(bind_set: BindSet, bindings: Sequence[Binding], row: pa.RecordBatch) -> str:
    """`a row has isbn = '2' where isbn = '1' was asked for`."""
    pairs = zip(bind_set, bindings[0], strict=True)
    name, value = next((n, v) for n, v in pairs if len(bindings) > 1 or not _met(row, n, v).all())
    found = row.column(field_of(name))[0].as_py()
    wanted = shown(name, repr(value)) if len(bindings) == 1 else f"one of {len(bindings)} others"
    return f"a row has {field_of(name)} = {found!r} where {wanted} was asked for, and none but those may come (exact)"
