"""How long others wait: a sleeper on a loop that has other things to do, or on one that has none, and a visitor."""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import Callable, Coroutine
from multiprocessing.connection import Connection
from time import perf_counter
from types import TracebackType
from typing import Self

import aiohttp


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


async def replies_during(work: Coroutine[None, None, None], tick: float, url: str) -> list[float]:
    """How long, in seconds, each reply took that was asked for meanwhile, one after another."""
    took: list[float] = []

    async def ask(session: aiohttp.ClientSession) -> None:
        while True:
            began = perf_counter()
            async with session.get(url) as response:
                response.raise_for_status()
                await response.read()
            took.append(perf_counter() - began)
            await asyncio.sleep(tick)

    async with aiohttp.ClientSession() as session, asyncio.TaskGroup() as group:
        asking = group.create_task(ask(session))
        await work
        asking.cancel()
    return took


class Elsewhere:
    """Ticks or replies `during` the block, in a process of its own; `found` when the block is over."""

    def __init__(self, during: Callable[..., Coroutine[None, None, list[float]]], *arguments: object) -> None:
        self.found: list[float] = []
        self._told = during, arguments

    def __enter__(self) -> Self:
        spawning = multiprocessing.get_context("spawn")
        self._line, theirs = spawning.Pipe()
        self._process = spawning.Process(target=_elsewhere, args=(theirs, *self._told), daemon=True)
        self._process.start()
        self._line.recv()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._line.send("end")
        self.found = self._line.recv()
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


def _elsewhere(
    line: Connection, during: Callable[..., Coroutine[None, None, list[float]]], arguments: tuple[object, ...]
) -> None:
    async def until_told() -> None:
        told = asyncio.Event()
        asyncio.get_running_loop().add_reader(line.fileno(), told.set)
        line.send("begun")
        await told.wait()

    line.send(asyncio.run(during(until_told(), *arguments)))
