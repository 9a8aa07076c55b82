"""Databases for the tests: a real PostgreSQL server of their own, and SQLite files."""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil
import signal
import socket
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.sql import SQL, Identifier

import sources
from mediator.catalog.model import Catalog

PASSWORD = "quite ' secret"
PASSWORD_ENV = "MEDIATOR_TEST_PASSWORD"
_MISSING = "PostgreSQL is not on this machine, and the tests start a server of it: apt-get install postgresql"
_SETTINGS = ("fsync=off", "listen_addresses=127.0.0.1", "max_connections=40", "log_min_messages=panic")
_numbers = count()


@dataclass(frozen=True)
class Server:
    """A PostgreSQL server on loopback, with one database and one user, who has a password."""

    port: int

    @property
    def base(self) -> str:
        return f"postgresql://mediator@127.0.0.1:{self.port}/postgres"

    def connect(self) -> psycopg.Connection[tuple[Any, ...]]:
        return psycopg.connect(self.base, password=PASSWORD, autocommit=True, application_name="tests")


@dataclass(frozen=True)
class Shop:
    """A schema of its own in the server, for one test."""

    server: Server
    schema: str
    admin: psycopg.Connection[tuple[Any, ...]]

    def run(self, *statements: str) -> None:
        for statement in statements:
            self.admin.execute(statement.encode())

    def fill(self, table: str, rows: Sequence[Sequence[object]]) -> None:
        places = ", ".join(["%s"] * len(rows[0]))
        with self.admin.cursor() as cursor:
            cursor.executemany(SQL("INSERT INTO {} VALUES (" + places + ")").format(Identifier(table)), rows)

    def busy(self) -> list[int]:
        """The backends that run a statement of the mediator's now."""
        found = self.admin.execute(
            "SELECT pid FROM pg_stat_activity WHERE application_name = 'mediator' AND state = 'active'"
        )
        return [pid for (pid,) in found.fetchall()]

    async def until_busy(self, busy: bool = True) -> list[int]:
        async with asyncio.timeout(30):
            while bool(pids := self.busy()) is not busy:
                await asyncio.sleep(0.01)
        return pids

    def catalog(
        self, folder: Path, relations: str, source: str = "", changed: tuple[str, str] = ("", "")
    ) -> Catalog:
        """The relations of a YAML text, in this schema (`$schema`) at the source `shop_db`; one part is `changed`."""
        text = f"""
sources:
  shop_db:
    base: {self.server.base}
    allow_private: true
    password_env: {PASSWORD_ENV}
    {source}
relations:
{relations.replace("$schema", self.schema)}
"""
        before, after = changed
        assert before in text
        return declared(folder, text.replace(before, after) if before else text)


def declared(folder: Path, text: str) -> Catalog:
    path = folder / f"declared_{next(_numbers)}.yaml"
    path.write_text(text, encoding="utf-8")
    return sources.load(path)


def sqlite_file(path: Path, *statements: str, rows: Sequence[tuple[str, Sequence[Any]]] = ()) -> Path:
    """A database file made by these statements; `rows` are inserts with their values."""
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)
        for insert, values in rows:
            connection.executemany(insert, values)
    return path


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """Started once for a session (for each process of it, where there are several), gone at its end."""
    with _folder() as folder:
        _make(folder)
        for attempt in range(3):
            process, port = _start(folder)
            try:
                if _ready(process, port):
                    yield Server(port)
                    return
            finally:
                _stop(process)
            assert attempt < 2, (folder / "log").read_text()


@pytest.fixture
def shop(server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    """An empty schema; the mediator finds the password in its environment."""
    monkeypatch.setenv(PASSWORD_ENV, PASSWORD)
    schema = f"shop_{os.getpid()}_{next(_numbers)}"
    with server.connect() as admin:
        admin.execute(SQL("CREATE SCHEMA {0}").format(Identifier(schema)))
        admin.execute(SQL("SET search_path = {0}").format(Identifier(schema)))
        try:
            yield Shop(server, schema, admin)
        finally:
            admin.execute(SQL("DROP SCHEMA {0} CASCADE").format(Identifier(schema)))


def _program(name: str) -> str:
    """Where it is: on the path, or where Debian keeps the versions side by side."""
    if found := shutil.which(name):
        return os.path.realpath(found)
    versions = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=lambda p: float(p.parts[-3]))
    if not versions:
        pytest.fail(_MISSING)
    return str(versions[-1])


def _owner() -> dict[str, Any]:
    """Whose processes they are: PostgreSQL does not run as root."""
    if os.geteuid() != 0:
        return {}
    names = {entry.pw_name for entry in pwd.getpwall()}
    user = pwd.getpwnam("postgres" if "postgres" in names else "nobody")
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


@contextmanager
def _folder() -> Iterator[Path]:
    """Not pytest's: a socket's path has to be short, and the folder belongs to another user."""
    folder = Path(tempfile.mkdtemp(prefix="mediator-pg-"))
    try:
        if owner := _owner():
            os.chown(folder, owner["user"], owner["group"])
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _make(folder: Path) -> None:
    (folder / "password").write_text(PASSWORD)
    subprocess.run(
        [
            *(_program("initdb"), "-D", folder / "data", "-U", "mediator", "-A", "scram-sha-256"),
            *("--pwfile", folder / "password", "--no-sync", "--locale=C", "-E", "UTF8"),
        ],
        cwd=folder,
        check=True,
        capture_output=True,
        **_owner(),
    )


def _start(folder: Path) -> tuple[subprocess.Popen[bytes], int]:
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    settings = [word for setting in _SETTINGS for word in ("-c", setting)]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [_program("postgres"), "-D", folder / "data", "-k", folder, "-p", str(port), *settings],
            cwd=folder,
            stdout=log,
            stderr=log,
            **_owner(),
        )
    return process, port


def _ready(process: subprocess.Popen[bytes], port: int) -> bool:
    """Whether it takes connections; false when it ended, as where another process took the port."""
    while process.poll() is None:
        try:
            Server(port).connect().close()
            return True
        except psycopg.OperationalError:
            try:
                process.wait(0.05)
            except subprocess.TimeoutExpired:
                continue
    return False


def _stop(process: subprocess.Popen[bytes]) -> None:
    """At once, whoever is connected."""
    if process.poll() is None:
        process.send_signal(signal.SIGQUIT)
        process.wait(30)
