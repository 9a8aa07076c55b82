"""A process that runs one statement after another, for as long as it is asked to.

It has so much memory, and ends when nobody is there to ask it, or when a statement has left much behind.
"""

from __future__ import annotations

import os
import resource
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, cast

import duckdb
import pyarrow as pa

from mediator.statements import wire
from mediator.statements.database import FAULTS, NotOne, described, opened

_AT_ONCE = 8_192  # rows of a batch
_LOOK = 1.0  # seconds between two looks whether anybody is there
_WATCH = 0.03  # between two looks at the memory, while a statement runs
_YOUNG = 0.1  # seconds of work; whoever takes longer leaves the processors to those that do not
_NICEST = 19
_LEFT_BEHIND = 64 << 20  # bytes
_BESIDE = 3  # times what DuckDB may take: for tables that are given, and for what DuckDB does not count
_ADDRESSES = 1 << 30  # of which not all become memory
_WRONG = (duckdb.Error, pa.ArrowException, MemoryError, RuntimeError)
_RUINED = {fault.__name__ for fault in FAULTS}
_PAGE = resource.getpagesize()


def work(sock: socket.socket, memory: int) -> None:
    """Until the other side has closed its end."""
    # One call may ask for any number, and more than these is refused at once.
    addresses = _bytes(0) + memory + _ADDRESSES
    resource.setrlimit(resource.RLIMIT_AS, (addresses, addresses))
    connection, before = opened(memory), _bytes(1)
    watch = _Watch(before + _BESIDE * memory)
    threading.Thread(target=watch.keep, daemon=True).start()
    file = cast(BinaryIO, sock.makefile("rwb"))
    with suppress(wire.Ended, OSError):
        while True:
            request = wire.asked(file)
            began = time.process_time()
            with watch:
                if isinstance(request, wire.Describe):
                    told = _described(connection, request)
                else:
                    told = _run(connection, request, file)
            ruined = told.get("error") in _RUINED
            leaves = ruined or watch.aged or _bytes(1) - before > _LEFT_BEHIND
            wire.write(file, {**told, "seconds": time.process_time() - began, "leaves": leaves})
            file.flush()
            if leaves:
                return


class _Watch:
    """A thread that makes the first one nicer when it works for long, and ends the process when that takes too much, or
    when nobody is there."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._parent, self._first = os.getppid(), threading.get_native_id()
        self._busy = threading.Event()
        self._began = 0.0
        self.aged = False

    def __enter__(self) -> None:
        self._began = time.process_time()
        self._busy.set()

    def __exit__(self, *_: object) -> None:
        self._busy.clear()

    def keep(self) -> None:
        while os.getppid() == self._parent and _bytes(1) <= self._most:
            if not self._busy.is_set():
                self._busy.wait(_LOOK)
                continue
            time.sleep(_WATCH)
            # Not by the clock: who has to wait for a processor is no older for that.
            if not self.aged and self._busy.is_set() and time.process_time() - self._began > _YOUNG:
                self.aged = True  # there is no way back
                with suppress(OSError):
                    os.setpriority(os.PRIO_PROCESS, self._first, _NICEST)
        os._exit(1)  # in the middle of whatever it is


def _described(connection: duckdb.DuckDBPyConnection, request: wire.Describe) -> wire.Message:
    try:
        for name, schema in request.schemas.items():
            # `Schema.empty_table` would load pandas, which takes longer than all the rest.
            connection.register(name, pa.Table.from_batches([], schema))
        return {"names": described(connection, request.sql, request.parameters)}
    except NotOne:
        return {"error": wire.NOT_ONE, "text": ""}
    except _WRONG as error:
        return _told(error)
    finally:
        for name in request.schemas:
            connection.unregister(name)


def _run(connection: duckdb.DuckDBPyConnection, request: wire.Run, file: BinaryIO) -> wire.Message:
    """Write the rows; what is to be said after them."""
    tables = {name: wire.reader(file).read_all() for name in request.tables}
    try:
        for name, table in tables.items():
            connection.register(name, table)
        rows = connection.sql(request.sql).to_arrow_reader(_AT_ONCE)
        wire.write(file, {})
        with wire.writer(file, rows.schema) as written:
            size = 0
            for batch in rows:
                size += batch.nbytes
                if request.most is not None and size > request.most:
                    return {"error": wire.TOO_MUCH, "text": ""}
                written.write_batch(batch)
    except _WRONG as error:
        return _told(error)
    finally:
        for name in tables:
            connection.unregister(name)
    return {}


def _told(error: Exception) -> wire.Message:
    if isinstance(error, duckdb.Error):
        return {"error": type(error).__name__, "text": str(error)}
    return {"error": wire.FAILED, "text": str(error) or type(error).__name__}


def _bytes(which: int) -> int:
    """Of addresses (0), or of memory (1)."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[which]) * _PAGE
