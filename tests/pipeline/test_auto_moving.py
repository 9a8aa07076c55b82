"""What is said to a query while it moves to Spark is heard there, and what it may spend is what is left. Without Spark:
in its place stands what notes what it is told."""

from __future__ import annotations

import asyncio
from typing import Any, Self

import pytest

from fixtures import Web
from fixtures.behaviour import Behaviour, Fault
from mediator.access import Statistics
from mediator.answering import Mediator
from mediator.catalog.ceilings import Ceilings
from mediator.engines import Job
from mediator.output.report import Report
from pipeline.spread import auto

SQL = "SELECT b.isbn, o.shop FROM books b JOIN offers o ON o.isbn = b.isbn"


class There:
    """The side on Spark, which takes a while to begin."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.stops: list[str] = []
        self.began: float | None = None
        self.beginning, self.go_on = asyncio.Event(), asyncio.Event()
        self.report = Report()

    async def __aenter__(self) -> Self:
        self.beginning.set()
        await self.go_on.wait()
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def __anext__(self) -> Any:
        raise StopAsyncIteration

    def stop(self, why: str) -> None:
        self.stops.append(why)

    def since(self, moment: float) -> None:
        self.began = moment

    def statistics(self) -> Statistics:
        return Statistics((), ())


@pytest.fixture
def moved(monkeypatch: pytest.MonkeyPatch) -> asyncio.Queue[There]:
    """What queries have moved to."""
    found: asyncio.Queue[There] = asyncio.Queue()

    class Engine:
        def answering(self, job: Job, before: object = None) -> There:
            found.put_nowait(there := There(job))
            return there

    monkeypatch.setattr(auto, "SparkEngine", Engine)
    monkeypatch.setattr(auto, "_no_spark", lambda: "")
    return found


@pytest.fixture
def endless(trade: Web) -> Web:
    """One by which no query ends before it moves."""
    for mirror in ("offers_north", "offers_south"):
        trade.behave(mirror, Behaviour(faults=(Fault("hang", probability=1.0),)))
    return trade


async def test_a_stop_while_it_moves_is_heard_there(endless: Web, moved: asyncio.Queue[There]) -> None:
    async with Mediator(endless.catalog) as mediator, asyncio.TaskGroup() as group:
        answers = mediator.answering(SQL, engine="auto", memory=1_000)

        async def stop() -> None:
            there = await moved.get()
            await there.beginning.wait()
            answers.stop("interrupted")
            assert there.stops == ["interrupted"]
            there.go_on.set()

        async with answers:
            group.create_task(stop())
            async for _ in answers:
                pass
            assert any(r.asked for r in answers.report.relations), "what was asked here is in its report"


async def test_its_time_and_its_ceilings_do_not_begin_anew(endless: Web, moved: asyncio.Queue[There]) -> None:
    async with Mediator(endless.catalog) as mediator, asyncio.TaskGroup() as group:
        source = endless.catalog.relations["books"].methods[0].mirrors[0].source
        answers = mediator.answering(
            SQL, engine="auto", memory=1_000, max_seconds=600, max_calls=1_000,
            per_source={source: Ceilings(calls=500)},
        )  # fmt: skip
        began = asyncio.get_running_loop().time() - 50
        answers.since(began)

        async def look() -> There:
            there = await moved.get()
            there.go_on.set()
            return there

        async with answers:
            looking = group.create_task(look())
            async for _ in answers:
                pass
        there = await looking
    assert there.began == began
    settings = there.job.settings
    assert settings.max_calls is not None
    assert settings.max_calls < 1_000
    left = settings.per_source[source].calls
    assert left is not None
    assert 0 < 500 - left <= 1_000 - settings.max_calls
