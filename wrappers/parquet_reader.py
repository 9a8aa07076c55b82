"""Rows from Parquet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel, ConfigDict

from mediator.catalog.model import Field
from mediator.catalog.wrapper import Reply
from mediator.errors import SchemaChanged, Unreadable
from wrappers.columns import ABSENT, missing
from wrappers.parsed import Parsed

_LARGEST = 1 << 30  # bytes of the columns asked for, unpacked
_MOST = 50_000_000  # values of them: of a column that repeats itself there may be a billion in a few bytes
_DAMAGED = (pa.ArrowException, OSError, ValueError)


class ParquetReader(BaseModel):
    """A whole file; only the columns asked for are unpacked. `fields` gives the column of a field where it has
    another name. Numbers may be narrower than declared, texts may be stored as a dictionary."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["parquet"] = "parquet"
    fields: dict[str, str] = {}
    optional: tuple[str, ...] = ()

    def parse(self, relation: str, fields: Sequence[Field], reply: Reply) -> Parsed:
        with _opened(relation, reply) as file:
            found = file.schema_arrow
            wanted = {f.name: self.fields.get(f.name, f.name) for f in fields}
            for field in fields:
                if found.get_field_index(wanted[field.name]) < 0 and field.name not in self.optional:
                    raise missing(relation, field, found.names)
            there = [f for f in fields if wanted[f.name] in found.names]
            for field in there:
                _check_type(relation, field, found.field(wanted[field.name]).type)
            count = file.metadata.num_rows
            table = _read(relation, file, list(dict.fromkeys(wanted[f.name] for f in there)))
        columns = [
            _cast(relation, f, table.column(wanted[f.name])) if f in there else pa.nulls(count, f.type)
            for f in fields
        ]
        return Parsed(tuple(columns), count, lambda path: ABSENT)

    def look(self, reply: Reply, path: str) -> object:
        return ABSENT


def _opened(relation: str, reply: Reply) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(pa.BufferReader(reply.body))
    except _DAMAGED as error:
        raise Unreadable(f"{relation}: not Parquet: {_said(error)}") from None


def _read(relation: str, file: pq.ParquetFile, names: list[str]) -> pa.Table:
    _check_size(relation, file.metadata, names)
    try:
        return file.read(columns=names, use_threads=False)
    except _DAMAGED as error:
        raise Unreadable(f"{relation}: Parquet, but damaged: {_said(error)}") from None


def _check_size(relation: str, metadata: pq.FileMetaData, names: Sequence[str]) -> None:
    """What a file says that it unpacks to; it is believed only when that is little."""
    groups = [metadata.row_group(n) for n in range(metadata.num_row_groups)]
    chunks = [group.column(n) for group in groups for n in range(group.num_columns)]
    size = sum(chunk.total_uncompressed_size for chunk in chunks if chunk.path_in_schema in names)
    values = max(metadata.num_rows, sum(group.num_rows for group in groups)) * len(names)
    if size > _LARGEST or values > _MOST:
        raise Unreadable(
            f"{relation}: {values:,} values in {size:,} bytes unpacked, where {_MOST:,} in {_LARGEST:,} are the most"
        )


def _check_type(relation: str, field: Field, found: pa.DataType) -> None:
    if not _alike(found.value_type if pa.types.is_dictionary(found) else found, field.type):
        raise SchemaChanged(f"{relation}.{field.name}: expected {field.type}, found {found}")


def _alike(found: pa.DataType, declared: pa.DataType) -> bool:
    """Whether values of the one are values of the other: a number is no text here, and no text a number."""
    t = pa.types
    if t.is_null(found):
        return True
    if t.is_boolean(declared):
        return bool(t.is_boolean(found))
    if t.is_integer(declared):
        return bool(t.is_integer(found))
    if t.is_floating(declared):
        return bool(t.is_floating(found) or t.is_integer(found) or t.is_decimal(found))
    if t.is_date(declared):
        return bool(t.is_date(found))
    if t.is_timestamp(declared):
        return bool(t.is_timestamp(found))
    return bool(t.is_string(found) or t.is_large_string(found))


def _cast(relation: str, field: Field, column: pa.ChunkedArray) -> pa.Array:
    try:
        array = column.cast(field.type).combine_chunks()
    except pa.ArrowInvalid as error:
        raise SchemaChanged(
            f"{relation}.{field.name}: expected {field.type}, found {column.type}: {_said(error)}"
        ) from None
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def _said(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
