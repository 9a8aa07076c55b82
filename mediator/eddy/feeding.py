"""What a batch's rows would give a provider to ask with: as keys, for coverage, and as plain values, for the site."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.types as pt
from numpy.typing import NDArray

from mediator.binding.model import Provider
from mediator.catalog.bindfields import field_of
from mediator.eddy.run import Run
from mediator.errors import MediatorError
from mediator.flow.batch import Batch
from mediator.flow.events import Binding
from mediator.flow.plain import plain
from mediator.state.columns import Keyed, column_of
from mediator.state.keys import Keys, Part, keys_of

Mask = NDArray[np.bool_]


def fed(run: Run, batch: Batch, provider: Provider) -> Keys:
    """The values that the batch's rows would bind."""
    schema = run.block.aliases[provider.alias].relation.schema
    parts = []
    for given in provider.inputs:
        kind = schema.field(field_of(given.field)).type
        if given.column is None:
            parts.append(Part(_constant(given.constant, kind), np.zeros(len(batch), np.int32)))
        else:
            rows = batch.rows[given.column.alias]
            assert rows is not None
            store = run.store(batch, given.column.alias)
            within = _within(kind, run.block.type_of(given.column))
            parts.append(Part(store.column(given.column.field).keyed(), rows, within))
    return keys_of(parts)


def _within(kind: pa.DataType, given: pa.DataType) -> tuple[int, int] | None:
    """The whole numbers that a bind-field has room for, where some of those that it is given are none of them: no row
    has such a value, and nothing is to be asked for."""
    if kind == given or not (pt.is_integer(kind) and pt.is_integer(given)):
        return None
    own, others = np.iinfo(kind.to_pandas_dtype()), np.iinfo(given.to_pandas_dtype())
    return (own.min, own.max) if others.min < own.min or others.max > own.max else None


def bindings_of(run: Run, batch: Batch, provider: Provider) -> list[Binding]:
    """The batch's distinct bindings as plain values of the fields' own types."""
    alias = run.block.aliases[provider.alias]
    schema = alias.relation.schema
    columns = []
    for given in provider.inputs:
        if given.column is None:
            columns.append([given.constant] * len(batch))
        else:
            values = run.gather(batch, given.column).cast(schema.field(given.field).type)
            columns.append(_plain(values, f"{alias.relation.name}.{given.field}"))
    return list(dict.fromkeys(zip(*columns, strict=True)))


def _plain(values: pa.Array, name: str) -> list[object]:
    """Python's own values, which is what requests are written from."""
    try:
        return plain(values)
    except (OverflowError, ValueError):
        told = next(v for v in values if _is_beyond(v)).cast(pa.string())
        message = f"{name} cannot be asked with {told}: a date in a request is of the years 1 to 9999"
        raise MediatorError(message) from None


def _is_beyond(value: pa.Scalar) -> bool:
    try:
        value.as_py()
    except (OverflowError, ValueError):
        return True
    return False


def constants(provider: Provider) -> Binding:
    """The one binding of a provider that needs no row's help."""
    return tuple(given.constant for given in provider.inputs)


def _constant(value: object, type_: pa.DataType) -> Keyed:
    column = column_of(type_)
    column.append(pa.array([value], type_))
    return column.keyed()


def firsts(keys: Keys, wanted: Mask) -> NDArray[np.int64]:
    """A position for each distinct code among the wanted; more where codes do not tell all apart."""
    positions = np.flatnonzero(wanted)
    if not keys.exact:
        return positions
    _, first = np.unique(keys.codes()[positions], return_index=True)
    return positions[np.sort(first)]
