"""How long the event loop is held up while a large join runs in a process that serves.

The local bench's join is asked of a mediator whose sources answer from memory, again and again, each time with empty
SteMs. Meanwhile a ticker on the same loop sleeps for a few milliseconds at a time: how much too late it wakes is how
long anything else that the process serves would have waited. The same ticker in another process, which does nothing
else, runs at the same time: what it is late is the machine's part, and not the loop's. On the loop is a server, as
`mediator serve` starts it; a visitor from a third process asks it, again and again, whether it is well.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from math import ceil
from pathlib import Path

from api.http.serving import House, listening, server, settle_in
from bench.memory import Memory, catalog_of
from bench.result import Result
from bench.shapes import NAMES, Shape, shape
from bench.ticking import Elsewhere, replies_during, ticks_during
from mediator.answering import Mediator

SUMMARY = "the event loop's delay while a large join runs in the same process"

_TICK, _VISIT = 0.002, 0.01


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rows", type=int, default=1_000_000, help="of every table")
    parser.add_argument("--shape", choices=NAMES, default="int")
    parser.add_argument("--page", type=int, default=65_536, help="rows in a page")
    parser.add_argument("--seconds", type=float, default=10.0, help="for which queries follow one another")
    parser.add_argument(
        "--threads", type=int, default=None, help="of the mediator; its own default otherwise"
    )


def measure(options: argparse.Namespace) -> Result:
    settle_in()
    data = shape(options.shape, options.rows)
    return asyncio.run(measured(data, options.page, options.seconds, options.threads))


async def measured(data: Shape, page: int, seconds: float, threads: int | None = None) -> Result:
    """The first query, in which kernels are loaded, is not counted; its worst delay is in the detail."""
    first = await ticks_during(_query(data, page, threads), _TICK)
    late: list[float] = []
    took: list[float] = []
    loop = asyncio.get_running_loop()
    async with _served(data, page) as url:
        with Elsewhere(ticks_during, _TICK) as elsewhere, Elsewhere(replies_during, _VISIT, url) as visitor:
            until = loop.time() + seconds
            while loop.time() < until:
                began = loop.time()
                late += await ticks_during(_query(data, page, threads), _TICK)
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
        "late_ms": _quantiles(late),
        "late_elsewhere_ms": _quantiles(sorted(elsewhere.found)),
        "visits": len(visitor.found),
        "visitor_waits_ms": _quantiles(sorted(visitor.found)),
        "first_query_worst_ms": round(1_000 * max(first), 2),
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


@asynccontextmanager
async def _served(data: Shape, page: int) -> AsyncIterator[str]:
    """The address at which the server on this loop says whether it is well."""
    sock = listening("127.0.0.1", 0)
    host, port = sock.getsockname()[:2]
    made = server(House(catalog_of(data.tables, page)), host, port)
    async with asyncio.TaskGroup() as group:
        group.create_task(made.serve(sockets=[sock]))
        try:
            yield f"http://{host}:{port}/healthz"
        finally:
            made.should_exit = True


async def _query(data: Shape, page: int, threads: int | None) -> None:
    catalog = catalog_of(data.tables, page)
    async with (
        Mediator(catalog, threads=threads, transport=Memory(), devoted=True) as mediator,
        mediator.answering(data.sql) as answers,
    ):
        async for _ in answers:
            pass
        if not answers.report.complete:
            raise RuntimeError(f"incomplete: {answers.report}")


def _quantile(ordered: list[float], share: float) -> float:
    return ordered[min(len(ordered), ceil(share * len(ordered))) - 1]


def _quantiles(ordered: list[float]) -> dict[str, float]:
    return {f"p{q:g}": round(1_000 * _quantile(ordered, q / 100), 2) for q in (50, 90, 99, 99.9)}
