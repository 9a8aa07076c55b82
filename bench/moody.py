"""A site over real HTTP, in a process of its own, with a corner for each mood that a polite fetch has to bear.

Every corner answers `/at?k=1,2` with one row for each key, in its own way, and counts its requests.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from random import Random
from types import TracebackType
from typing import Self

from aiohttp import web


@dataclass(frozen=True)
class Moods:
    """Times in seconds."""

    latency: float = 0.05
    late: float = 1.0  # of a few replies in the late corner
    late_share: float = 0.02
    places: int = 16  # requests that the tight corners bear at once, at first
    halves_after: float = 2.0  # from their first request on; half as many places from then on
    failing_share: float = 0.5


class MoodySite:
    """`with MoodySite(moods) as site`: serves until the block ends."""

    def __init__(self, moods: Moods) -> None:
        self.moods = moods

    def __enter__(self) -> Self:
        spawning = multiprocessing.get_context("spawn")
        self._line, theirs = spawning.Pipe()
        self._process = spawning.Process(target=_serve, args=(theirs, self.moods), daemon=True)
        self._process.start()
        self.url: str = self._line.recv()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._line.send("end")
        self._process.join()

    def counted(self) -> dict[str, int]:
        """Requests by corner, and all the `refused` ones; then it is as if nothing had been asked."""
        self._line.send("counted")
        counted: dict[str, int] = self._line.recv()
        return counted


class _Corners:
    """What each corner does: a status, when the reply is due."""

    def __init__(self, moods: Moods) -> None:
        self._moods = moods
        self.ways: dict[str, Callable[[], Awaitable[int]]] = {
            "calm": self._calm,
            "late": self._late,
            "down": self._down,
            "failing": self._failing,
            "refusing": self._refusing,
            "queueing": self._queueing,
        }
        self.reset()

    def reset(self) -> None:
        self.counted: Counter[str] = Counter()
        self._random = Random(1)
        self._inside = 0
        self._queue: deque[asyncio.Future[None]] = deque()
        self._tight_since: float | None = None

    async def at(self, request: web.Request) -> web.Response:
        corner = request.match_info["corner"]
        self.counted[corner] += 1
        status = await self.ways[corner]()
        if status != 200:
            self.counted["refused"] += 1
            return web.Response(status=status)
        rows = [[int(k), f"v{k}"] for k in request.query["k"].split(",")]
        return web.Response(body=json.dumps({"rows": rows}).encode(), content_type="application/json")

    async def _calm(self) -> int:
        await asyncio.sleep(self._moods.latency)
        return 200

    async def _late(self) -> int:
        late = self._random.random() < self._moods.late_share
        await asyncio.sleep(self._moods.late if late else self._moods.latency)
        return 200

    async def _down(self) -> int:
        return 503

    async def _failing(self) -> int:
        await asyncio.sleep(self._moods.latency)
        return 500 if self._random.random() < self._moods.failing_share else 200

    async def _refusing(self) -> int:
        if self._inside >= self._places():
            return 503
        self._inside += 1
        return await self._worked_on()

    async def _queueing(self) -> int:
        if self._inside >= self._places():
            place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._queue.append(place)
            await place
        else:
            self._inside += 1
        return await self._worked_on()

    async def _worked_on(self) -> int:
        await asyncio.sleep(self._moods.latency)
        if self._queue and self._inside <= self._places():
            self._queue.popleft().set_result(None)  # who waits takes over the place
        else:
            self._inside -= 1
        return 200

    def _places(self) -> int:
        now = asyncio.get_running_loop().time()
        if self._tight_since is None:
            self._tight_since = now
        return self._moods.places // (2 if now - self._tight_since >= self._moods.halves_after else 1)


def _serve(line: Connection, moods: Moods) -> None:
    asyncio.run(_serving(line, moods))


async def _serving(line: Connection, moods: Moods) -> None:
    corners = _Corners(moods)
    app = web.Application()
    app.router.add_get("/{corner}/at", corners.at)
    runner = web.AppRunner(app, access_log=None, handler_cancellation=False, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    line.send(f"http://{host}:{port}")
    loop = asyncio.get_running_loop()
    while await loop.run_in_executor(None, line.recv) != "end":
        line.send(dict(corners.counted))
        corners.reset()
    await runner.cleanup()
