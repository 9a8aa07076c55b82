"""How the two sides speak.

A request is a pickle: only the worker reads any. To describe a statement, or to run it; then a stream follows for each
of its tables. What a worker says is JSON. A run is answered by `{}`, the stream of its rows, and `{}`; where something
went wrong `{"error", "text"}` stands in place of either. `error` is the name of DuckDB's class, or one of those below.
The last line of an answer says also for how many `seconds` a processor was busy with it, and whether the worker
`leaves` now, and is not to be asked again.
"""

from __future__ import annotations

import json
import pickle
from dataclasses import dataclass
from typing import Any, BinaryIO

import pyarrow as pa

TOO_MUCH = "too much"  # more bytes than a result may have
FAILED = "failed"  # Arrow cannot hold it, or no memory is left
NOT_ONE = "not one"  # statement

Message = dict[str, Any]


@dataclass(frozen=True)
class Describe:
    sql: str
    schemas: dict[str, pa.Schema]
    parameters: object


@dataclass(frozen=True)
class Run:
    sql: str
    tables: tuple[str, ...]
    most: int | None  # bytes of rows


class Ended(Exception):
    """The other side is not there any more."""


def ask(file: BinaryIO, request: Describe | Run) -> None:
    pickle.dump(request, file)


def asked(file: BinaryIO) -> Describe | Run:
    try:
        found: Describe | Run = pickle.load(file)
    except (EOFError, OSError, pickle.UnpicklingError):
        raise Ended from None
    return found


def write(file: BinaryIO, message: Message) -> None:
    file.write(json.dumps(message).encode() + b"\n")


def read(file: BinaryIO) -> Message:
    try:
        line = file.readline()
    except OSError:
        raise Ended from None
    if not line.endswith(b"\n"):
        raise Ended
    found: Message = json.loads(line)
    return found


def writer(file: BinaryIO, schema: pa.Schema) -> pa.RecordBatchStreamWriter:
    return pa.ipc.new_stream(pa.PythonFile(file, "w"), schema)


def reader(file: BinaryIO) -> pa.RecordBatchStreamReader:
    return pa.ipc.open_stream(pa.PythonFile(file, "r"))
