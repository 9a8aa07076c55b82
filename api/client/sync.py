"""The same client for those who do not `await`: each method is the asynchronous one, waited for.

Nothing is done here a second time. `_waited` and its like turn a method of an asynchronous class into one that runs it
in the portal's thread; what is asked of a server, how and with what result, stands in `client.py` and `query.py` alone.
"""

from __future__ import annotations

import asyncio
import functools
import ssl
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import suppress
from types import TracebackType
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, Self, TypeVar, cast

import pyarrow as pa

from api.client.client import AsyncClient, connect_async
from api.client.errors import ClientError, Closed
from api.client.portal import Portal
from api.client.query import AsyncQuery
from api.client.reading import Batches as AsyncBatches
from api.client.records import End

P = ParamSpec("P")
A = TypeVar("A")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

_END = object()
_CANCELLING = 5.0  # seconds for a query to be cancelled after Ctrl-C


class Leavable(Protocol[T_co]):
    """An asynchronous iterator that can be left."""

    def __anext__(self) -> Awaitable[T_co]: ...

    async def aclose(self) -> None: ...


class _Waiting(Generic[A]):
    """Stands for something asynchronous."""

    def __init__(self, inner: A, portal: Portal, owner: Client | None) -> None:
        """The `owner` is kept, because a client that is forgotten is closed."""
        self._inner = inner
        self._portal = portal
        self._owner = owner

    def __repr__(self) -> str:
        return repr(self._inner)

    def _wait(self, work: Awaitable[T], query: AsyncQuery | None = None) -> T:
        """Its result. Ctrl-C meanwhile cancels the query that this is about."""
        try:
            return self._portal.wait(_coroutine(work))
        except KeyboardInterrupt:
            query = query or self._query()
            if query is not None:
                with suppress(ClientError):
                    self._portal.wait(_cancelled(query))
            raise

    def _query(self) -> AsyncQuery | None:
        return None

    def _client(self) -> Client | None:
        return self._owner


class Iterating(_Waiting[Leavable[T]]):
    """An iterator. `close` ends it early, and so does forgetting it."""

    def __init__(
        self, inner: Leavable[T], portal: Portal, owner: Client | None, query: AsyncQuery | None
    ) -> None:
        super().__init__(inner, portal, owner)
        self._of = query
        self._forgotten = weakref.finalize(self, _forgotten, portal, inner)
        self._forgotten.atexit = False  # the client is closed then, and everything with it

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T:
        item = self._wait(_next(self._inner))
        if item is _END:
            raise StopIteration
        return cast("T", item)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Read no more."""
        if self._forgotten.detach() is not None:
            with suppress(Closed):
                self._portal.wait(self._inner.aclose())

    def _query(self) -> AsyncQuery | None:
        return self._of


def _waited(
    method: Callable[Concatenate[Any, P], Awaitable[T]],
) -> Callable[Concatenate[_Waiting[Any], P], T]:
    """The same method, waited for."""

    @functools.wraps(method)
    def call(self: _Waiting[Any], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._wait(method(self._inner, *args, **kwargs))

    return call


def _iterated(
    method: Callable[Concatenate[Any, P], AsyncGenerator[T, None]],
) -> Callable[Concatenate[_Waiting[Any], P], Iterating[T]]:
    """The same iterator, whose items are waited for."""

    @functools.wraps(method)
    def call(self: _Waiting[Any], /, *args: P.args, **kwargs: P.kwargs) -> Iterating[T]:
        inner = method(self._inner, *args, **kwargs)
        return Iterating(inner, self._portal, self._client(), self._query())

    return call


def _started(
    method: Callable[Concatenate[Any, P], AsyncQuery],
) -> Callable[Concatenate[_Waiting[Any], P], Query]:
    """The same query, once the server has taken it."""

    @functools.wraps(method)
    def call(self: _Waiting[Any], /, *args: P.args, **kwargs: P.kwargs) -> Query:
        query = method(self._inner, *args, **kwargs)
        return Query(self._wait(query, query), self._portal, self._client())

    return call


class Batches(Iterating[pa.RecordBatch]):
    """The rows as they arrive, as record batches."""

    schema = _waited(AsyncBatches.schema)


class Query(_Waiting[AsyncQuery]):
    """A query at the server, which runs. `with` cancels it at the end of the block, if it still runs then."""

    records = _iterated(AsyncQuery.records)
    arrow = _waited(AsyncQuery.arrow)
    pandas = _waited(AsyncQuery.pandas)
    polars = _waited(AsyncQuery.polars)
    rows = _waited(AsyncQuery.rows)
    status = _waited(AsyncQuery.status)
    report = _waited(AsyncQuery.report)
    explain = _waited(AsyncQuery.explain)
    steer = _waited(AsyncQuery.steer)
    stop = _waited(AsyncQuery.stop)
    cancel = _waited(AsyncQuery.cancel)
    forget = _waited(AsyncQuery.forget)
    retry = _started(AsyncQuery.retry)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._wait(self._inner.__aexit__(kind, error, trace))

    @property
    def id(self) -> str:
        """The name of the query at the server."""
        return self._inner.id

    @property
    def end(self) -> End | None:
        """How it ended, once its results have been read to their end."""
        return self._inner.end

    @property
    def complete(self) -> bool | None:
        """Whether the answer that was read is all that there is; None as long as that is not known."""
        return self._inner.complete

    def batches(self) -> Batches:
        """The rows as Arrow record batches, as they arrive."""
        return Batches(self._inner.batches(), self._portal, self._owner, self._inner)

    def reader(self) -> pa.RecordBatchReader:
        """The rows as they arrive, for what reads Arrow: `duckdb.sql("SELECT ... FROM reader")`."""
        batches = self.batches()
        return pa.RecordBatchReader.from_batches(batches.schema(), batches)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.reader().__arrow_c_stream__(requested_schema)

    def _query(self) -> AsyncQuery:
        return self._inner


class Client(_Waiting[AsyncClient]):
    """Queries and what else there is at one server. To be closed, by `with` or `close`; forgetting it does as well."""

    query = _started(AsyncClient.query)
    attach = _started(AsyncClient.attach)
    run = _started(AsyncClient.run)
    queries = _iterated(AsyncClient.queries)
    explain = _waited(AsyncClient.explain)
    relations = _waited(AsyncClient.relations)
    relation = _waited(AsyncClient.relation)
    sources = _waited(AsyncClient.sources)
    source = _waited(AsyncClient.source)
    cache = _waited(AsyncClient.cache)
    saved = _waited(AsyncClient.saved)
    saved_query = _waited(AsyncClient.saved_query)
    save = _waited(AsyncClient.save)
    forget = _waited(AsyncClient.forget)
    ready = _waited(AsyncClient.ready)

    def __init__(self, inner: AsyncClient) -> None:
        super().__init__(inner, Portal(inner), None)
        self._closing = weakref.finalize(self, self._portal.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Cancels what this client started and nobody told to go on, and ends its thread."""
        self._closing()

    def _client(self) -> Client:
        return self


def connect(
    url: str,
    key: str | None = None,
    *,
    timeout: float | None = 60.0,
    silence: float | None = None,
    tries: int = 5,
    tls: ssl.SSLContext | None = None,
) -> Client:
    """A client for the server at `url`: what `connect_async` gives, for those who do not `await`."""
    return Client(connect_async(url, key, timeout=timeout, silence=silence, tries=tries, tls=tls))


def _coroutine(work: Awaitable[T]) -> Coroutine[Any, Any, T]:
    return work if isinstance(work, Coroutine) else _awaited(work)


async def _awaited(work: Awaitable[T]) -> T:
    return await work


async def _next(items: Leavable[T]) -> T | object:
    try:
        return await items.__anext__()
    except StopAsyncIteration:
        return _END


async def _cancelled(query: AsyncQuery) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(_CANCELLING):
            await query.cancel()


def _forgotten(portal: Portal, items: Leavable[Any]) -> None:
    portal.leave(items.aclose())
