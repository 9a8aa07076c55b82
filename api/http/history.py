"""What was asked, how it ended, and what is saved under a name: one SQLite file, or memory.

SQLite blocks, so all of it happens in one thread of its own, in the order in which it was asked for. How queries begin
and end is noted at once and written together with what else is noted within a twentieth of a second: many do, when many
ask. What is written outlives the process, however that ends; the machine losing power may cost the last moments, but
never the file (WAL, `synchronous = NORMAL`). One server at a time has the file.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sqlite3
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from api.cells import json_of
from api.http.problems import Problem
from mediator.clock import Clock, wall
from mediator.errors import MediatorError

T = TypeVar("T")

_VERSION = 1
_TABLES = """
CREATE TABLE query (
    id TEXT PRIMARY KEY, owner TEXT NOT NULL, sql TEXT NOT NULL, request TEXT NOT NULL, created REAL NOT NULL,
    finished REAL, status TEXT NOT NULL, rows INTEGER NOT NULL, seconds REAL, first_row REAL, report TEXT,
    problem TEXT, retry_of TEXT
) WITHOUT ROWID;
CREATE INDEX latest ON query (owner, created, id);
CREATE INDEX oldest ON query (created);
CREATE TABLE saved (
    owner TEXT NOT NULL, name TEXT NOT NULL, request TEXT NOT NULL, created REAL NOT NULL, changed REAL NOT NULL,
    PRIMARY KEY (owner, name)
) WITHOUT ROWID;
"""
_QUERY = """
    SELECT id, owner, sql, request, created, finished, status, rows, seconds, first_row, report, problem, retry_of
    FROM query
"""
_SAVED = "SELECT owner, name, request, created, changed FROM saved"
_RUNNING = "running"
_PATIENCE = 1.0  # seconds in which another process may be done with the file
_SOON = 0.05  # seconds in which what was noted is written
_MOST_DUE = 10_000  # notes that wait for a file that cannot be written; then the oldest are lost
_CUT_SHORT = Problem(
    500,
    "internal",
    "The server ended while the query ran",
    hint="run the query again: what is held is not asked again",
)


_BEGUN = "INSERT INTO query (id, owner, sql, request, created, status, rows, retry_of) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_ENDED = (
    "UPDATE query SET status = ?, finished = ?, rows = ?, seconds = ?, first_row = ?, report = ?, problem = ? "
    "WHERE id = ?"
)

log = logging.getLogger("mediator.http")


class Note(NamedTuple):
    """What is due to be written."""

    statement: str
    row: tuple[Any, ...]
    owner: str | None = None  # who may have too many now


class HistoryFailed(MediatorError):
    """The file of the history cannot be used."""


@dataclass(frozen=True, slots=True)
class Past:
    """A query that was begun: all that is known of it now."""

    id: str
    owner: str
    sql: str
    request: dict[str, Any]
    created: datetime
    finished: datetime | None
    status: str
    rows: int
    seconds: float | None
    first_row: float | None
    report: dict[str, Any] | None
    problem: dict[str, Any] | None
    retry_of: str | None


@dataclass(frozen=True, slots=True)
class Page:
    queries: list[Past]
    next: str | None  # what `after` is for the page after this one


@dataclass(frozen=True, slots=True)
class Saved:
    owner: str
    name: str
    request: dict[str, Any]
    created: datetime
    changed: datetime


@dataclass(frozen=True, slots=True)
class Kept:
    """How much is kept. A query that runs is not forgotten."""

    seconds: float = 30 * 86_400.0  # after it began
    queries: int = 1_000  # of one owner
    saved: int = 1_000  # of one owner


class History:
    """Made by `opened`."""

    def __init__(self, path: Path | None, now: Clock, kept: Kept) -> None:
        self._where = "the history" if path is None else str(path)
        self._now, self._kept = now, kept
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="history")
        self._db: sqlite3.Connection
        self._due: deque[Note] = deque(maxlen=_MOST_DUE)
        self._writing_soon: asyncio.TimerHandle | None = None
        self._failed: sqlite3.Error | None = None  # what was due could not be written

    @classmethod
    @asynccontextmanager
    async def opened(
        cls, path: Path | None = None, *, now: Clock = wall, kept: Kept | None = None
    ) -> AsyncIterator[History]:
        """For the length of a block; without a path it is forgotten with it. Queries that were running when the last
        process that had the file ended have failed. Raises `HistoryFailed` for a file that cannot be used."""
        history = cls(path, now, kept or Kept())
        try:
            await history._do(lambda: history._open(path))
            try:
                yield history
            finally:
                try:
                    await history.written()
                finally:
                    await history._do(history._db.close)
        finally:
            history._thread.shutdown(wait=False)

    def started(
        self,
        id_: str,
        owner: str,
        sql: str,
        request: Mapping[str, Any],
        created: datetime,
        retry_of: str | None = None,
    ) -> None:
        """A query begins; others may be too old, or too many, to be kept from now on. Raises `HistoryFailed` where what
        was noted before could not be written."""
        if self._failed is not None:
            self._soon()
            raise self._said(self._failed)
        row = (id_, owner, sql, _json(request), created.timestamp(), _RUNNING, 0, retry_of)
        self._due.append(Note(_BEGUN, row, owner))
        self._soon()

    def ended(
        self,
        id_: str,
        status: str,
        finished: datetime,
        rows: int,
        seconds: float | None,
        first_row: float | None,
        report: Mapping[str, Any] | None,
        problem: Mapping[str, Any] | None,
    ) -> None:
        """How it ended. Of one that has been forgotten meanwhile, nothing is noted."""
        told = _json_or_none(report), _json_or_none(problem)
        self._due.append(Note(_ENDED, (status, finished.timestamp(), rows, seconds, first_row, *told, id_)))
        self._soon()

    async def written(self) -> None:
        """All that was noted is in the file now."""
        await self._do(lambda: None)
        if self._failed is not None:
            raise self._said(self._failed)

    async def get(self, owner: str, id_: str) -> Past | None:
        """One query of an owner's."""

        def look() -> Past | None:
            found = self._db.execute(f"{_QUERY} WHERE id = ? AND owner = ?", (id_, owner)).fetchone()
            return None if found is None else _past(found)

        return await self._do(look)

    async def page(
        self, owner: str, status: str | None = None, after: str | None = None, limit: int = 50
    ) -> Page:
        """An owner's queries, the latest first. Raises a `Problem` for an `after` that no page gave."""
        where, values = ["owner = ?"], [owner]
        if status is not None:
            where.append("status = ?")
            values.append(status)
        place: tuple[float, str] | tuple[()] = ()
        if after is not None:
            where.append("(created, id) < (?, ?)")
            place = _place(after)
        query = f"{_QUERY} WHERE {' AND '.join(where)} ORDER BY created DESC, id DESC LIMIT ?"

        def look() -> Page:
            found = self._db.execute(query, (*values, *place, limit + 1)).fetchall()
            shown = [_past(row) for row in found[:limit]]
            return Page(shown, _cursor(shown[-1]) if len(found) > limit else None)

        return await self._do(look)

    async def forget(self, owner: str, id_: str) -> bool:
        """Whether there was such a query."""
        return await self._do(
            lambda: self._deleted("DELETE FROM query WHERE id = ? AND owner = ?", id_, owner)
        )

    async def prune(self) -> None:
        """Forget what is too old to be kept. Whoever has begun a query has done so too."""

        def write() -> None:
            with self._writing() as db:
                self._prune_age(db)

        await self._do(write)

    async def save(self, owner: str, name: str, request: Mapping[str, Any]) -> Saved:
        """Under this name, from now on. Raises a `Problem` where an owner has saved too many."""
        written, now = _json(request), self._now()

        def write() -> Saved:
            with self._writing() as db:
                db.execute(
                    "INSERT INTO saved VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE "
                    "SET request = excluded.request, changed = excluded.changed",
                    (owner, name, written, now, now),
                )
                (count,) = db.execute("SELECT count(*) FROM saved WHERE owner = ?", (owner,)).fetchone()
                if count > self._kept.saved:
                    raise Problem(
                        422,
                        "invalid-request",
                        f"{self._kept.saved:,} queries are saved, and more are not kept",
                        hint="forget one that is not needed: DELETE /v1/saved/{name}",
                    )
                return _saved(db.execute(f"{_SAVED} WHERE owner = ? AND name = ?", (owner, name)).fetchone())

        return await self._do(write)

    async def saved(self, owner: str) -> list[Saved]:
        """All of an owner's, by name."""
        query = f"{_SAVED} WHERE owner = ? ORDER BY name"
        return await self._do(lambda: [_saved(row) for row in self._db.execute(query, (owner,))])

    async def saved_one(self, owner: str, name: str) -> Saved | None:
        def look() -> Saved | None:
            found = self._db.execute(f"{_SAVED} WHERE owner = ? AND name = ?", (owner, name)).fetchone()
            return None if found is None else _saved(found)

        return await self._do(look)

    async def forget_saved(self, owner: str, name: str) -> bool:
        """Whether there was one of that name."""
        return await self._do(
            lambda: self._deleted("DELETE FROM saved WHERE owner = ? AND name = ?", owner, name)
        )

    async def _do(self, work: Callable[[], T]) -> T:
        """In the thread, after what is due. What was begun is done, also when nobody waits for it any more."""

        def done() -> T:
            self._write_due()
            return work()

        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, done)
        except sqlite3.Error as error:
            raise self._said(error) from error

    def _said(self, error: sqlite3.Error) -> HistoryFailed:
        return HistoryFailed(f"{self._where}: {error}")

    def _soon(self) -> None:
        if self._writing_soon is None:
            self._writing_soon = asyncio.get_running_loop().call_later(_SOON, self._write_soon)

    def _write_soon(self) -> None:
        self._writing_soon = None
        self._thread.submit(self._write_due)

    def _write_due(self) -> None:
        """In the thread. What cannot be written stays due, unless it never can be."""
        if not self._due:
            return
        taken: list[Note] = []
        try:
            with self._writing() as db:
                while self._due:
                    taken.append(self._due.popleft())
                    try:
                        db.execute(taken[-1].statement, taken[-1].row)
                    except sqlite3.IntegrityError as error:
                        log.error("%s: a note is left out: %s", self._where, error)
                owners = {note.owner for note in taken if note.owner is not None}
                if owners:
                    self._prune_age(db)
                for owner in owners:
                    self._prune_number(db, owner)
            self._failed = None
        except sqlite3.Error as error:
            if self._failed is None:
                log.error("%s cannot be written: %s", self._where, error)
            self._failed = error
            self._due.extendleft(reversed(taken))

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """All that is written within, or none of it."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield self._db
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise

    def _deleted(self, statement: str, *values: str) -> bool:
        with self._writing() as db:
            return db.execute(statement, values).rowcount > 0

    def _prune_age(self, db: sqlite3.Connection) -> None:
        db.execute(
            "DELETE FROM query WHERE created < ? AND status != ?",
            (self._now() - self._kept.seconds, _RUNNING),
        )

    def _prune_number(self, db: sqlite3.Connection, owner: str) -> None:
        db.execute(
            "DELETE FROM query WHERE owner = ?1 AND status != ?2 AND (created, id) <= ("
            "SELECT created, id FROM query WHERE owner = ?1 ORDER BY created DESC, id DESC LIMIT 1 OFFSET ?3)",
            (owner, _RUNNING, self._kept.queries),
        )

    def _open(self, path: Path | None) -> None:
        try:
            if path is not None:  # what people ask is for nobody else to read
                os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            self._db = sqlite3.connect(
                path or ":memory:", isolation_level=None, check_same_thread=False, timeout=_PATIENCE
            )
        except (sqlite3.Error, OSError) as error:
            raise HistoryFailed(
                f"{path}: cannot be opened ({error}): name a file in a folder that can be written"
            ) from None
        try:
            self._prepare()
            self._cut_short()
        except BaseException as error:
            self._db.close()
            if isinstance(error, sqlite3.Error):
                raise self._why_not(error) from None
            raise

    def _prepare(self) -> None:
        """One process has the file from here on, until it closes it or ends."""
        self._db.execute("PRAGMA locking_mode = EXCLUSIVE")
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        if version > _VERSION:
            raise HistoryFailed(
                f"{self._where} was written by a later version of the mediator (format {version}, not {_VERSION}): "
                "use that one, or name another file"
            )
        if not version and self._db.execute("SELECT count(*) FROM sqlite_master").fetchone() != (0,):
            raise HistoryFailed(f"{self._where} is a database of something else: name another file")
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = NORMAL")
        with self._writing() as db:
            if not version:
                for statement in filter(str.strip, _TABLES.split(";")):
                    db.execute(statement)
                db.execute(f"PRAGMA user_version = {_VERSION}")
        (found,) = self._db.execute("PRAGMA quick_check(1)").fetchone()
        if found != "ok":
            raise sqlite3.DatabaseError(found)

    def _cut_short(self) -> None:
        """Whoever ran those that are noted as running is not there any more."""
        with self._writing() as db:
            db.execute(
                "UPDATE query SET status = 'failed', problem = ? WHERE status = ?",
                (_json(_CUT_SHORT.document()), _RUNNING),
            )
            self._prune_age(db)

    def _why_not(self, error: sqlite3.Error) -> HistoryFailed:
        if "locked" in str(error):
            return HistoryFailed(
                f"{self._where} is in use by another process: end that, or name another file"
            )
        if isinstance(error, sqlite3.OperationalError):  # the machine's fault: no permission, a full disk
            return HistoryFailed(f"{self._where} cannot be used: {error}")
        return HistoryFailed(
            f"{self._where} is damaged ({error}): move it away, and a new one is begun; the history and the saved "
            f"queries in it are lost then, but for what `sqlite3 {self._where} .recover` finds"
        )


def _past(row: tuple[Any, ...]) -> Past:
    (
        id_,
        owner,
        sql,
        request,
        created,
        finished,
        status,
        rows,
        seconds,
        first_row,
        report,
        problem,
        retry_of,
    ) = row
    return Past(
        id_,
        owner,
        sql,
        json.loads(request),
        _moment(created),
        None if finished is None else _moment(finished),
        status,
        rows,
        seconds,
        first_row,
        None if report is None else json.loads(report),
        None if problem is None else json.loads(problem),
        retry_of,
    )


def _saved(row: tuple[Any, ...]) -> Saved:
    owner, name, request, created, changed = row
    return Saved(owner, name, json.loads(request), _moment(created), _moment(changed))


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _json(said: Mapping[str, Any]) -> str:
    try:
        return json_of(dict(said)).decode()
    except TypeError:  # a number of more than 64 bits, which clients may send
        return json.dumps(dict(said), default=str)


def _json_or_none(said: Mapping[str, Any] | None) -> str | None:
    return None if said is None else _json(said)


def _cursor(last: Past) -> str:
    """The place after a query, which holds though others come and go."""
    text = f"{last.created.timestamp()!r} {last.id}"
    return urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _place(cursor: str) -> tuple[float, str]:
    try:
        text = urlsafe_b64decode(cursor.encode() + b"=" * (-len(cursor) % 4)).decode()
        created, _, id_ = text.partition(" ")
        return float(created), id_
    except ValueError:
        raise Problem(
            422,
            "invalid-request",
            "after: no page gave this",
            hint="take what `next` of the page before says, or leave it out to begin with the latest",
            errors=[{"field": "after", "message": "no page gave this"}],
        ) from None
