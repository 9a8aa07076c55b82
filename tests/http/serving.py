"""A real server on a free port, for the length of a block."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from api.http.desk import Desk
from api.http.serving import House, Server, listening, server
from mediator.catalog.model import Catalog

_PATIENCE = 30.0


@dataclass
class Served:
    url: str
    port: int
    server: Server
    loop: asyncio.AbstractEventLoop
    thread: threading.Thread

    @property
    def desk(self) -> Desk:
        assert self.server.desk is not None
        return self.server.desk

    def stop(self) -> None:
        """As a signal does; returns when it has ended."""
        if self.thread.is_alive():
            self.loop.call_soon_threadsafe(self.server.handle_exit, 15, None)
        self.thread.join(_PATIENCE)
        assert not self.thread.is_alive(), "the server did not end"


@contextmanager
def serving(catalog: Catalog, **said: Any) -> Iterator[Served]:
    """Serve this catalog; what is said more is the house's."""
    house = House(catalog, **said)
    with listening("127.0.0.1", 0) as sock:
        port = sock.getsockname()[1]
        made = server(house, "127.0.0.1", port)
        ready, ended = threading.Event(), []
        loops: list[asyncio.AbstractEventLoop] = []

        async def run() -> None:
            loops.append(asyncio.get_running_loop())
            async with asyncio.TaskGroup() as group:
                serving = group.create_task(made.serve(sockets=[sock]))
                while not made.started and not serving.done():
                    await asyncio.sleep(0.005)
                ready.set()

        def runs() -> None:
            try:
                asyncio.run(run())
            except BaseException as error:
                ended.append(error)
            finally:
                ready.set()

        thread = threading.Thread(target=runs, name="server")
        thread.start()
        assert ready.wait(_PATIENCE), "the server did not start"
        if ended:
            thread.join()
            raise ended[0]
        served = Served(f"http://127.0.0.1:{port}", port, made, loops[0], thread)
        try:
            yield served
        finally:
            served.stop()
        if ended:
            raise ended[0]
