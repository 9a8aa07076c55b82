"""The manifest: which segments there are, and what they cover. One SQLite file; a transaction is a truth."""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple
from itertools import groupby
from pathlib import Path

import pyarrow as pa

from mediator.catalog.model import BindSet
from mediator.errors import StoreError
from mediator.store import bindings
from mediator.store.records import Covered, Declared, Held, Segment

FILE = "manifest.sqlite"
_VERSION = 2

_TABLES = """
CREATE TABLE IF NOT EXISTS relation (
    name TEXT PRIMARY KEY, fingerprint TEXT NOT NULL, schema BLOB NOT NULL, key TEXT NOT NULL, repeats INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS segment (
    number INTEGER PRIMARY KEY, relation TEXT NOT NULL, rows INTEGER NOT NULL, size INTEGER NOT NULL,
    latest REAL NOT NULL, lookup INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS coverage (
    relation TEXT NOT NULL, bind_set TEXT NOT NULL, binding TEXT NOT NULL, at REAL NOT NULL, until REAL NOT NULL,
    lookup INTEGER NOT NULL,
    PRIMARY KEY (relation, bind_set, binding)
) WITHOUT ROWID;
"""

_COVER = """
INSERT INTO coverage VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE
SET at = excluded.at, until = excluded.until, lookup = excluded.lookup WHERE excluded.at >= at
"""

_log = logging.getLogger(__name__)


class Manifest:
    """`renew` is for who has the store to itself: what an earlier version of the mediator kept is discarded then."""

    def __init__(self, folder: Path, renew: bool = False) -> None:
        self._db = sqlite3.connect(folder / FILE, isolation_level=None, check_same_thread=False)
        try:
            self._prepare(folder, renew)
        except BaseException as error:
            self._db.close()
            if isinstance(error, sqlite3.DatabaseError):
                raise StoreError(
                    f"{folder / FILE} is not a store's manifest ({error}): remove the folder, or name another"
                ) from None
            raise

    @contextmanager
    def writing(self) -> Iterator[None]:
        """All that is written within is true together, and on the disk at the end; or none of it is."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def declare(self, declared: Declared) -> None:
        self._db.execute(
            "INSERT OR IGNORE INTO relation VALUES (?, ?, ?, ?, ?)",
            (
                declared.name,
                declared.fingerprint,
                declared.schema.serialize().to_pybytes(),
                json.dumps(declared.key),
                declared.repeats,
            ),
        )

    def name(self, segments: Iterable[Segment]) -> None:
        found = [astuple(s) for s in segments]
        self._db.executemany("INSERT INTO segment VALUES (?, ?, ?, ?, ?, ?)", found)

    def unname(self, segments: Iterable[Segment]) -> None:
        self._db.executemany("DELETE FROM segment WHERE number = ?", [(s.number,) for s in segments])

    def cover(self, declared: Declared, covered: Sequence[Covered]) -> None:
        """Note these ends; of the same binding that which was asked last stays."""
        for bind_set, some in groupby(covered, key=lambda c: c.bind_set):
            same = list(some)
            texts = bindings.written(declared.schema, bind_set, [c.binding for c in same])
            self._db.executemany(
                _COVER,
                [
                    (declared.name, json.dumps(bind_set), text, c.at, c.until, c.lookup)
                    for text, c in zip(texts, same, strict=True)
                ],
            )

    def scanned(self, name: str) -> tuple[float, int] | None:
        """When the scan that covers the relation was asked, and its number."""
        query = "SELECT at, lookup FROM coverage WHERE relation = ? AND bind_set = '[]'"
        found: tuple[float, int] | None = self._db.execute(query, (name,)).fetchone()
        return found

    def uncover(self, name: str, until: float) -> int:
        """Forget what was asked no later than this; how many entries that were."""
        return self._db.execute("DELETE FROM coverage WHERE relation = ? AND at <= ?", (name, until)).rowcount

    def drop_expired(self, name: str, now: float) -> None:
        self._db.execute("DELETE FROM coverage WHERE relation = ? AND until < ?", (name, now))

    def forget(self, name: str) -> None:
        for table, column in (("relation", "name"), ("segment", "relation"), ("coverage", "relation")):
            self._db.execute(f"DELETE FROM {table} WHERE {column} = ?", (name,))

    def fingerprint(self, name: str) -> str | None:
        found = self._db.execute("SELECT fingerprint FROM relation WHERE name = ?", (name,)).fetchone()
        return found[0] if found else None

    def segments(self, name: str) -> list[Segment]:
        found = self._db.execute("SELECT * FROM segment WHERE relation = ? ORDER BY number", (name,))
        return [Segment(*row) for row in found]

    def numbers(self) -> Collection[int]:
        return {number for (number,) in self._db.execute("SELECT number FROM segment")}

    def newest(self) -> float:
        """The latest time that is noted anywhere; minus infinity where there is none."""
        query = "SELECT max(at) FROM (SELECT max(at) AS at FROM coverage UNION ALL SELECT max(latest) FROM segment)"
        (found,) = self._db.execute(query).fetchone()
        return float("-inf") if found is None else float(found)

    def numbered(self) -> int:
        """The highest number of a lookup that is noted anywhere."""
        query = "SELECT max(n) FROM (SELECT max(lookup) AS n FROM coverage UNION ALL SELECT max(lookup) FROM segment)"
        (found,) = self._db.execute(query).fetchone()
        return int(found or 0)

    def names(self) -> list[str]:
        return [name for (name,) in self._db.execute("SELECT name FROM relation ORDER BY name")]

    def held(self, name: str) -> Held | None:
        """What there is of a relation."""
        found = self._db.execute(
            "SELECT schema, key, repeats FROM relation WHERE name = ?", (name,)
        ).fetchone()
        if found is None:
            return None
        schema = pa.ipc.read_schema(pa.py_buffer(found[0]))
        declared = Declared(name, schema, tuple(json.loads(found[1])), bool(found[2]))
        return Held(declared, self.segments(name), self._covered(declared))

    def close(self) -> None:
        self._db.close()

    def _covered(self, declared: Declared) -> list[Covered]:
        query = (
            "SELECT bind_set, binding, at, until, lookup FROM coverage WHERE relation = ? ORDER BY bind_set"
        )
        covered: list[Covered] = []
        for written, some in groupby(self._db.execute(query, (declared.name,)), key=lambda row: row[0]):
            same, bind_set = list(some), _bind_set(written)
            values = bindings.read(declared.schema, bind_set, [row[1] for row in same])
            covered += [Covered(bind_set, v, *row[2:]) for v, row in zip(values, same, strict=True)]
        return covered

    def _prepare(self, folder: Path, renew: bool) -> None:
        self._db.execute("PRAGMA busy_timeout = 10000")
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        if version == _VERSION:
            self._db.execute("PRAGMA synchronous = FULL")
            return
        if renew and 0 < version < _VERSION:
            _log.warning(
                "What %s kept is discarded: an earlier version of the mediator wrote it (format %d, not %d)",
                folder,
                version,
                _VERSION,
            )
            self._write_anew()
            return
        if 0 < version < _VERSION:
            raise StoreError(
                f"{folder} was written by an earlier version of the mediator (format {version}, not {_VERSION}): "
                "what it kept is discarded when it is used next"
            )
        if version:
            raise StoreError(
                f"{folder} was written by another version of the mediator (format {version}, not {_VERSION}): "
                "name another folder"
            )
        if self._db.execute("SELECT count(*) FROM sqlite_master").fetchone() != (0,):
            raise StoreError(f"{folder / FILE} is a database of something else: name another folder")
        self._db.execute("PRAGMA journal_mode = WAL")
        self._write_anew()

    def _write_anew(self) -> None:
        self._db.execute("PRAGMA synchronous = FULL")
        gone = "".join(f"DROP TABLE IF EXISTS {table};" for table in ("relation", "segment", "coverage"))
        self._db.executescript(f"BEGIN IMMEDIATE; {gone} {_TABLES} PRAGMA user_version = {_VERSION}; COMMIT;")


def _bind_set(written: str) -> BindSet:
    return tuple(json.loads(written))
