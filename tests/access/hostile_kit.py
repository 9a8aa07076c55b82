"""What the tests of hostile sites share: a raw server, a canary, a resolver that lies, and a measure of memory."""

from __future__ import annotations

import asyncio
import gc
import socket
import struct
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from aiohttp.abc import AbstractResolver, ResolveResult

MEGABYTE = 1 << 20


@dataclass
class Wire:
    """A connection as the site sees it: it may write whatever it likes."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    head: bytes  # of the request

    async def say(self, *pieces: bytes) -> None:
        for piece in pieces:
            self.writer.write(piece)
            await self.writer.drain()

    async def without_end(self, piece: bytes, pause: float = 0.0) -> None:
        """Until the other side has had enough."""
        while True:
            await self.say(piece)
            await asyncio.sleep(pause)

    async def hang(self) -> None:
        await self.reader.read()

    async def reset(self) -> None:
        """Breaks the connection off, when what was said has been read."""
        for _ in range(10):  # turns of the loop, in which that happens
            await asyncio.sleep(0)
        at_once = struct.pack("ii", 1, 0)
        self.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)
        self.writer.transport.abort()


Script = Callable[[Wire], Awaitable[None]]


@dataclass
class RawSite:
    """Takes requests in, follows its script, and hangs up unless it is to keep the connection."""

    script: Script
    keep: bool = False
    base: str = ""
    port: int = 0
    heads: list[bytes] = field(default_factory=list)
    connections: int = 0
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        # A task that ends as cancelled would be reported as an error by asyncio's server.
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                self.heads.append(head)
                await self.script(Wire(reader, writer, head))
                if not self.keep:
                    break
        writer.close()

    async def finish(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@asynccontextmanager
async def raw_site(script: Script, *, host: str = "127.0.0.1", keep: bool = False) -> AsyncIterator[RawSite]:
    site = RawSite(script, keep)
    server = await asyncio.start_server(site.serve, host, 0)
    site.port = server.sockets[0].getsockname()[1]
    site.base = f"http://{host}:{site.port}"
    try:
        yield site
    finally:
        server.close()
        await site.finish()
        await server.wait_closed()


@dataclass
class Canary:
    """Sits in the engine's own house. Every connection to it is one too many."""

    port: int = 0
    connections: int = 0

    def alarm(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        writer.write(b'HTTP/1.1 200 OK\r\nContent-Length: 12\r\nConnection: close\r\n\r\n{"rows": []}')
        writer.close()


@asynccontextmanager
async def canary_listening() -> AsyncIterator[Canary]:
    """On one port of 127.0.0.1, and of ::1 where this machine has it."""
    canary = Canary()
    servers = [await asyncio.start_server(canary.alarm, "127.0.0.1", 0)]
    canary.port = servers[0].sockets[0].getsockname()[1]
    with suppress(OSError):
        servers.append(await asyncio.start_server(canary.alarm, "::1", canary.port))
    try:
        yield canary
    finally:
        for server in servers:
            server.close()
            await server.wait_closed()


class Liar(AbstractResolver):
    """Answers as scripted, once with each list of addresses and for ever with the last; never asks the real DNS.

    Numbers in the odd spellings that C libraries take for addresses are understood as these do.
    """

    def __init__(self, **names: Sequence[Sequence[str]]) -> None:
        self._names = {name.replace("_", "."): list(answers) for name, answers in names.items()}
        self.asked: list[str] = []

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        self.asked.append(host)
        answers = self._names.get(host.rstrip(".").lower(), [[host]])
        addresses = answers.pop(0) if len(answers) > 1 else answers[0]
        loop = asyncio.get_running_loop()
        results = []
        for address in addresses:
            for kind, _, protocol, _, found in await loop.getaddrinfo(
                address, port, family=family, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST
            ):
                place = ResolveResult(
                    hostname=host,
                    host=str(found[0]),
                    port=port,
                    family=kind,
                    proto=protocol,
                    flags=socket.AI_NUMERICHOST,
                )
                results.append(place)
        return results

    async def close(self) -> None:
        pass


@dataclass
class Growth:
    """How much more memory there was at the worst moment than before."""

    bytes: int = 0


@contextmanager
def memory_growth() -> Iterator[Growth]:
    """Of the whole process where the system tells it, else of what Python allocates."""
    growth = Growth()
    gc.collect()
    status = Path("/proc/self/status")
    try:
        Path("/proc/self/clear_refs").write_text("5")  # forgets the highest mark so far
        before = _peak(status)
    except OSError:
        tracemalloc.start()
        try:
            yield growth
            growth.bytes = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    else:
        yield growth
        growth.bytes = _peak(status) - before


def _peak(status: Path) -> int:
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) << 10
