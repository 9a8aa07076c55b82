"""A seeded search: random queries at once over one mediator, random sites, random readers, in virtual time.

What it promises of every seed: a complete answer is the truth; one that is not says so and claims nothing false; who is
healthy is asked for a thing once; nothing is left over; and when the sites are well again, so are the answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from random import Random
from typing import Any
from unittest.mock import patch

import pyarrow as pa

from fixtures import Behaviour, Fault, FaultKind, Fixed, Uniform, Web, book_trade_web
from mediator import driver
from mediator.answering import Mediator
from mediator.assembly import POLICIES, Settings
from mediator.driver import Answers
from mediator.output.report import Report
from tests.answering.kit import (
    NEVER,
    asked_again,
    check_same,
    failures,
    in_virtual_time,
    mediating,
    rows,
    sources_with,
    truth,
)
from tests.answering.statements import STATEMENTS, Statement

ENDPOINTS = ("books", "authors", "offers_north", "offers_south", "reviews", "libraries", "holdings", "prizes")
ONCE = ("books", "authors", "reviews", "libraries", "holdings", "prizes")  # the others race
HEALING: tuple[FaultKind, ...] = ("error", "reset", "truncate", "garbage", "busy")
GRID = (0.0, 0.0, 0.1, 0.2, 0.5, 1.0)
WORLDS = 4
SIZE = 36


@dataclass(slots=True)
class Effort:
    """What a search came across: one that meets nothing finds nothing."""

    seeds: int = 0
    queries: int = 0
    complete: int = 0
    partial: int = 0
    left: int = 0
    stopped: int = 0
    requests: int = 0


@dataclass(slots=True)
class Case:
    """One draw: how the sites behave, and who asks what."""

    seed: int
    random: Random
    web: Web
    world: int
    sick: set[str] = field(default_factory=set)  # relations of which some lookups fail for good
    attempts: int = 1  # that a lookup may take where nothing fails for good
    steady: bool = True  # nobody leaves, nobody wants it fresher, no thread turns: so nothing is asked twice
    buffered: int = 200_000  # answers that may wait for their reader
    effort: Effort = field(default_factory=Effort)


def search(seed: int, effort: Effort) -> None:
    """Raises `AssertionError` when a promise is broken."""
    random = Random(seed)
    world = random.randrange(WORLDS)
    case = Case(seed, random, _web(world), world, effort=effort)
    case.web.reset()
    _behave(case)
    with _sizes(case):
        in_virtual_time(_run(case))
    effort.seeds += 1
    effort.requests += case.web.requests


@cache
def _web(world: int) -> Web:
    return book_trade_web(SIZE, seed=world, book_page=(5, 12, 36, 100)[world])


@cache
def _truth(world: int, statement: Statement) -> pa.Table:
    return truth(_web(world).tables, statement.sql)


@contextmanager
def _sizes(case: Case) -> Iterator[None]:
    """Limits so small that they are met."""
    light, case.buffered = case.random.choice(
        ((2_048, 200_000), (2_048, 5), (2_048, 60), (0, 200_000), (20, 20))
    )
    case.steady &= light == 2_048
    with patch.object(driver, "_LIGHT", light):
        yield


def _behave(case: Case) -> None:
    random = case.random
    flaky, sick = random.random() < 0.6, random.random() < 0.3
    for name in ENDPOINTS:
        faults: list[Fault] = []
        if flaky and random.random() < 0.5:
            attempts = random.choice((1, 1, 2))
            kind = random.choice(HEALING)
            # A reply that can't be read is asked for twice, and then taken to be meant.
            faults.append(Fault(kind, attempts=1 if kind == "garbage" else attempts))
            case.attempts = max(case.attempts, 1 + attempts)
        if sick and random.random() < 0.4:
            faults.append(Fault("error", probability=random.choice((0.1, 0.5, 1.0)), status=NEVER))
            case.sick.add(name.partition("_")[0])
        low = random.choice(GRID)
        case.web.behave(
            name,
            Behaviour(
                latency=random.choice((Fixed(low), Uniform(low, low + 0.3))),
                initial_delay=random.choice((0.0, 0.0, 0.0, 1.0)),
                stalls=random.choice(((), (), ((0.2, 1.5),))),
                concurrency=random.choice((None, None, 1, 4)),
                faults=tuple(faults),
            ),
        )


async def _run(case: Case) -> None:
    readers = 1 + case.random.randrange(5)
    # Nobody runs out of time: what fails for good is what was drawn to.
    catalog = sources_with(case.web.catalog, deadline=10_000.0, attempts=8)
    async with mediating(case.web, catalog=catalog) as mediator:
        async with asyncio.TaskGroup() as group:
            for _ in range(readers):
                group.create_task(_read(case, mediator, Random(case.random.random())))
        # All is well again, and at once: whatever is stored now must be the truth.
        for name in ENDPOINTS:
            case.web.behave(name, Behaviour())
        for statement in case.random.sample(STATEMENTS, 2):
            async with mediator.answering(statement.sql) as answers:
                found = await _all(answers, Random(0), slow=False)
            assert answers.report.complete or case.sick, answers.report.lines()
            _compare(case, statement, found, answers.report)
        assert mediator._house is not None
        assert all(not stem.scanning for stem in mediator._house.stems.held().values())
    assert not any(c.open for c in case.web.counters.values())
    if case.steady and not case.sick:
        again = {k: n for k, n in _again(case.web).items() if n > case.attempts}
        assert not again, again


def _again(web: Web) -> dict[str, int]:
    return asked_again(web, *ONCE)


async def _read(case: Case, mediator: Mediator, random: Random) -> None:
    """One reader: asks something, and reads on or does not."""
    await asyncio.sleep(random.choice((0, 0, 0.1, 0.7, 2.0)))
    for _ in range(random.choice((1, 1, 2))):
        statement = random.choice(STATEMENTS)
        said: dict[str, Any] = {}
        if random.random() < 0.1:
            case.steady = False
            said["max_age"] = random.choice((0.0, 0.5))
        leaves = random.choice((None, None, None, "left", "stopped", "timed out"))
        case.steady &= leaves is None
        case.effort.queries += 1
        mediator.settings = _settings(random, case.buffered)
        answers = mediator.answering(statement.sql, **said)
        moment = random.choice((0.0, 0.05, 0.3, 1.1, 3.0))
        try:
            async with asyncio.timeout(moment if leaves == "timed out" else None), answers:
                if leaves == "left":
                    await asyncio.sleep(moment)
                    case.effort.left += 1
                    continue
                if leaves == "stopped":
                    asyncio.get_running_loop().call_later(moment, answers.stop, "enough")
                found = await _all(answers, random, slow=random.random() < 0.3)
        except TimeoutError:
            case.effort.left += 1
        else:
            _compare(case, statement, found, answers.report)


def _settings(random: Random, buffered: int) -> Settings:
    return Settings(
        buffered=buffered,
        policy=random.choice(POLICIES),
        seed=random.randrange(1 << 30),
        revisit=random.choice((1, 2, 16)),
        largest_batch=random.choice((1, 7, 1_000)),
        room=random.choice((1, 10, 1_000)),
    )


async def _all(answers: Answers, random: Random, slow: bool) -> pa.Table:
    batches = []
    async for batch in answers:
        batches.append(batch)
        if slow:
            await asyncio.sleep(random.choice((0.0, 0.1, 0.4)))
        answers.report.lines()
    return pa.Table.from_batches(batches, answers.schema)


def _compare(case: Case, statement: Statement, found: pa.Table, report: Report) -> None:
    true = _truth(case.world, statement)
    if report.complete:
        case.effort.complete += 1
        check_same(found, true, statement.ordered)
        return
    case.effort.stopped += bool(report.stopped)
    case.effort.partial += not report.stopped
    lost = {relation for relation, _ in failures(report)}
    assert report.stopped or lost
    assert lost <= case.sick, report.lines()
    if statement.grows:
        assert rows(found) <= rows(true), "what is not so was claimed"
