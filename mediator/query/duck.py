"""DuckDB, as this engine uses it: over Arrow tables that are handed in, and over nothing else.

What the mediator knows of DuckDB's errors lives here too. Statements are written elsewhere, and are run in other
processes where the embedding process has said so (`apart`): nothing else bounds what one of them takes.

Functions that callers brought along are installed in the one database where statements are run, under names of their
own. Statements as they were written are checked in another, which has no more than their types (`Stub`).
"""

from __future__ import annotations

import atexit
import json
import os
import re
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import lru_cache
from inspect import Parameter, Signature
from typing import NamedTuple, TypeVar

import duckdb
import pyarrow as pa
from duckdb.func import FunctionNullHandling, PythonUDFType

from mediator import clock
from mediator.errors import FunctionFailed, Unsupported
from mediator.statements.apart import Apart, TooMuch
from mediator.statements.database import DESCRIBE, FAULTS, described, opened
from mediator.statements.patience import Interrupted, Patience, aside, at_hand

T = TypeVar("T")

Tables = Mapping[str, pa.Table]
Over = Callable[[Sequence[pa.Array]], pa.Array]  # a function's value for each row

_memory: int | None = None  # bytes; else as much as DuckDB sees fit
_apart: Apart | None = None  # where statements are run; else in this process
_SHARE = 16  # of that, for the rows of one query, and for one statement
_AT_ONCE = 8_192  # rows, between two looks whether there is patience
_NO_MORE = "has been invalidated"  # what DuckDB says of a database after that
_CALLS = re.compile(r"[(\[]")


class _Local(threading.local):
    """A thread's own."""

    cursor: tuple[object, duckdb.DuckDBPyConnection] | None = None  # with the database that it is of
    shown: tuple[object, duckdb.DuckDBPyConnection, dict[str, pa.Schema]] | None = None
    failed: FunctionFailed | None = None
    light = False  # all that it runs
    elsewhere = 0.0  # seconds that others worked for it


_local = _Local()
_lock = threading.RLock()
_roots: dict[int, duckdb.DuckDBPyConnection] = {}
_checkers: dict[tuple[int, tuple[Stub, ...]], duckdb.DuckDBPyConnection] = {}
_CHECKERS = 8  # sets of functions that are kept ready for a check
_installed: dict[str, tuple[Stub, Over]] = {}
_age = 0  # of the databases: how many there were before
_dropped: deque[str] = deque()  # functions that are no more; whoever installs the next one takes them away


@dataclass(frozen=True, slots=True)
class Fault:
    """What DuckDB had against a statement, and where in it (a character offset), if it said."""

    kind: str
    message: str
    position: int | None
    name: str
    subtype: str


class Stub(NamedTuple):
    """A function's name and DuckDB's names of its types."""

    name: str
    arguments: tuple[str, ...]
    result: str
    steady: bool


@contextmanager
def apart(memory: int) -> Iterator[None]:
    """Statements are run in other processes within the block, and may take so many bytes, all together. Before the
    first statement."""
    global _memory, _apart
    _memory = memory
    with Apart(memory // _SHARE, _SHARE) as _apart:
        try:
            yield
        finally:
            _memory = _apart = None


def elsewhere() -> bool:
    """Whether statements are run in other processes."""
    return _apart is not None


def room() -> int | None:
    """Bytes that one query may gather, or one statement give; None where nobody said."""
    return None if _memory is None else _memory // _SHARE


def computes(sql: str) -> bool:
    """Whether anything in the text may take longer to compute than the text is long. Also where it is only described:
    what is constant is computed then."""
    return _CALLS.search(sql) is not None


def too_much(what: str) -> Unsupported:
    return Unsupported(f"{what} takes more than {room():,} bytes: ask for fewer rows or columns")


def install(stub: Stub, over: Over) -> None:
    """Let statements call a function by the stub's name, which nothing else has."""
    with _lock:
        root = _root()
        while _dropped:
            name = _dropped.popleft()
            if _installed.pop(name, None) is not None:
                root.remove_function(name)
        _installed[stub.name] = stub, over
        _create(root, stub, over)


def uninstall(name: str) -> None:
    """Nobody will call it again. May be called at any moment, as by the garbage collector."""
    _dropped.append(name)


def installed() -> frozenset[str]:
    """The names of all functions that callers brought along and somebody still holds."""
    return frozenset(_installed)


def cursor() -> duckdb.DuckDBPyConnection:
    """This thread's own connection. Nothing is ever stored in it."""
    mine, here = _local.cursor, (os.getpid(), _age)
    if mine is None or mine[0] != here:
        mine = (here, _root().cursor())
        _local.cursor = mine
    return mine[1]


def _showing(schemas: Mapping[str, pa.Schema], stubs: tuple[Stub, ...]) -> duckdb.DuckDBPyConnection:
    """A connection that sees empty relations of these schemas and nothing else. They stay for the next statement, since
    to register one takes longer than to check a statement."""
    key = os.getpid(), _age, stubs
    mine = _local.shown
    if mine is None or mine[0] != key:
        mine = _local.shown = (key, (_checker(stubs) if stubs else _root()).cursor(), {})
    _, here, shown = mine
    wanted = {name.lower(): schema for name, schema in schemas.items()}  # DuckDB tells no cases apart
    for name in [n for n, schema in shown.items() if wanted.get(n) != schema]:
        here.unregister(name)
        del shown[name]
    for name in wanted.keys() - shown.keys():
        here.register(name, wanted[name].empty_table())
        shown[name] = wanted[name]
    return here


def run(sql: str, tables: Tables, *, light: bool = False) -> pa.Table:
    """The rows of one SELECT that reads these tables. One is light that takes no longer than its text and its tables
    are long."""
    others = _apart
    if others is None or light or _local.light or any(name in sql for name in installed()):
        return _run_here(sql, tables)
    try:
        found, seconds = aside(lambda: others.run(sql, tables, room()))
    except TooMuch:
        raise too_much("the result") from None
    except FAULTS as error:
        raise _given_up(error) from None
    _local.elsewhere += seconds
    return found


@contextmanager
def lightly() -> Iterator[None]:
    """All that this thread runs within the block is light."""
    before, _local.light = _local.light, True
    try:
        yield
    finally:
        _local.light = before


def effort() -> float:
    """Seconds that this thread has worked, and others for it."""
    return clock.effort() + _local.elsewhere


def _run_here(sql: str, tables: Tables) -> pa.Table:
    """In this process, where the functions are that callers brought along."""
    return _survived(lambda: _run_once(sql, tables))


def _survived(work: Callable[[], T]) -> T:
    """A fault of DuckDB's own in one statement leaves a database in which no other runs: there is a new one then, and
    whoever only met the old one goes there."""
    for last in (False, True):
        age = _age
        try:
            return work()
        except FAULTS as error:
            _renew(age)
            if last or _NO_MORE not in str(error):
                raise _given_up(error) from None
    raise AssertionError("the last attempt ends")


def _given_up(error: duckdb.Error) -> Unsupported:
    told = fault(error).message.rpartition("Original error: ")[2].split("\n")[0]
    return Unsupported(f"DuckDB failed at this statement by a fault of its own: {told}")


def _renew(age: int) -> None:
    """Leave the databases of that age, if nobody has yet."""
    global _age
    with _lock:
        if _age == age:
            _age += 1
            _roots.pop(os.getpid(), None)
            _checkers.clear()


def _run_once(sql: str, tables: Tables) -> pa.Table:
    here = cursor()
    for name, table in tables.items():
        here.register(name, table)
    _local.failed = None
    patience = at_hand()
    try:
        with nullcontext() if patience is None else patience.running(here):
            return here.sql(sql).to_arrow_table() if patience is None else _read(here, sql, patience)
    except (duckdb.Error, pa.ArrowException, OSError) as error:
        if patience is not None and patience.lost:
            _local.cursor = None  # what it has not given holds memory
            here.close()
            raise Interrupted from None
        if not isinstance(error, duckdb.Error):
            raise Unsupported(f"the result cannot be had: {error}") from None
        if _local.failed is not None:
            raise _local.failed from _local.failed.__cause__
        raise
    finally:
        if _local.cursor is not None:
            for name in tables:
                here.unregister(name)


def _read(here: duckdb.DuckDBPyConnection, sql: str, patience: Patience) -> pa.Table:
    """All rows, as long as there is patience, and room."""
    most = room()
    reader = here.sql(sql).to_arrow_reader(_AT_ONCE)
    batches, size = [], 0
    for batch in reader:
        batches.append(batch)
        size += batch.nbytes
        if patience.lost:
            raise duckdb.InterruptException
        if most is not None and size > most:
            reader.close()
            raise too_much("the result")
    return pa.Table.from_batches(batches, reader.schema)


def shape(sql: str, schemas: Mapping[str, pa.Schema]) -> pa.Schema:
    """The schema of a SELECT's rows; nothing is evaluated but what is constant."""
    tables = {n: s.empty_table() for n, s in schemas.items()}
    return run(f"SELECT * FROM ({sql}) LIMIT 0", tables, light=not computes(sql)).schema


def names(
    sql: str, schemas: Mapping[str, pa.Schema], parameters: object = None, stubs: tuple[Stub, ...] = ()
) -> list[str]:
    """The columns of a statement as DuckDB names them, once it found that all is well with it. Raises `NotOne`."""
    if _apart is not None and not stubs and not _local.light and computes(sql):
        try:
            return _apart.describe(sql, schemas, parameters)
        except FAULTS as error:
            raise _given_up(error) from None
    return _survived(lambda: described(_showing(schemas, stubs), sql, parameters))


def fault(error: duckdb.Error, sql: str = "") -> Fault:
    """An error of `names` read back, its position counted in the statement's characters."""
    text = str(error)
    start = text.find("{")
    try:
        told = json.loads(text[start:]) if start >= 0 else {}
    except ValueError:
        told = {}
    position = int(told["position"]) - len(DESCRIBE) if told.get("position", "").isdigit() else None
    if position is not None:
        position = len(sql.encode()[: max(position, 0)].decode(errors="ignore"))
    message = told.get("exception_message", text)
    return Fault(
        told.get("exception_type") or text.split(" Error:")[0],
        message.split("\n\tCandidate functions")[0].strip(),
        position,
        told.get("name", ""),
        told.get("error_subtype", ""),
    )


@lru_cache(maxsize=512)
def type_name(arrow: pa.DataType) -> str:
    """What DuckDB calls an Arrow type."""
    here = cursor()
    here.register("t", pa.schema([("v", arrow)]).empty_table())
    try:
        return str(here.sql("SELECT v FROM t").types[0])
    finally:
        here.unregister("t")


@lru_cache(maxsize=512)
def arrow_type(name: str) -> pa.DataType:
    """The Arrow type of DuckDB's type of this name."""
    return shape(f"SELECT CAST(NULL AS {name}) AS v", {}).field(0).type


@lru_cache(maxsize=512)
def wider(left: pa.DataType, right: pa.DataType) -> str:
    """The name of the type that takes the values of both."""
    here = cursor()
    here.register("t", pa.schema([("l", left), ("r", right)]).empty_table())
    try:
        return str(here.sql("SELECT CASE WHEN true THEN l ELSE r END FROM t").types[0])
    finally:
        here.unregister("t")


def _root() -> duckdb.DuckDBPyConnection:
    """The database where statements are run."""
    with _lock:
        if os.getpid() not in _roots:
            root = _roots[os.getpid()] = opened(_memory)
            for stub, over in _installed.values():
                _create(root, stub, over)
        return _roots[os.getpid()]


def _checker(stubs: tuple[Stub, ...]) -> duckdb.DuckDBPyConnection:
    """A database that knows these functions by their types alone."""
    with _lock:
        key = os.getpid(), stubs
        found = _checkers.pop(key, None)
        if found is None:
            found = opened(_memory)
            for stub in stubs:
                _create(found, stub, _nothing)
        _checkers[key] = found  # as the latest
        if len(_checkers) > _CHECKERS:
            del _checkers[next(iter(_checkers))]
        return found


def _create(connection: duckdb.DuckDBPyConnection, stub: Stub, over: Over) -> None:
    def call(*columns: pa.ChunkedArray) -> pa.Array:
        try:
            return over([column.combine_chunks() for column in columns])
        except FunctionFailed as error:
            _local.failed = error  # DuckDB keeps no more than its text
            raise

    # DuckDB looks how many arguments it takes.
    names = [Parameter(f"c{n}", Parameter.POSITIONAL_ONLY) for n in range(len(stub.arguments))]
    vars(call)["__signature__"] = Signature(names)
    connection.create_function(
        stub.name,
        call,
        list(stub.arguments),
        stub.result,
        type=PythonUDFType.ARROW,
        null_handling=FunctionNullHandling.SPECIAL,
        side_effects=not stub.steady,
    )


def _nothing(columns: Sequence[pa.Array]) -> pa.Array:
    return pa.nulls(len(columns[0]))


@atexit.register
def _let_go() -> None:
    """DuckDB complains of functions that are still installed when Python ends."""
    with _lock:
        root = _roots.get(os.getpid())
        if root is not None:
            for name in _installed:
                root.remove_function(name)
        _installed.clear()
        for (_, stubs), checker in _checkers.items():
            for stub in stubs:
                checker.remove_function(stub.name)
