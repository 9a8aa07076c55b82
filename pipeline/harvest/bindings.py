"""What lookups are made for: rows of a file, or of a query, as bindings of a relation's fields.

Read piece by piece, so that a list may be longer than memory. A value that is not of its field's type is told with the
row that it stands in; a NULL is equal to nothing and is left out, and counted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
import pyarrow.parquet as pq

from mediator.catalog.bindfields import subschema
from mediator.catalog.model import BindSet, Relation
from mediator.flow.events import Binding
from pipeline.errors import HarvestError

_ROWS = 10_000  # of a piece
_SHOWN = 60  # characters of a value

Pieces = Callable[[], Iterator[pa.RecordBatch]]
_SQL = ("select", "with", "from", "values", "(")


@dataclass(frozen=True)
class Given:
    """Bindings as somebody gave them. `pieces` may be taken more than once."""

    said: str  # where they come from, for messages
    columns: tuple[str, ...]
    pieces: Pieces


@dataclass(frozen=True)
class Read:
    """A piece of them, as values of a bind set."""

    bindings: list[Binding]
    nulls: int  # rows that were left out


def is_query(said: str) -> bool:
    """Whether it is SQL, rather than the name of a file."""
    return said.lstrip().lower().startswith(_SQL) and not Path(said).is_file()


def of_file(path: Path) -> Given:
    """Of a CSV, Parquet or NDJSON file. Raises `HarvestError`."""
    kinds: Mapping[str, Kind] = {
        ".csv": Csv(),
        ".parquet": Parquet(),
        ".ndjson": Ndjson(),
        ".jsonl": Ndjson(),
    }
    kind = kinds.get(path.suffix.lower())
    if kind is None:
        raise HarvestError(
            f"{path}: bindings are a file whose name ends in .csv, .parquet, .ndjson or .jsonl, or a query: SELECT ..."
        )
    try:
        columns = kind.columns(path)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise HarvestError(f"{path}: cannot be read: {_reason(error)}") from None
    return Given(str(path), columns, lambda: _told(path, kind.pieces(path)))


def of_table(table: pa.Table) -> Given:
    return Given("the table", tuple(table.schema.names), lambda: iter(table.to_batches(_ROWS)))


def reader(given: Given, relation: Relation, bind_set: BindSet) -> Callable[[pa.RecordBatch], Read]:
    """What makes bindings of pieces; it counts the rows that it has seen, for messages."""
    fields = list(subschema(relation.schema, bind_set))
    seen = 0

    def read(piece: pa.RecordBatch) -> Read:
        nonlocal seen
        columns = [_cast(given.said, piece.column(f.name), f, seen) for f in fields]
        seen += piece.num_rows
        rows = zip(*(c.to_pylist() for c in columns), strict=True)
        whole = [row for row in rows if None not in row]
        return Read(whole, piece.num_rows - len(whole))

    return read


def _cast(said: str, values: pa.Array, field: pa.Field, before: int) -> pa.Array:
    """Of the field's type: another writing of the same value, and never a nearby one."""
    try:
        return values.cast(field.type)
    except pa.ArrowException:
        place = next(n for n in range(len(values)) if not _casts(values.slice(n, 1), field.type))
        value = repr(values[place].as_py())
        shown = value if len(value) <= _SHOWN else f"{value[:_SHOWN]}..."
        raise HarvestError(
            f"{said}: row {before + place + 1:,}: {field.name} is {shown}, and has to be {field.type}"
        ) from None


def _casts(values: pa.Array, type_: pa.DataType) -> bool:
    try:
        values.cast(type_)
    except pa.ArrowException:
        return False
    return True


def _told(path: Path, pieces: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    try:
        yield from pieces
    except (OSError, ValueError, pa.ArrowException) as error:
        raise HarvestError(f"{path}: cannot be read: {_reason(error)}") from None


def _reason(error: Exception) -> str:
    said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return said.split("\n")[0]


class Kind(Protocol):
    """Of file."""

    def columns(self, path: Path) -> tuple[str, ...]: ...

    def pieces(self, path: Path) -> Iterator[pa.RecordBatch]: ...


class Csv:
    """All values are text at first, as a number may not be one: an ISBN begins with a nought."""

    def columns(self, path: Path) -> tuple[str, ...]:
        with csv.open_csv(path) as file:
            return _distinct(file.schema.names)

    def pieces(self, path: Path) -> Iterator[pa.RecordBatch]:
        names = self.columns(path)
        text = dict.fromkeys(names, pa.string())
        options = csv.ConvertOptions(column_types=text, strings_can_be_null=True, null_values=[""])
        with csv.open_csv(path, convert_options=options) as file:
            yield from file


class Parquet:
    def columns(self, path: Path) -> tuple[str, ...]:
        return _distinct(pq.read_schema(path).names)

    def pieces(self, path: Path) -> Iterator[pa.RecordBatch]:
        with pq.ParquetFile(path) as file:
            yield from file.iter_batches(_ROWS)


class Ndjson:
    def columns(self, path: Path) -> tuple[str, ...]:
        first = next(_objects(path), None)
        if first is None:
            raise ValueError("it is empty: the first line says which columns there are")
        return tuple(first)

    def pieces(self, path: Path) -> Iterator[pa.RecordBatch]:
        names = self.columns(path)
        rows: list[dict[str, Any]] = []
        for row in _objects(path):
            rows.append(row)
            if len(rows) == _ROWS:
                yield _batch(names, rows)
                rows = []
        yield _batch(names, rows)


def _objects(path: Path) -> Iterator[dict[str, Any]]:
    names: set[str] | None = None
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except json.JSONDecodeError as error:
                raise ValueError(f"line {number}: not JSON: {error.msg}") from None
            if not isinstance(row, dict):
                raise ValueError(f"line {number}: not a JSON object")
            names = set(row) if names is None else names
            if set(row) != names:
                raise ValueError(f"line {number}: other columns than the first line has: {', '.join(row)}")
            yield row


def _batch(names: Sequence[str], rows: list[dict[str, Any]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([_array([row[n] for row in rows]) for n in names], names=list(names))


def _array(values: list[Any]) -> pa.Array:
    try:
        return pa.array(values)
    except pa.ArrowException:  # a number here, a text there
        texts = [v if v is None or isinstance(v, str) else json.dumps(v) for v in values]
        return pc.cast(pa.array(texts, pa.string()), pa.string())


def _distinct(names: Sequence[str]) -> tuple[str, ...]:
    if len(set(names)) < len(names):
        raise ValueError("two of its columns have one name")
    return tuple(names)
