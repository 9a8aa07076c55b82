"""How late a sleeper wakes: on a loop that has other things to do, and in a process that has none."""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import Coroutine
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Self


async def ticks_during(work: Coroutine[None, None, None], tick: float) -> list[float]:
    """How late, in seconds, every tick was for as long as the work went on.

    A loop that is held up for long misses ticks: those count too, each as late as it would have been.
    """
    late: list[float] = []
    async with asyncio.TaskGroup() as group:
        ticker = group.create_task(_tick(tick, late))
        await work
        await asyncio.sleep(2 * tick)
        ticker.cancel()
    return late


class Elsewhere:
    """The same in a process of its own. After the block, `late` says how late its ticks were."""

    def __init__(self, tick: float) -> None:
        self.late: list[float] = []
        self._tick = tick

    def __enter__(self) -> Self:
        spawning = multiprocessing.get_context("spawn")
        self._line, theirs = spawning.Pipe()
        self._process = spawning.Process(target=_elsewhere, args=(theirs, self._tick), daemon=True)
        self._process.start()
        self._line.recv()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._line.send("end")
        self.late = self._line.recv()
        self._process.join()


async def _tick(tick: float, late: list[float]) -> None:
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + tick
        await asyncio.sleep(tick)
        behind = max(0.0, loop.time() - due)
        late.append(behind)
        while (behind := behind - tick) > 0:
            late.append(behind)


def _elsewhere(line: Connection, tick: float) -> None:
    async def until_told() -> None:
        told = asyncio.Event()
        asyncio.get_running_loop().add_reader(line.fileno(), told.set)
        line.send("begun")
        await told.wait()

    line.send(asyncio.run(ticks_during(until_told(), tick)))
