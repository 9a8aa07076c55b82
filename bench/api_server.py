"""The processes that the API's bench compares: a server as `mediator serve` starts it, and a bare application.

FastAPI and uvicorn are imported where they are needed: the other benches do without them.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Mapping
from multiprocessing.connection import Connection
from typing import Any

from bench.ticking import ticks_during
from mediator.catalog.model import Catalog

TICK = 0.002


def serve(line: Connection, catalog: Catalog) -> None:
    """Says its port. Told "tick", its event loop's delay is measured until it is told so once more, and said."""
    from api.http import serving

    # What `mediator serve` writes for every query is written here, too; but not onto anybody's screen.
    with open(os.devnull, "w", encoding="utf-8") as nowhere, serving.listening("127.0.0.1", 0) as sock:
        logging.basicConfig(
            level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=nowhere
        )
        line.send(sock.getsockname()[1])

        async def run() -> None:
            house = serving.House(catalog, devoted=True)
            async with asyncio.TaskGroup() as group:
                ticking = group.create_task(_ticking(line))
                await serving.serve(house, sock)
                ticking.cancel()

        asyncio.run(run())


def serve_bare(line: Connection, prepared: Mapping[str, list[bytes]]) -> None:
    """The least that can stream these pieces over the same uvicorn: what is asked for is told by `Accept`."""
    import uvicorn

    from api.http.serving import listening

    async def app(scope: Any, receive: Any, send: Any) -> None:
        accept = dict(scope["headers"])[b"accept"].decode()
        start = {
            "type": "http.response.start",
            "status": 200,
            "headers": [(b"content-type", accept.encode())],
        }
        await send(start)
        for piece in prepared[accept]:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    with listening("127.0.0.1", 0) as sock:
        line.send(sock.getsockname()[1])
        config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="off", ws="none")
        asyncio.run(uvicorn.Server(config).serve(sockets=[sock]))


async def _ticking(line: Connection) -> None:
    told = asyncio.Event()

    def heard() -> None:
        line.recv()
        told.set()

    async def once() -> None:
        await told.wait()
        told.clear()

    asyncio.get_running_loop().add_reader(line.fileno(), heard)
    while True:
        await once()
        line.send("ticks")
        line.send(await ticks_during(once(), TICK))
