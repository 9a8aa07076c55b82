"""Statements to SQLite files: each in a thread, with a connection of its own that cannot write."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from threading import Event

from mediator.access.reading import Unsuitable
from mediator.catalog.model import Mirror
from mediator.catalog.statement import Result, Statement
from mediator.errors import Refused, SchemaChanged, SourceError, Unreadable

_STEPS = 10_000  # of SQLite's machine, between two looks at whether the rows are still wanted
_LOCKED = 0.5  # seconds to wait for who writes; after that it is asked again like a busy site
_LATER = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_BROKEN = {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT}


class SqliteTransport:
    """The address is `sqlite:///` and a path, which is relative to the working folder unless it starts with `/`."""

    async def run(self, mirror: Mirror, statement: Statement) -> Result:
        """Runs it. Where the caller is cancelled, so is the statement."""
        called_back = Event()
        path = Path(mirror.base.removeprefix("sqlite:///"))
        work = asyncio.get_running_loop().run_in_executor(None, _run, path, statement, called_back)
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            called_back.set()
            await asyncio.wait([work])
            if not work.cancelled():
                work.exception()  # nobody is left to be told
            raise


def _run(path: Path, statement: Statement, called_back: Event) -> Result:
    if not path.is_file():
        raise Refused(f"there is no database file {path}: correct the source's 'base'")
    try:
        with closing(_opened(path)) as connection:
            connection.set_progress_handler(called_back.is_set, _STEPS)
            return _result(connection, statement)
    except (sqlite3.Error, sqlite3.Warning, OverflowError, UnicodeError, ValueError) as error:
        raise understood(error) from error


def _opened(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(
        f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=_LOCKED, isolation_level=None
    )


def _result(connection: sqlite3.Connection, statement: Statement) -> Result:
    cursor = connection.execute(statement.sql, statement.parameters)
    rows = tuple(cursor.fetchall())
    ((encoding,),) = connection.execute("PRAGMA encoding")
    return Result(200, {}, b"", rows, (encoding,) * len(cursor.description))


def understood(error: Exception) -> SourceError:
    """What an exception of the library means to the engine."""
    said = str(error)
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # without what extends it
    if isinstance(error, OverflowError | UnicodeEncodeError):
        return Unsuitable(f"a value cannot be put to SQLite: {said}")
    if code in _LATER:
        return Refused(said, again=True)
    if code in _BROKEN or "Could not decode" in said:
        return Unreadable(said)
    if said.startswith(("no such table", "no such column")):
        return SchemaChanged(said)
    return Refused(said)
