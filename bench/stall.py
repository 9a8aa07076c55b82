"""How long the event loop is held up while a large join runs in the same process.

The local bench's join is asked of a mediator whose sources answer from memory, again and again, each time with empty
SteMs. Meanwhile a ticker on the same loop sleeps for a few milliseconds at a time: how much too late it wakes is how
long anything else that the process serves would have waited. The same ticker on an idle loop is the machine's own part.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Coroutine
from math import ceil
from pathlib import Path

from bench.memory import Memory, catalog_of
from bench.result import Result
from bench.shapes import NAMES, Shape, shape
from mediator.answering import Mediator

SUMMARY = "the event loop's delay while a large join runs in the same process"

_TICK = 0.002
_IDLE = 1.0  # seconds


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rows", type=int, default=1_000_000, help="of every table")
    parser.add_argument("--shape", choices=NAMES, default="int")
    parser.add_argument("--page", type=int, default=65_536, help="rows in a page")
    parser.add_argument("--seconds", type=float, default=10.0, help="for which queries follow one another")
    parser.add_argument(
        "--threads", type=int, default=None, help="of the mediator; its own default otherwise"
    )


def measure(options: argparse.Namespace) -> Result:
    data = shape(options.shape, options.rows)
    return asyncio.run(measured(data, options.page, options.seconds, options.threads))


async def measured(data: Shape, page: int, seconds: float, threads: int | None = None) -> Result:
    """The first query, in which kernels are loaded, is not counted; its worst delay is in the detail."""
    idle = await _ticks_during(asyncio.sleep(_IDLE))
    first = await _ticks_during(_query(data, page, threads))
    late: list[float] = []
    took: list[float] = []
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    while loop.time() < until:
        began = loop.time()
        late += await _ticks_during(_query(data, page, threads))
        took.append(loop.time() - began)
    late.sort()
    figures = {"stall_p99_ms": 1_000 * _quantile(late, 0.99), "stall_max_ms": 1_000 * late[-1]}
    detail = {
        "shape": data.name,
        "rows": data.rows,
        "page": page,
        "queries": len(took),
        "query_best_s": round(min(took), 3),
        "ticks": len(late),
        "tick_ms": 1_000 * _TICK,
        "late_ms": {f"p{q:g}": round(1_000 * _quantile(late, q / 100), 2) for q in (50, 90, 99, 99.9)},
        "first_query_worst_ms": round(1_000 * max(first), 2),
        "idle_p99_ms": round(1_000 * _quantile(sorted(idle), 0.99), 2),
    }
    return Result("stall", figures, detail, {"late": late})


def draw(result: Result, file: Path) -> None:
    """The share of ticks that were at most so late."""
    from bench.drawing import saved

    late = result.curves["late"]
    with saved(file, 1) as (axis,):
        axis.plot([1_000 * at for at in late], [(i + 1) / len(late) for i in range(len(late))])
        axis.set(
            title="Ticks by how late they were", xlabel="milliseconds", ylabel="share", xlim=0, ylim=(0.9, 1)
        )


async def _query(data: Shape, page: int, threads: int | None) -> None:
    catalog = catalog_of(data.tables, page)
    async with (
        Mediator(catalog, threads=threads, transport=Memory()) as mediator,
        mediator.answering(data.sql) as answers,
    ):
        async for _ in answers:
            pass
        if not answers.report.complete:
            raise RuntimeError(f"incomplete: {answers.report}")


async def _ticks_during(work: Coroutine[None, None, None]) -> list[float]:
    """How late, in seconds, every tick was for as long as the work went on.

    A loop that is held up for long misses ticks: those count too, each as late as it would have been.
    """
    loop, late = asyncio.get_running_loop(), []

    async def tick() -> None:
        while True:
            due = loop.time() + _TICK
            await asyncio.sleep(_TICK)
            behind = max(0.0, loop.time() - due)
            late.append(behind)
            while (behind := behind - _TICK) > 0:
                late.append(behind)

    async with asyncio.TaskGroup() as group:
        ticker = group.create_task(tick())
        await work
        await asyncio.sleep(2 * _TICK)
        ticker.cancel()
    return late


def _quantile(ordered: list[float], share: float) -> float:
    return ordered[min(len(ordered), ceil(share * len(ordered))) - 1]
