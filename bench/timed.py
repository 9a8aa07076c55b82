"""Runs over real HTTP, and when what happened in them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

from bench.site import Site
from mediator.access import HttpTransport
from mediator.answering import Mediator
from mediator.assembly import Settings
from mediator.catalog.model import Catalog, Mirror
from mediator.catalog.wrapper import Reply, Request

TENTHS = 10


@dataclass(slots=True)
class Timeline:
    """Seconds from the query's start at which rows were answered and lookups were sent."""

    rows: list[tuple[float, int]] = field(default_factory=list)  # (at, how many came)
    lookups: list[float] = field(default_factory=list)
    ended: float = 0.0
    requests: dict[str, int] = field(default_factory=dict)  # by endpoint, as the site counted them

    @property
    def answers(self) -> int:
        return sum(count for _, count in self.rows)

    @property
    def first(self) -> float:
        """When the first row was there."""
        return self.rows[0][0]

    def area(self, until: float) -> float:
        """Under results over time, in row-seconds, from the start."""
        return sum(count * (until - at) for at, count in self.rows if at < until)

    def curve(self) -> list[tuple[float, float]]:
        """Results so far, over time."""
        return [(0.0, 0.0), *_running(self.rows), (self.ended, float(self.answers))]

    def asked(self) -> list[tuple[float, float]]:
        """Lookups so far, over time."""
        return [(0.0, 0.0), *_running([(at, 1) for at in self.lookups])]


class Noting:
    """A transport that notes when requests to one address were sent."""

    def __init__(self, transport: HttpTransport, path: str) -> None:
        self.sent: list[float] = []
        self._transport = transport
        self._path = path

    async def send(self, mirror: Mirror, request: Request) -> Reply:
        if request.path.startswith(self._path):
            self.sent.append(asyncio.get_running_loop().time())
        return await self._transport.send(mirror, request)


async def answered(mediator: Mediator, transport: Noting, site: Site, sql: str) -> Timeline:
    """One query of the engine, from SQL text to the end of its answers."""
    loop, timeline = asyncio.get_running_loop(), Timeline()
    site.reset()
    transport.sent.clear()
    began = loop.time()
    async with mediator.answering(sql) as answers:
        async for batch in answers:
            timeline.rows.append((loop.time() - began, batch.num_rows))
        timeline.ended = loop.time() - began
        if not answers.report.complete:
            raise RuntimeError(f"incomplete: {answers.report}")
    timeline.lookups = [at - began for at in transport.sent]
    timeline.requests = site.requests()
    return timeline


async def engine(
    site: Site, catalog: Catalog, sql: str, path: str, times: int = 1, settings: Settings | None = None
) -> list[Timeline]:
    """The same query so many times, in one mediator that has no row at first."""
    async with HttpTransport(catalog.sources) as http:
        transport = Noting(http, path)
        async with Mediator(catalog, settings, transport=transport) as mediator:
            return [await answered(mediator, transport, site, sql) for _ in range(times)]


def least_area(ours: Timeline, rivals: Sequence[Timeline]) -> tuple[float, list[float]]:
    """Our area ÷ the best rival's, at every tenth of our run at which a rival has any; the least first.

    A rival that has ended stays at all its rows.
    """
    ratios = []
    for tenth in range(1, TENTHS + 1):
        until = ours.ended * tenth / TENTHS
        best = max(rival.area(until) for rival in rivals)
        if best > 0:
            ratios.append(ours.area(until) / best)
    return min(ratios), [round(ratio, 3) for ratio in ratios]


def middle(runs: Sequence[Timeline]) -> Timeline:
    """The one that took the median time."""
    at = median(run.ended for run in runs)
    return min(runs, key=lambda run: abs(run.ended - at))


def _running(counts: Sequence[tuple[float, int]]) -> list[tuple[float, float]]:
    total, points = 0, []
    for at, count in counts:
        total += count
        points.append((at, float(total)))
    return points
