"""Statements to PostgreSQL, through psycopg. Only this file knows the driver, which is an extra."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any

import numpy as np
import psycopg
from psycopg import AsyncConnection, AsyncCursor, AsyncRawCursor, conninfo
from psycopg.adapt import AdaptersMap, Buffer, Loader
from psycopg.types.string import TextLoader

from mediator.access.reading import Unsuitable
from mediator.access.web.addresses import is_public
from mediator.access.web.redaction import Redaction
from mediator.catalog.model import Mirror, Source
from mediator.catalog.statement import Result, Row, Statement
from mediator.errors import (
    RateLimited,
    Refused,
    SchemaChanged,
    SourceError,
    TimedOut,
    Unreachable,
    Unreadable,
)

Connection = AsyncConnection[Row]

_SETTINGS = (
    "SET statement_timeout = {timeout}; SET default_transaction_read_only = on; "
    "SET TimeZone = 'UTC'; SET DateStyle = 'ISO'; SET client_encoding = 'UTF8'; SET extra_float_digits = 1"
)
_OPTIONS = {
    "application_name": "mediator",
    "connect_timeout": 10,
    "gssencmode": "disable",
    # A server that is gone without a word is found out, also while a statement runs.
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
}
# What the driver makes Python values of. All other types come as PostgreSQL writes them: as text.
_TOLD_APART = {
    *("bool", "int2", "int4", "int8", "oid", "float4", "float8", "numeric"),
    *("text", "varchar", "bpchar", "name", "bytea", "date", "timestamp", "timestamptz"),
}
# Encodings in which bytes are in the order of the code points.
_IN_ORDER = {"UTF8", "LATIN1"}
_PIECE = 2_000  # rows
_LONGEST = 2**31 - 1  # milliseconds that a timeout can say


class PostgresqlTransport:
    """Connections are kept between statements, for each mirror as many as its source's gate lets in."""

    def __init__(self, sources: Mapping[str, Source], redaction: Redaction) -> None:
        self._redaction = redaction
        self._sources = sources
        self._adapters = _adapters()
        self._idle: dict[Mirror, list[Connection]] = {}

    async def close(self) -> None:
        for mirror in tuple(self._idle):
            await self._drop(mirror)

    async def run(self, mirror: Mirror, statement: Statement) -> Result:
        """Runs it. Where the caller is cancelled, so is the statement, by the server."""
        source = self._sources[mirror.source]
        secret = source.password.read() if source.password else ""
        self._redaction.add(secret)
        try:
            connection = await self._connected(mirror, source, secret)
            try:
                cursor = await connection.execute(statement.sql, statement.parameters or None)
                rows, kinds = await _all_of(cursor), _kinds(cursor)
            except BaseException:
                await connection.close()
                raise
        except (psycopg.Error, UnicodeError, OSError) as error:
            failure = self._redaction.cleaned(understood(error))
            if isinstance(failure, Unreachable):
                await self._drop(mirror)  # those that wait were most likely lost together with it
            raise failure from None  # the driver's own error may quote what is secret
        self._idle.setdefault(mirror, []).append(connection)
        return Result(200, {}, b"", rows, kinds)

    async def _connected(self, mirror: Mirror, source: Source, secret: str) -> Connection:
        if idle := self._idle.get(mirror):
            return idle.pop()
        options: dict[str, Any] = {**_OPTIONS, **conninfo.conninfo_to_dict(mirror.base)}
        options |= await _place(options, source)
        if secret:
            options["password"] = secret
        try:
            connection = await AsyncConnection.connect(
                "", autocommit=True, context=self._adapters, cursor_factory=AsyncRawCursor, **options
            )
        except asyncio.CancelledError as error:
            # Its traceback would hold the half-open socket, and be held itself by what is told of the failure.
            raise error.with_traceback(None) from None
        try:
            timeout = max(1, min(_LONGEST, round(1000 * min(source.deadline, _LONGEST))))
            await connection.execute(_SETTINGS.format(timeout=timeout).encode())
        except BaseException:
            await connection.close()
            raise
        return connection

    async def _drop(self, mirror: Mirror) -> None:
        for connection in self._idle.pop(mirror, ()):
            await connection.close()


async def _all_of(cursor: AsyncCursor[Row]) -> tuple[Row, ...]:
    """Every row. The values of many are made in pieces, so that the loop keeps turning."""
    rows: list[Row] = []
    while piece := await cursor.fetchmany(_PIECE):
        rows += piece
        await asyncio.sleep(0)
    return tuple(rows)


def _kinds(cursor: AsyncCursor[Row]) -> tuple[str, ...]:
    """The names of the columns' types; of those that were made in the database, a number. A text whose bytes are in
    another order than its letters is of a kind of its own."""
    codes = [column.type_code for column in cursor.description or ()]
    names = [found.name if (found := psycopg.adapters.types.get(c)) else str(c) for c in codes]
    encoding = cursor.connection.info.parameter_status("server_encoding")
    if encoding in _IN_ORDER:
        return tuple(names)
    return tuple(f"{name} in {encoding}" if name in {"text", "varchar"} else name for name in names)


async def _place(options: Mapping[str, Any], source: Source) -> dict[str, str]:
    """The addresses to connect to, looked at before. Raises `Refused` for a private one that is not allowed."""
    host, port = str(options.get("host") or ""), str(options.get("port") or 5432)
    if not host or host.startswith(("/", "@")):
        if not source.allow_private:
            raise Refused(
                "a socket of this machine is private: if it is meant to be asked, declare `allow_private`"
            )
        return {}
    loop = asyncio.get_running_loop()
    try:
        infos = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise Unreachable(f"no address for {host}: {error}", again=True) from None
    addresses = list(dict.fromkeys(str(info[4][0]).partition("%")[0] for info in infos))
    if not source.allow_private:
        for address in addresses:
            if not is_public(ip_address(address)):
                raise Refused(
                    f"{address} is not a public address, and the source does not allow private ones:"
                    " if it is meant to be there, declare `allow_private`"
                )
    return {"host": ",".join([host] * len(addresses)), "hostaddr": ",".join(addresses)}


def understood(error: Exception) -> SourceError:
    """What an exception of the driver means to the engine."""
    said, state = str(error), ""
    if isinstance(error, psycopg.Error):
        said, state = error.diag.message_primary or said, error.sqlstate or ""
    said = " ".join(said.split())
    if state:
        return _refusal(state, said)
    if isinstance(error, UnicodeError | psycopg.DataError):
        return _unfit(error, said)
    if isinstance(error, psycopg.OperationalError | OSError):
        return _unconnected(said)
    return Refused(said)


def _refusal(state: str, said: str) -> SourceError:
    """What PostgreSQL's five letters mean; the first two are the class of the error."""
    match state[:2], state:
        case ("42", "42P01" | "42703" | "42883" | "42804") | ("3F", _):
            return SchemaChanged(said)
        case "57", "57014":
            return TimedOut(said, again=True)
        case _, "53300":
            return RateLimited(said, again=True)
        case ("08", _) | ("57", "57P01" | "57P02" | "57P03"):
            return Unreachable(said, again=True)
        case (("40" | "53" | "55"), _):
            return Refused(said, again=True)
        case "22", _:
            return Unsuitable(said)
        case _:
            return Refused(said)


def _unfit(error: Exception, said: str) -> SourceError:
    """The driver's own doubts: about a value on its way there, or about one that came back."""
    if isinstance(error, UnicodeEncodeError) or "NUL" in said:
        return Unsuitable(f"a value cannot be put to PostgreSQL: {said}")
    return Unreadable(said)


def _unconnected(said: str) -> SourceError:
    """A connection that could not be had, or broke. The driver gives no code for why: only the words."""
    _, fatal, why = said.partition("FATAL: ")
    if "no password supplied" in said:
        return Refused("it wants a password: name where it is in the source's password_env or password_file")
    if "certificate" in said:
        return Refused(said)
    if not fatal or any(w in why for w in ("starting up", "shutting down", "recovery", "terminating")):
        return Unreachable(said, again=True)
    if any(w in why for w in ("too many", "connection slots")):
        return RateLimited(said, again=True)
    return Refused(why.strip())


class _Float4(Loader):
    """The number that is stored. PostgreSQL writes 0.1 for the nearest 32 bits, and would not find it by 0.1."""

    def load(self, data: Buffer) -> float:
        return float(np.float32(bytes(data)))


def _adapters() -> AdaptersMap:
    adapters = AdaptersMap(psycopg.adapters)
    for type_ in psycopg.adapters.types:
        if type_.name not in _TOLD_APART:
            adapters.register_loader(type_.oid, TextLoader)
        if type_.array_oid:
            adapters.register_loader(type_.array_oid, TextLoader)
    adapters.register_loader("float4", _Float4)
    return adapters
