"""From rows as code yields them to Arrow columns of the declared types, or to the sentence that says why not."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from mediator.catalog.model import Field
from mediator.catalog.wrapper import Request
from mediator.errors import Mistyped, SchemaChanged, Unreadable
from wrappers.columns import LONGEST, described, missing
from wrappers.record_reader import MOST_VALUES

_MISSING = object()


@dataclass(frozen=True, slots=True)
class Gathered:
    """The rows of one reply as columns, and the requests that were among them."""

    columns: tuple[pa.Array, ...]
    count: int
    then: tuple[Request, ...] = ()


def gathered(
    relation: str, fields: Sequence[Field], defaults: Mapping[str, object], found: Iterable[object]
) -> Gathered:
    """Raises `SchemaChanged` for a row that lacks a field, or has a value of another type in it."""
    then: list[Request] = []
    rows: list[tuple[object, ...]] = []
    most = MOST_VALUES // max(1, len(fields))
    for item in found:
        if isinstance(item, Request):
            then.append(item)
            continue
        if len(rows) == most:
            raise Unreadable(f"{relation}: more than {most:,} rows of one reply: ask for smaller pages")
        rows.append(_values(relation, fields, defaults, item, len(rows) + 1))
    values = list(zip(*rows, strict=True)) or [()] * len(fields)
    columns = tuple(_column(relation, f, v) for f, v in zip(fields, values, strict=True))
    return Gathered(columns, len(rows), tuple(then))


def from_table(relation: str, fields: Sequence[Field], table: pa.Table | pa.RecordBatch) -> Gathered:
    """Columns that are Arrow's already, by their names."""
    columns = []
    for field in fields:
        if (times := table.schema.names.count(field.name)) != 1:
            if times:
                raise SchemaChanged(f"{relation}.{field.name}: {times} columns have this name")
            raise missing(relation, field, table.schema.names)
        column = table.column(field.name)
        try:
            cast = column.cast(field.type)
        except pa.ArrowException as error:
            raise SchemaChanged(
                f"{relation}.{field.name}: expected {field.type}, found {column.type}: {str(error)[:100]}"
            ) from None
        columns.append(cast.combine_chunks() if isinstance(cast, pa.ChunkedArray) else cast)
    return Gathered(tuple(columns), table.num_rows)


def _values(
    relation: str, fields: Sequence[Field], defaults: Mapping[str, object], row: object, number: int
) -> tuple[object, ...]:
    """The values of one row, which is a mapping, an object with attributes, or a tuple in the fields' order."""
    if isinstance(row, Mapping):
        values = [row.get(f.name, _MISSING) for f in fields]
    elif isinstance(row, tuple | list) and not hasattr(row, "_fields"):
        if len(row) != len(fields):
            names = ", ".join(f.name for f in fields)
            raise SchemaChanged(
                f"{relation}: row {number} has {len(row)} values, where the fields are {len(fields)}: {names}"
            )
        return tuple(row)
    elif hasattr(row, "_fields") or hasattr(row, "__dict__") or hasattr(row, "__dataclass_fields__"):
        values = [getattr(row, f.name, _MISSING) for f in fields]
    else:
        raise SchemaChanged(
            f"{relation}: row {number} is {described(row)}: yield a dict, a tuple, a dataclass or a row of the class"
        )
    for position, value in enumerate(values):
        if value is _MISSING:
            field = fields[position]
            if field.name not in defaults:
                raise missing(f"{relation}: row {number}: {relation}", field, _names(row))
            values[position] = defaults[field.name]
    return tuple(values)


def _names(row: object) -> Iterable[object]:
    if isinstance(row, Mapping):
        return row
    return getattr(row, "_fields", None) or getattr(row, "__dataclass_fields__", None) or vars(row)


def _column(relation: str, field: Field, values: Sequence[object]) -> pa.Array:
    taken = [None if value is None else _taken(field.type, value) for value in values]
    if _MISSING in taken:
        number = taken.index(_MISSING)
        raise _mistyped(relation, field, number, values[number])
    try:
        if pa.types.is_temporal(field.type):
            return pa.array(taken, pa.string()).cast(field.type)
        return pa.array(taken, field.type)
    except (pa.ArrowException, OverflowError, UnicodeError):
        number = _culprit(field.type, taken)
        raise _mistyped(relation, field, number, values[number]) from None


def _taken(type_: pa.DataType, value: Any) -> object:
    """The value as Arrow takes it; `_MISSING` for one of another type, as a number is where a text is declared."""
    if pa.types.is_boolean(type_):
        return value if isinstance(value, bool) else _MISSING
    if pa.types.is_integer(type_):
        return int(value) if isinstance(value, int) and not isinstance(value, bool) else _MISSING
    if pa.types.is_floating(type_):
        fits = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
        return float(value) if fits and _is_exact(value) and math.isfinite(value) else _MISSING
    if pa.types.is_date(type_):
        if isinstance(value, date) and not isinstance(value, datetime):
            return value.isoformat()
        return str(value) if isinstance(value, str) else _MISSING
    if pa.types.is_timestamp(type_):
        return _moment(value) if isinstance(value, datetime) else _text(value)
    return _text(value)


def _is_exact(value: int | float | Decimal) -> bool:
    return not isinstance(value, int) or abs(value) <= 1 << 53


def _moment(value: datetime) -> str:
    """What has a time zone is told in UTC, like everything that has none."""
    return (value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value).isoformat()


def _text(value: object) -> object:
    """A plain text: some parsers give texts that keep their whole page in memory."""
    return str(value) if isinstance(value, str) and len(value) <= LONGEST else _MISSING


def _mistyped(relation: str, field: Field, number: int, value: object) -> SchemaChanged:
    return Mistyped(
        f"{relation}.{field.name}: row {number + 1}: expected {field.type}, found {described(value)}"
    )


def _culprit(type_: pa.DataType, values: Sequence[object]) -> int:
    """The position of the first value that does not fit."""
    for number, value in enumerate(values):
        try:
            pa.array([value], pa.string() if pa.types.is_temporal(type_) else type_).cast(type_)
        except (pa.ArrowException, OverflowError, UnicodeError):
            return number
    return 0
