"""A search over pauses at any moment: all comes, and nothing is sent to what is paused."""

from __future__ import annotations

import asyncio
from random import Random

import pytest
from access_kit import (
    Scripted,
    catalog,
    lookups,
    page,
    rows_for,
    scan,
    visited,
)
from steering_kit import played

from mediator.access import Access
from mediator.access.visit import Visit
from mediator.access.wishes import HEDGINGS
from mediator.catalog.model import Mirror, Source
from mediator.catalog.wrapper import Reply, Request


class Draw:
    """Mirrors that show the same pages or others, and a query that pauses them at any moment."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.names = ["a", "b", "c"][: self.random.choice([1, 2, 2, 3])]
        self.pages = self.random.choice([1, 4, 9])
        self.alike, self.at_once = self.random.random() < 0.6, self.random.random() < 0.5
        self.paused: list[str] = []
        self.forbidden: list[str] = []  # what was sent to a paused mirror

    async def answer(self, mirror: Mirror, request: Request) -> Reply:
        if mirror.source in self.paused:
            self.forbidden.append(f"{mirror.source}{request.path}")
        await asyncio.sleep(self.random.choice([0.05, 0.2, 1.0]))
        if request.path == "/at":
            return rows_for(request)
        number = 0 if request.path == "/scan" else int(request.path[2:])
        key = number if self.alike or mirror.source == "a" else self.pages - 1 - number
        following = range(1, self.pages) if number == 0 else ()
        one = [number + 1] if number + 1 < self.pages else []
        return page([[key, "v"]], [f"/p{n}" for n in (following if self.at_once else one)])

    def pause(self, visit: Visit, names: list[str]) -> None:
        self.paused = names
        visit.steer(names, {})

    async def play(self, access: Access) -> None:
        visit, heard = visited(access)
        visit.hedge(self.random.choice(HEDGINGS))
        visit.ask(scan())
        visit.ask(lookups(*range(10), number=2))
        for _ in range(self.random.randint(1, 12)):
            await asyncio.sleep(self.random.choice([0.01, 0.1, 0.5, 3.0]))
            self.pause(visit, [name for name in self.names if self.random.random() < 0.5])
        await asyncio.sleep(100.0)
        ended = len(heard.exhausted)
        assert ended == 11 or len(self.paused) == len(self.names), "a mirror is free"
        assert (sum(visit.paused().values()) > 0) == (ended < 11), "what waits is told"
        self.pause(visit, [])
        await heard.ends(11)
        assert not heard.failed
        assert set(heard.keys) == set(range(max(10, self.pages)))
        assert not self.forbidden


@pytest.mark.parametrize("seed", range(60))
def test_however_it_is_paused_all_comes_and_nothing_is_sent_there(seed: int) -> None:
    draw = Draw(seed)
    sources = [Source(name, concurrency=1 + seed % 2) for name in draw.names]
    played(Scripted(draw.answer), catalog(*sources), draw.play)
