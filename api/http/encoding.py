"""What is told, as bytes of each format. No I/O: a stream gives the entries, and sends what comes back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Literal, Protocol

import pyarrow as pa

from api.cells import json_of, json_values
from api.formats import Csv, Parquet, unlike_parquet
from api.http.journal import Entry, batch_of
from api.listing import sql_name

Shape = Literal["objects", "arrays"]

_SLICE = 512  # rows that are encoded as text at once, so that others get a turn in between
_SHOWN = 1_000  # rows of a provisional answer
END = "mediator.end"


class Encoder(Protocol):
    """Turns what one reader is told into bytes. `moments` says whether it has a place for what is of the moment."""

    media_type: str
    moments: bool

    def start(self, said: Mapping[str, Any]) -> bytes:
        """Before all else; `said` is the `start` record."""
        ...

    def entry(self, entry: Entry, skip: int) -> Iterator[bytes]:
        """An entry, less its first rows; in pieces that take little time each."""
        ...

    def moment(self, kind: str, said: Mapping[str, Any]) -> bytes:
        """What is of the moment: it has no id, and is not told again."""
        ...

    def provisional(self, answer: pa.Table) -> Mapping[str, Any]:
        """An answer as it stands, as a `snapshot` record."""
        ...

    def beat(self) -> bytes:
        """A sign of life, where there is nothing else to say."""
        ...

    def end(self, said: Mapping[str, Any]) -> bytes:
        """The last bytes; `said` is the `end` record."""
        ...


class _Records(ABC):
    """Entries as JSON objects, each with the id after which a reader goes on."""

    moments = True

    def __init__(self, schema: pa.Schema, shape: Shape) -> None:
        self._schema = schema
        self._shape = shape

    def start(self, said: Mapping[str, Any]) -> bytes:
        return self._framed("start", said, None)

    def entry(self, entry: Entry, skip: int) -> Iterator[bytes]:
        if entry.payload is None:
            yield self._framed(entry.kind, entry.body, f"{entry.number}")
            return
        batch = batch_of(entry, self._schema)
        for start in range(skip, batch.num_rows, _SLICE):
            stop = min(start + _SLICE, batch.num_rows)
            done = stop == batch.num_rows
            said = {
                "rows": rows_of(batch.slice(start, _SLICE), self._shape),
                **_part(entry.body, start, stop),
            }
            yield self._framed(entry.kind, said, f"{entry.number}" if done else f"{entry.number - 1}.{stop}")

    def moment(self, kind: str, said: Mapping[str, Any]) -> bytes:
        return self._framed(kind, said, None)

    def provisional(self, answer: pa.Table) -> Mapping[str, Any]:
        shown = answer.slice(0, _SHOWN)
        rows = [row for batch in shown.to_batches() for row in rows_of(batch, self._shape)]
        return {"rows": rows, "of": answer.num_rows}

    def beat(self) -> bytes:
        return b""

    def end(self, said: Mapping[str, Any]) -> bytes:
        return b""

    @abstractmethod
    def _framed(self, kind: str, said: Mapping[str, Any], id_: str | None) -> bytes:
        """One record."""


class Ndjson(_Records):
    media_type = "application/x-ndjson"

    def _framed(self, kind: str, said: Mapping[str, Any], id_: str | None) -> bytes:
        numbered = {} if id_ is None else {"id": id_}
        return json_of({"type": kind, **numbered, **said}) + b"\n"


class Sse(_Records):
    media_type = "text/event-stream"

    def beat(self) -> bytes:
        return b": still here\n\n"

    def _framed(self, kind: str, said: Mapping[str, Any], id_: str | None) -> bytes:
        numbered = b"" if id_ is None else b"id: %s\n" % id_.encode()
        return b"event: %s\n%sdata: %s\n\n" % (kind.encode(), numbered, json_of({"type": kind, **said}))


class _RowsOnly:
    """Formats that have a place for answers and for nothing else."""

    moments = False

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema

    def moment(self, kind: str, said: Mapping[str, Any]) -> bytes:
        return b""

    def provisional(self, answer: pa.Table) -> Mapping[str, Any]:
        return {}

    def beat(self) -> bytes:
        return b""


class Arrow(_RowsOnly):
    """The journal's own messages, as they are."""

    media_type = "application/vnd.apache.arrow.stream"

    def start(self, said: Mapping[str, Any]) -> bytes:
        return self._schema.serialize().to_pybytes()  # type: ignore[no-any-return]

    def entry(self, entry: Entry, skip: int) -> Iterator[bytes]:
        if entry.kind != "rows":
            return
        if skip:
            yield batch_of(entry, self._schema).slice(skip).serialize().to_pybytes()
        else:
            assert entry.payload is not None
            yield memoryview(entry.payload)  # type: ignore[misc]

    def end(self, said: Mapping[str, Any]) -> bytes:
        """An empty batch that carries the `end` record, and the mark of a stream's end."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, self._schema) as writer:
            empty = pa.RecordBatch.from_pylist([], schema=self._schema)
            writer.write_batch(empty)  # with the schema before it, which was sent long ago
            before = sink.tell()
            writer.write_batch(empty, custom_metadata={END: json_of(dict(said))})
        return sink.getvalue().to_pybytes()[before:]  # type: ignore[no-any-return]


class Texts(_RowsOnly):
    """CSV."""

    media_type = "text/csv; charset=utf-8; header=present"

    def __init__(self, schema: pa.Schema) -> None:
        super().__init__(schema)
        self._csv = Csv(schema)

    def start(self, said: Mapping[str, Any]) -> bytes:
        return self._csv.start()

    def entry(self, entry: Entry, skip: int) -> Iterator[bytes]:
        if entry.kind == "rows":
            batch = batch_of(entry, self._schema)
            for start in range(skip, batch.num_rows, _SLICE):
                yield self._csv.rows(batch.slice(start, _SLICE))

    def end(self, said: Mapping[str, Any]) -> bytes:
        return self._csv.end()


class ParquetFile(_RowsOnly):
    """A Parquet file of a query that has ended."""

    media_type = "application/vnd.apache.parquet"

    def __init__(self, schema: pa.Schema) -> None:
        super().__init__(schema)
        self._parquet = Parquet(schema)

    def start(self, said: Mapping[str, Any]) -> bytes:
        return self._parquet.start()

    def entry(self, entry: Entry, skip: int) -> Iterator[bytes]:
        if entry.kind == "rows":
            yield self._parquet.rows(batch_of(entry, self._schema).slice(skip))

    def end(self, said: Mapping[str, Any]) -> bytes:
        return self._parquet.end()


def storable(schema: pa.Schema) -> bool:
    """Whether Parquet has a place for all columns."""
    return not unlike_parquet(schema)


def encoder(format_: str, schema: pa.Schema, shape: Shape) -> Encoder:
    """One for one reader."""
    match format_:
        case "ndjson":
            return Ndjson(schema, shape)
        case "sse":
            return Sse(schema, shape)
        case "arrow":
            return Arrow(schema)
        case "csv":
            return Texts(schema)
        case "parquet":
            return ParquetFile(schema)
        case other:
            raise AssertionError(f"there is no format {other}")


def rows_of(batch: pa.RecordBatch, shape: Shape) -> list[Any]:
    """Rows as JSON has them."""
    columns = [json_values(column) for column in batch.columns]
    if not columns:
        return [{} if shape == "objects" else [] for _ in range(batch.num_rows)]
    rows = zip(*columns, strict=True)
    if shape == "arrays":
        return list(rows)
    return _objects(tuple(batch.schema.names))(rows)


@lru_cache(maxsize=256)
def _objects(names: tuple[str, ...]) -> Callable[[Iterable[tuple[Any, ...]]], list[dict[str, Any]]]:
    """Makes an object of each row. Written out for the names: more than twice as fast as pairing them anew for each."""
    values = [f"v{n}" for n in range(len(names))]
    items = ", ".join(f"{name!r}: {value}" for name, value in zip(names, values, strict=True))
    made: Callable[[Iterable[tuple[Any, ...]]], list[dict[str, Any]]] = eval(
        f"lambda rows: [{{{items}}} for {', '.join(values)}, in rows]", {}
    )
    return made


def columns_of(schema: pa.Schema) -> list[dict[str, str]]:
    """The columns of an answer, for clients."""
    return [{"name": f.name, "type": sql_name(f.type)} for f in schema]


def _part(body: Mapping[str, Any], start: int, stop: int) -> dict[str, Any]:
    """What is said of some of an entry's rows."""
    said = dict(body)
    if "ids" in said:
        said["ids"] = said["ids"][start:stop]
    if "completes" in said:
        mine = {int(n) - start: ids for n, ids in said["completes"].items() if start <= int(n) < stop}
        said.pop("completes")
        if mine:
            said["completes"] = mine
    return said
