"""What holds for all tests."""

from __future__ import annotations

import asyncio
import socket
from asyncio.selector_events import BaseSelectorEventLoop
from typing import Any

from hypothesis import settings

# How long an example takes says more of what else the machine does than of the code.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")

_accept = BaseSelectorEventLoop._accept_connection2  # type: ignore[attr-defined]


async def _accept_unless_closed(
    loop: asyncio.AbstractEventLoop,
    protocol: Any,
    connection: socket.socket,
    extra: Any,
    tls: Any = None,
    server: asyncio.Server | None = None,
    *times: Any,
    **said: Any,
) -> None:
    """Python forgets a connection that comes in the moment in which a site closes, and complains about it in
    whichever test collects the garbage (gh-109564)."""
    if server is not None and not server.sockets:
        connection.close()
        return
    await _accept(loop, protocol, connection, extra, tls, server, *times, **said)


BaseSelectorEventLoop._accept_connection2 = _accept_unless_closed  # type: ignore[attr-defined]
