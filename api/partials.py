"""Partial answers as bytes, beside the others: marked, and later said to be completed or withdrawn."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from api.cells import harmless, json_of
from api.exits import Mistake
from api.formats import Encoder, Ndjson
from api.options import Format
from api.output import Document
from api.table import Table
from mediator.output.records import Partial, Record, Rows, Withdrawn

MARK = "partial"
_WORDS = ("partial", "missing", "unknown", "completes", "withdrawn", "why")


class RecordEncoder(Encoder, Protocol):
    """Turns all that a query tells into one document."""

    def record(self, record: Record) -> bytes: ...


def check_format(chosen: Format) -> None:
    """Partial answers need a format that can tell them from others."""
    if chosen not in (Format.ndjson, Format.table):
        raise Mistake(
            f"--partials: {chosen.value} cannot tell partial answers from others; choose --format ndjson or "
            "--format table, or leave --partials out"
        )


def record_encoder(chosen: Format, schema: pa.Schema, width: int | None, colour: bool) -> RecordEncoder:
    return NdjsonRecords(schema) if chosen is Format.ndjson else TableRecords(schema, width, colour)


class Records(Document):
    """All that one query tells, to stdout or to a file."""

    def __init__(self, make: Callable[[pa.Schema], RecordEncoder], path: Path | None) -> None:
        super().__init__(self._made, path)
        self._make_records = make

    def _made(self, schema: pa.Schema) -> Encoder:
        self._records = self._make_records(schema)
        return self._records

    def tell(self, record: Record) -> None:
        self._write(self._records.record(record))


class NdjsonRecords(Ndjson):
    """An object per line: answers as they are, with `completes` where they complete any; a partial one has `partial`,
    its id, `missing`, the aliases that no row is known of, and `unknown`, the columns that are NULL only for that; one
    that is withdrawn has `withdrawn` and why."""

    def __init__(self, schema: pa.Schema) -> None:
        taken = [name for name in schema.names if name in _WORDS]
        if taken:
            raise Mistake(
                f"--partials: a column is called {taken[0]!r}, which marks records in ndjson: name it otherwise, "
                "with AS in the query"
            )
        super().__init__(schema)

    def record(self, record: Record) -> bytes:
        return b"".join(json_of(said) + b"\n" for said in self._said(record))

    def _said(self, record: Record) -> list[dict[str, object]]:
        match record:
            case Rows(batch, completes):
                return [
                    {**row, "completes": list(completes[n])} if n in completes else row
                    for n, row in enumerate(self.objects(batch))
                ]
            case Partial(ids, batch, unknown, missing):
                return [
                    {"partial": id_, "missing": list(missing), "unknown": list(unknown), **row}
                    for id_, row in zip(ids, self.objects(batch), strict=True)
                ]
            case Withdrawn(ids, why):
                return [{"withdrawn": id_, "why": why} for id_ in ids]


class TableRecords(Table):
    """A table whose first column says of a partial answer which it is and what it waits for, and what became of it."""

    def __init__(self, schema: pa.Schema, width: int | None = None, colour: bool = False) -> None:
        self._schema = schema.insert(0, pa.field(MARK, pa.string()))
        super().__init__(self._schema, width, colour)

    def record(self, record: Record) -> bytes:
        match record:
            case Rows(batch, completes):
                marks = [_completed(completes.get(n, ())) for n in range(batch.num_rows)]
                return self.rows(self._marked(marks, batch))
            case Partial(ids, batch, unknown, missing):
                waits = harmless(", ".join(missing))
                # Behind the mark, which has its place before them and may have the name of one of them.
                places = [n for n, name in enumerate(batch.schema.names, 1) if name in unknown]
                return self.rows(self._marked([f"#{i} without {waits}" for i in ids], batch), places)
            case Withdrawn(ids, why):
                return "".join(f"#{i} withdrawn: {why}\n" for i in ids).encode()

    def _marked(self, marks: list[str], batch: pa.RecordBatch) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([pa.array(marks, pa.string()), *batch.columns], schema=self._schema)


def _completed(ids: tuple[int, ...]) -> str:
    return f"completes {', '.join(f'#{i}' for i in ids)}" if ids else ""
