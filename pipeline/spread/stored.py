"""Rows of a stage in Parquet files, as cells and stages above them write them and take them back.

Parquet has no type for an interval: it lies there as the bytes that it is.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pt

_BYTES = pa.binary(16)  # months, days and nanoseconds


def put(target: Path, rows: pa.Table) -> None:
    pq.write_table(_viewed(rows, _stored(rows.schema)), target)


def taken(file: pq.ParquetFile, part: int, schema: pa.Schema) -> pa.Table:
    """The rows of one row group, in the columns and types of the stage. The file may have more columns."""
    found = file.read_row_group(part, columns=schema.names or None)
    found = found.select(schema.names).cast(_stored(schema))
    return _viewed(found, schema)


def without_type(schema: pa.Schema) -> list[str]:
    """The columns that Parquet has no type for, as somebody else would read it."""
    return [
        f"{field.name} ({field.type})"
        for field, stored in zip(schema, _stored(schema), strict=True)
        if field.type != stored.type
    ]


def _stored(schema: pa.Schema) -> pa.Schema:
    return pa.schema([_without_intervals(field) for field in schema])


def _without_intervals(field: pa.Field) -> pa.Field:
    type_ = field.type
    if pt.is_interval(type_):
        return field.with_type(_BYTES)
    if pt.is_struct(type_):
        return field.with_type(pa.struct([_without_intervals(part) for part in type_]))
    if pt.is_map(type_):
        key, item = _without_intervals(type_.key_field), _without_intervals(type_.item_field)
        return field.with_type(pa.map_(key, item))
    if pt.is_fixed_size_list(type_):
        return field.with_type(pa.list_(_without_intervals(type_.value_field), type_.list_size))
    if pt.is_list(type_):
        return field.with_type(pa.list_(_without_intervals(type_.value_field)))
    return field


def _viewed(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The same bytes, in these types."""
    columns = [
        column
        if column.type == field.type
        else pa.chunked_array([chunk.view(field.type) for chunk in column.chunks], field.type)
        for column, field in zip(rows.columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=schema)
