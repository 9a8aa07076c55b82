"""One at a time, in a fair order: against what each of them has had."""

from __future__ import annotations

import asyncio
from collections import Counter
from random import Random

import pytest

from mediator.fairness import FairLock, Share


class Hand:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


async def _settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_what_is_short_does_not_wait_for_all_that_is_long() -> None:
    hand, order = Hand(), list[str]()
    lock = FairLock(hand)
    long, short = {name: Share() for name in "abc"}, Share()

    async def take(name: str, share: Share, seconds: float, times: int) -> None:
        for _ in range(times):
            await lock.acquire(share)
            await asyncio.sleep(0)
            hand.now += seconds
            order.append(name)
            lock.release()

    async with asyncio.TaskGroup() as group:
        for name, share in long.items():
            group.create_task(take(name, share, 1.0, 5))
        await _settled()
        before = len(order)
        group.create_task(take("short", short, 0.01, 1))
    assert order.index("short") <= before + 2  # the turn that is being taken, and the one after that
    assert Counter(order) == {"a": 5, "b": 5, "c": 5, "short": 1}
    assert not lock.locked


async def test_nobody_is_passed_over_for_ever() -> None:
    """Others begin again and again, each with nothing had so far."""
    hand, order = Hand(), list[str]()
    lock = FairLock(hand)
    old = Share()
    await lock.acquire(old)
    hand.now += 10.0
    lock.release()

    async def take(name: str, share: Share) -> None:
        await lock.acquire(share)
        hand.now += 1.0
        order.append(name)
        await asyncio.sleep(0)
        lock.release()

    async def others() -> None:
        for _ in range(50):
            await take("new", Share())

    async with asyncio.TaskGroup() as group:
        await lock.acquire(Share())
        group.create_task(take("old", old))
        for _ in range(3):
            group.create_task(others())
        await _settled()
        lock.release()
    assert 2 < order.index("old") < 10


async def test_who_is_about_to_end_goes_first() -> None:
    hand, order = Hand(), list[str]()
    lock = FairLock(hand)
    shares = {name: Share() for name in "abcd"}

    async def take(name: str) -> None:
        await lock.acquire(shares[name])
        order.append(name)
        lock.release()

    async with asyncio.TaskGroup() as group:
        await lock.acquire(Share())
        for name in shares:
            group.create_task(take(name))
        await _settled()
        shares["d"].urgent = True  # while it waits
        lock.release()
    assert order == ["d", "a", "b", "c"]


@pytest.mark.parametrize("seed", range(40))
async def test_one_at_a_time_whoever_is_called_back(seed: int) -> None:
    random, hand = Random(seed), Hand()
    lock = FairLock(hand)
    shares = [Share() for _ in range(6)]
    inside = 0
    done = list[int]()

    async def take(n: int) -> None:
        nonlocal inside
        await lock.acquire(shares[n % 6])
        try:
            assert not inside
            inside += 1
            hand.now += random.random()
            for _ in range(random.randrange(3)):
                await asyncio.sleep(0)
            done.append(n)
        finally:
            inside -= 1
            lock.release()

    async with asyncio.timeout(10.0), asyncio.TaskGroup() as group:
        tasks = [group.create_task(take(n)) for n in range(40)]
        for _ in range(30):
            await asyncio.sleep(0)
            random.choice(tasks[:35]).cancel()
            shares[random.randrange(6)].urgent = random.random() < 0.5
    assert all(n in done or task.cancelled() for n, task in enumerate(tasks))
    assert set(range(35, 40)) <= set(done)
    assert not lock.locked
    await lock.acquire(Share())
