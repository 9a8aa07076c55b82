"""A proxy on loopback that breaks connections off by a script, or lets nothing through at all."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

# So small that a stream goes through in many pieces.
_PIECE = 256


@dataclass
class Proxy:
    """What it does, which may be changed at any time.

    `cuts`: for each request for results, in their order, after how many bytes of the response it breaks off; None for
    not at all, as are all that follow.
    """

    port: int
    url: str = ""
    cuts: deque[int | None] = field(default_factory=deque)
    asked: int = 0  # requests for results
    deaf: bool = False  # what is asked is not passed on any more
    refuses: bool = False  # what connects is sent away at once

    _open: set[asyncio.StreamWriter] = field(default_factory=set)
    _loop: asyncio.AbstractEventLoop | None = None

    def cut_now(self) -> None:
        """Break off all that is open."""
        assert self._loop is not None
        for writer in list(self._open):
            self._loop.call_soon_threadsafe(writer.transport.abort)

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, to its end."""
        if self.refuses:
            writer.transport.abort()
            return
        self._loop = asyncio.get_running_loop()
        self._open.add(writer)
        with suppress(OSError):
            up, down = await asyncio.open_connection("127.0.0.1", self.port)
            try:
                await self._pass_on(reader, writer, up, down)
            finally:
                down.transport.abort()
                writer.transport.abort()
                self._open.discard(writer)

    async def _pass_on(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        up: asyncio.StreamReader,
        down: asyncio.StreamWriter,
    ) -> None:
        left: list[int | None] = [None]

        async def asking() -> None:
            while data := await reader.read(1 << 16):
                if self.deaf:
                    continue
                if b"/results" in data:
                    self.asked += 1
                    left[0] = self.cuts.popleft() if self.cuts else None
                down.write(data)
                await down.drain()

        async def answering() -> None:
            while data := await up.read(_PIECE):
                if left[0] is not None:
                    data = data[: left[0]]
                    left[0] -= len(data)
                writer.write(data)
                await writer.drain()
                if left[0] == 0:
                    return

        try:
            async with asyncio.TaskGroup() as group:
                both = {group.create_task(asking()), group.create_task(answering())}
                await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
                for task in both:
                    task.cancel()
        except* OSError:
            pass  # one of the two has broken off by itself


@contextmanager
def proxied(port: int) -> Iterator[Proxy]:
    """In front of what listens there."""
    proxy = Proxy(port)
    ready, over = threading.Event(), asyncio.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    async def run() -> None:
        loops.append(asyncio.get_running_loop())
        server = await asyncio.start_server(proxy.take, "127.0.0.1", 0)
        proxy.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        ready.set()
        await over.wait()
        server.close()

    thread = threading.Thread(target=lambda: asyncio.run(run()), name="proxy")
    thread.start()
    ready.wait()
    try:
        yield proxy
    finally:
        loops[0].call_soon_threadsafe(over.set)
        thread.join()
