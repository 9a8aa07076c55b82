"""A connection to a site: aiohttp's own, but that it believes less of what comes at the wrong time."""

from __future__ import annotations

from asyncio import AbstractEventLoop

from aiohttp import ClientPayloadError
from aiohttp.client_proto import ResponseHandler


def connection(loop: AbstractEventLoop) -> ResponseHandler:
    """A new one, for a connector that keeps it."""
    return _Connection(loop)


class _Connection(ResponseHandler):
    def is_connected(self) -> bool:
        """Whether a request may be sent on it. What has come since the last reply, and nobody has asked for, would be
        taken for the next one, and each reply from then on for that after it."""
        return super().is_connected() and not self.should_close

    def connection_lost(self, exc: BaseException | None) -> None:
        """A reply whose length was not told ends with its connection; but not where that was reset, which is no end."""
        if exc is not None and self._payload is not None and not self._payload.is_eof():
            self._payload.set_exception(ClientPayloadError("the connection was reset"), exc)
        super().connection_lost(exc)
