"""The transport for databases: the address of a mirror says who runs its statements."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Self

from mediator.access.databases.sqlite import SqliteTransport
from mediator.access.web.redaction import Redaction
from mediator.access.web.stretches import Stretches
from mediator.access.web.transport import Streams, Transport
from mediator.catalog.model import Mirror, Source
from mediator.catalog.statement import Statement
from mediator.catalog.wrapper import Reply, Request
from mediator.errors import Refused

if TYPE_CHECKING:
    from mediator.access.databases.postgresql import PostgresqlTransport

_NO_DRIVER = "PostgreSQL needs its driver: pip install 'mediator[postgres]'"


class DatabaseTransport:
    """Runs statements at `postgresql://` and `sqlite:///` mirrors; requests to all others go to `web`."""

    def __init__(
        self, sources: Mapping[str, Source], web: Transport, redaction: Redaction | None = None
    ) -> None:
        self._redaction = redaction or Redaction()
        self._sources = sources
        self._web = web
        self._stack = AsyncExitStack()
        self._sqlite = SqliteTransport()
        self._postgresql: PostgresqlTransport | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def send(self, mirror: Mirror, request: Request) -> Reply:
        match mirror.base.partition("://")[0], request:
            case "postgresql", Statement():
                return await self._with_driver().run(mirror, request)
            case "sqlite", Statement():
                return await self._sqlite.run(mirror, request)
            case (("postgresql" | "sqlite"), _):
                raise Refused(f"{mirror.source} is a database: declare the relation with 'database'")
            case _, Statement():
                raise Refused(f"{mirror.source} is no database: its address starts with another scheme")
            case _:
                return await self._web.send(mirror, request)

    async def stream(self, mirror: Mirror, request: Request, stretches: Stretches) -> Reply:
        """Of web sites, where those are asked by what can do it."""
        if isinstance(request, Statement) or not isinstance(self._web, Streams):
            return await self.send(mirror, request)
        return await self._web.stream(mirror, request, stretches)

    def _with_driver(self) -> PostgresqlTransport:
        """PostgreSQL's driver is an extra: who asks no such source does without."""
        if self._postgresql is None:
            try:
                from mediator.access.databases.postgresql import PostgresqlTransport
            except ImportError:
                raise Refused(_NO_DRIVER) from None
            self._postgresql = PostgresqlTransport(self._sources, self._redaction)
            self._stack.push_async_callback(self._postgresql.close)
        return self._postgresql
