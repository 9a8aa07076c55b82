"""PEP 249 (DB-API 2.0): the mediator for programs that speak to any database.

    with connect("http://127.0.0.1:8080") as connection, connection.cursor() as cursor:
        cursor.execute("SELECT title FROM books WHERE year > ?", (2020,))
        for (title,) in cursor: ...

Rows are fetched as they arrive: the first can be there long before the last exists. There is nothing to write to, so
there are no transactions: `commit` and `rollback` do nothing, and whatever would change data is a `NotSupportedError`.
Beside the standard: `$name` with a mapping of parameters, `Cursor.complete` and `Cursor.report`, which say whether the
rows are all that there are, and `Cursor.fetch_arrow_table`.
"""

from __future__ import annotations

import datetime
import itertools
import ssl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Any, NoReturn, Self, Unpack

import pyarrow as pa

from api.client import errors, sync
from api.client.options import Options
from api.client.parameters import Parameters
from api.client.types import sql_name
from api.client.values import python_values

apilevel = "2.0"
threadsafety = 2  # threads may share the module and connections
paramstyle = "qmark"


class Warning(Exception):
    """What is worth a word: an answer that is not complete."""


class Error(Exception):
    """All that follows. `problem` is the client's own exception, where there is one."""

    problem: errors.ClientError | None = None


class InterfaceError(Error):
    """Something is used that was closed, or in a way that makes no sense."""


class DatabaseError(Error):
    """The server says no, or does not say anything."""


class DataError(DatabaseError):
    """A value that cannot be worked with."""


class OperationalError(DatabaseError):
    """Out of reach, overloaded, not allowed, cut off, or not complete where it was to be whole."""


class IntegrityError(DatabaseError):
    """Never raised: nothing is written."""


class InternalError(DatabaseError):
    """The server's own fault."""


class ProgrammingError(DatabaseError):
    """The statement or its parameters are at fault."""


class NotSupportedError(DatabaseError):
    """It is not done here: what would change data, above all."""


# The first that fits.
_ERRORS: Sequence[tuple[type[errors.ClientError] | tuple[type[errors.ClientError], ...], type[Error]]] = (
    (errors.Closed, InterfaceError),
    (errors.Unsupported, NotSupportedError),
    ((errors.QueryProblem, errors.InvalidRequest, errors.TooLarge), ProgrammingError),
    (errors.Internal, InternalError),
    (errors.ClientError, OperationalError),
)


class _Type:
    """Equal to the names of the types that it stands for, which a column's description has."""

    def __init__(self, name: str, *starts: str) -> None:
        self._name = name
        self._starts = starts

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str):
            return other.startswith(self._starts) if self._starts else False
        return self is other

    def __hash__(self) -> int:
        return hash(self._name)

    def __repr__(self) -> str:
        return self._name


STRING = _Type("STRING", "VARCHAR")
BINARY = _Type("BINARY", "BLOB")
NUMBER = _Type(
    "NUMBER", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT",
    "REAL", "DOUBLE", "DECIMAL", "BOOLEAN",
)  # fmt: skip
DATETIME = _Type("DATETIME", "DATE", "TIME", "INTERVAL")
ROWID = _Type("ROWID")  # there are none

Date = datetime.date
Time = datetime.time
Timestamp = datetime.datetime
Binary = bytes
DateFromTicks = datetime.date.fromtimestamp
TimestampFromTicks = datetime.datetime.fromtimestamp


def TimeFromTicks(ticks: float) -> datetime.time:  # noqa: N802 - the standard's name
    """The time of day, here."""
    return datetime.datetime.fromtimestamp(ticks).time()


def connect(
    url: str,
    key: str | None = None,
    *,
    whole: bool = False,
    timeout: float | None = 60.0,
    silence: float | None = None,
    tls: ssl.SSLContext | None = None,
    **options: Unpack[Options],
) -> Connection:
    """A connection to the server at `url`. Raises an `OperationalError` if none answers there.

    `whole`: an answer that is not complete is an `OperationalError`; otherwise it is a warning, and a message of its
    cursor. `options` are those of a query, for every query of the connection.
    """
    with told():
        client = sync.connect(url, key, timeout=timeout, silence=silence, tls=tls)
        try:
            client.ready()
        except BaseException:
            client.close()
            raise
    return Connection(client, whole, options)


class Connection:
    """Gives cursors, which are independent of one another: each has a query of its own."""

    Warning = Warning
    Error = Error
    InterfaceError = InterfaceError
    DatabaseError = DatabaseError
    DataError = DataError
    OperationalError = OperationalError
    IntegrityError = IntegrityError
    InternalError = InternalError
    ProgrammingError = ProgrammingError
    NotSupportedError = NotSupportedError

    def __init__(self, client: sync.Client, whole: bool, options: Options) -> None:
        self._client: sync.Client | None = client
        self._whole = whole
        self._options = options

    @property
    def client(self) -> sync.Client:
        """What asks the server; also for what the standard has no word for."""
        if self._client is None:
            raise InterfaceError("the connection was closed")
        return self._client

    def cursor(self) -> Cursor:
        """A new cursor."""
        return Cursor(self.client, self, self._whole, self._options)

    def commit(self) -> None:
        """Does nothing: there are no transactions."""
        self._check()

    def rollback(self) -> None:
        """Does nothing: there are no transactions."""
        self._check()

    def ping(self) -> None:
        """Returns if the server takes queries."""
        with told():
            self.client.ready()

    def close(self) -> None:
        """Ends the queries of its cursors."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _check(self) -> None:
        assert self.client


class Cursor:
    """Asks one query after the other, and fetches its rows."""

    def __init__(self, client: sync.Client, connection: Connection, whole: bool, options: Options) -> None:
        self.connection = connection
        self.arraysize = 1
        self.messages: list[tuple[type[Exception], object]] = []
        self.lastrowid = None
        self._client: sync.Client | None = client
        self._whole = whole
        self._options = options
        self._result: _Result | None = None

    @property
    def description(self) -> list[tuple[str, str, None, None, None, None, None]] | None:
        """Name and type of each column: names of SQL's types, which `STRING`, `NUMBER` and the others equal."""
        if self._result is None:
            return None
        return [(f.name, sql_name(f.type), None, None, None, None, None) for f in self._result.schema]

    @property
    def rowcount(self) -> int:
        """How many rows there are, once all have been fetched; -1 before, as nobody knows."""
        return self._result.fetched if self._result is not None and self._result.exhausted else -1

    @property
    def rownumber(self) -> int | None:
        """How many rows have been fetched."""
        return None if self._result is None else self._result.fetched

    @property
    def complete(self) -> bool | None:
        """Whether the rows are all that there are; None as long as that is not known."""
        return None if self._result is None else self._result.query.complete

    @property
    def report(self) -> Mapping[str, Any] | None:
        """What was asked, answered and failed."""
        with told():
            return None if self._result is None else self._result.query.report()

    def execute(self, operation: str, parameters: Parameters | None = None) -> Self:
        """Asks a query. Returns when its columns are known, which is before its rows are."""
        client = self._open()
        self._leave()
        self.messages.clear()
        # Nobody else reads it: a query whose cursor is gone is not to go on.
        options: Options = {"on_disconnect": "cancel", **self._options}
        try:
            with told():
                query = client.query(operation, parameters, whole=self._whole, **options)
                batches = query.batches()
                self._result = _Result(query, batches, batches.schema())
        except TypeError as error:
            raise ProgrammingError(str(error)) from error
        return self

    def executemany(self, operation: str, seq_of_parameters: Sequence[Parameters]) -> NoReturn:
        """Not supported: it is for writing."""
        self._open()
        raise NotSupportedError("executemany is for statements that write, and nothing is written here")

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row, as soon as it is there; None after the last."""
        return next(self, None)

    def fetchmany(self, size: int | None = None) -> list[tuple[Any, ...]]:
        """The next rows: so many, or as many as there are left."""
        self._asked()
        return list(itertools.islice(self, self.arraysize if size is None else size))

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All the rows that are left."""
        self._asked()
        return list(self)

    def fetch_arrow_table(self) -> pa.Table:
        """All the rows that are left, as they came."""
        result = self._asked()
        with self._telling(result):
            return result.table()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> tuple[Any, ...]:
        result = self._asked()
        with self._telling(result):
            row = result.row()
        if row is None:
            raise StopIteration
        return row

    def setinputsizes(self, sizes: Sequence[Any]) -> None:
        """Does nothing: nobody needs to know."""
        self._open()

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Does nothing: values come as long as they are."""
        self._open()

    def close(self) -> None:
        """Ends its query, if that still runs."""
        self._leave()
        self._client = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _open(self) -> sync.Client:
        assert self.connection.client
        if self._client is None:
            raise InterfaceError("the cursor was closed")
        return self._client

    def _asked(self) -> _Result:
        self._open()
        if self._result is None:
            raise ProgrammingError("nothing to be fetched: execute a query first")
        return self._result

    def _leave(self) -> None:
        if self._result is not None:
            self._result.leave()
        self._result = None

    @contextmanager
    def _telling(self, result: _Result) -> Iterator[None]:
        """While rows are fetched. What is missing is told as a message after the last."""
        before = result.exhausted
        with told():
            yield
        if result.exhausted and not before and result.query.complete is False:
            self.messages.append((Warning, f"the answer of the query {result.query.id} is not complete"))


class _Result:
    """The rows of one query, of which some have been fetched."""

    def __init__(self, query: sync.Query, batches: sync.Batches, schema: pa.Schema) -> None:
        self.query = query
        self.schema = schema
        self.fetched = 0
        self.exhausted = False
        self._batches = batches
        self._batch: pa.RecordBatch | None = None  # the one that is being fetched from
        self._at = 0  # how many of its rows have been
        self._rows: Iterator[tuple[Any, ...]] = iter(())

    def row(self) -> tuple[Any, ...] | None:
        """The next one."""
        while (row := next(self._rows, None)) is None:
            self._batch = self._next_batch()
            if self._batch is None:
                return None
            self._at = 0
            self._rows = zip(*map(python_values, self._batch.columns), strict=True)
        self._at += 1
        self.fetched += 1
        return row

    def table(self) -> pa.Table:
        """All that are left."""
        left = [] if self._batch is None else [self._batch.slice(self._at)]
        self._batch, self._rows = None, iter(())
        while (batch := self._next_batch()) is not None:
            left.append(batch)
        self.fetched += sum(batch.num_rows for batch in left)
        return pa.Table.from_batches(left, self.schema)

    def leave(self) -> None:
        """Ends what still runs."""
        if not self.exhausted:
            with suppress(errors.ClientError):
                self._batches.close()
                self.query.cancel()

    def _next_batch(self) -> pa.RecordBatch | None:
        if self.exhausted:
            return None
        batch = next(self._batches, None)
        self.exhausted = batch is None
        return batch


@contextmanager
def told() -> Iterator[None]:
    """The client's errors as the standard's."""
    try:
        yield
    except errors.ClientError as error:
        kind = next(standard for ours, standard in _ERRORS if isinstance(error, ours))
        told = kind(str(error))
        told.problem = error
        raise told from error
