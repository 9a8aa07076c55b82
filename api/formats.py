"""Answers as bytes, batch by batch: what every face that sends answers on has in common. No I/O.

An encoder is started once, given every batch, and ended once; what it returns, put together, is a whole
document at the end, and as much of one as a format allows at any time before.
"""

from __future__ import annotations

import io
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from api.cells import harmless, json_of, json_values, texts
from api.exits import Mistake
from api.options import Format
from api.table import Table

# Rows of a parquet row group: readers skip and parallelize by these.
_ROW_GROUP = 1 << 16


class Encoder(Protocol):
    """Turns the answers of one query into one document."""

    def start(self) -> bytes: ...

    def rows(self, batch: pa.RecordBatch) -> bytes: ...

    def end(self) -> bytes: ...


def encoder(format_: Format, schema: pa.Schema, *, width: int | None = None, colour: bool = False) -> Encoder:
    """An encoder for answers of this schema. `width` and `colour` are the terminal's, where it is for one."""
    plain = _encoder(format_, schema, width, colour)
    return plain if width is None or format_ is Format.table else Harmless(plain)


def _encoder(format_: Format, schema: pa.Schema, width: int | None, colour: bool) -> Encoder:
    match format_:
        case Format.table:
            return Table(schema, width, colour)
        case Format.csv:
            return Csv(schema)
        case Format.ndjson:
            return Ndjson(schema)
        case Format.json:
            return Json(schema)
        case Format.arrow:
            return Arrow(schema)
        case Format.parquet:
            return Parquet(schema)


class Harmless:
    """Text in another format, for a terminal: a line is a line, and nothing in it steers."""

    def __init__(self, inner: Encoder) -> None:
        self._inner = inner

    def start(self) -> bytes:
        return self._tamed(self._inner.start())

    def rows(self, batch: pa.RecordBatch) -> bytes:
        return self._tamed(self._inner.rows(batch))

    def end(self) -> bytes:
        return self._tamed(self._inner.end())

    def _tamed(self, text: bytes) -> bytes:
        return "\n".join(map(harmless, text.decode().split("\n"))).encode()


class Csv:
    """A header, then a record per row. Quotes only where needed: NULL is nothing, an empty text is `""`."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema

    def start(self) -> bytes:
        return self._lines([pa.array([name]) for name in self._schema.names])

    def rows(self, batch: pa.RecordBatch) -> bytes:
        return self._lines([texts(column) for column in batch.columns])

    def end(self) -> bytes:
        return b""

    def _lines(self, columns: list[pa.Array]) -> bytes:
        cells = [pc.fill_null(_quoted(c), "") for c in columns]
        lines = pc.binary_join_element_wise(*cells, ",")
        return "".join(f"{line}\n" for line in lines.to_pylist()).encode()


def _quoted(cells: pa.Array) -> pa.Array:
    needed = pc.or_(pc.match_substring_regex(cells, '[",\r\n]'), pc.equal(cells, ""))
    within = pc.replace_substring(cells, '"', '""')
    return pc.if_else(needed, pc.binary_join_element_wise('"', within, '"', ""), cells)


class Ndjson:
    """An object per line."""

    def __init__(self, schema: pa.Schema) -> None:
        self._names = schema.names

    def start(self) -> bytes:
        return b""

    def rows(self, batch: pa.RecordBatch) -> bytes:
        return b"".join(json_of(row) + b"\n" for row in self.objects(batch))

    def end(self) -> bytes:
        return b""

    def objects(self, batch: pa.RecordBatch) -> list[dict[str, Any]]:
        columns = [json_values(column) for column in batch.columns]
        return [dict(zip(self._names, row, strict=True)) for row in zip(*columns, strict=True)]


class Json:
    """One array of objects, a line for each; whole JSON once it is ended, wherever that was."""

    def __init__(self, schema: pa.Schema) -> None:
        self._lines = Ndjson(schema)
        self._before = b"\n"

    def start(self) -> bytes:
        return b"["

    def rows(self, batch: pa.RecordBatch) -> bytes:
        parts = []
        for row in self._lines.objects(batch):
            parts += [self._before, json_of(row)]
            self._before = b",\n"
        return b"".join(parts)

    def end(self) -> bytes:
        return b"\n]\n"


class Arrow:
    """An Arrow IPC stream."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._sink = _Sink()

    def start(self) -> bytes:
        self._writer = pa.ipc.new_stream(self._sink, self._schema)
        return self._sink.taken()

    def rows(self, batch: pa.RecordBatch) -> bytes:
        self._writer.write_batch(batch)
        return self._sink.taken()

    def end(self) -> bytes:
        self._writer.close()
        return self._sink.taken()


class Parquet:
    """A Parquet file; small batches share a row group. It can be read once it is ended."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._sink = _Sink()
        self._waiting: list[pa.RecordBatch] = []

    def start(self) -> bytes:
        """Raises `Mistake` where there are values that Parquet has no type for."""
        if without := unlike_parquet(self._schema):
            raise Mistake(
                f"Parquet has no type for {', '.join(without)}: cast it in the query, as with ::VARCHAR"
            )
        self._writer = pq.ParquetWriter(self._sink, self._schema)
        return self._sink.taken()

    def rows(self, batch: pa.RecordBatch) -> bytes:
        self._waiting.append(batch)
        if sum(b.num_rows for b in self._waiting) >= _ROW_GROUP:
            self._write()
        return self._sink.taken()

    def end(self) -> bytes:
        self._write()
        self._writer.close()
        return self._sink.taken()

    def _write(self) -> None:
        if self._waiting:
            self._writer.write_table(pa.Table.from_batches(self._waiting, self._schema))
            self._waiting.clear()


def unlike_parquet(schema: pa.Schema) -> list[str]:
    """The columns, and their types, that Parquet has no place for."""
    return [f"{field.name} ({field.type})" for field in schema if not _fits_parquet(field)]


def _fits_parquet(field: pa.Field) -> bool:
    try:
        pq.write_table(pa.schema([field]).empty_table(), io.BytesIO())
    except pa.ArrowException:
        return False
    return True


class _Sink(io.RawIOBase):
    """A file that is emptied as it is written; it knows how far it has come, as a Parquet footer must."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: list[bytes] = []
        self._at = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._parts.append(bytes(data))
        self._at += len(self._parts[-1])
        return len(self._parts[-1])

    def tell(self) -> int:
        return self._at

    def taken(self) -> bytes:
        taken = b"".join(self._parts)
        self._parts.clear()
        return taken
