"""Work in a thread of its own: what it gives comes back, and nobody has to wait for what does not end."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable

import pytest

from mediator.access.apart import apart

_HANGS = """
import asyncio, threading
from mediator.access.apart import apart

async def main():
    try:
        async with asyncio.timeout(0.2):
            await apart(threading.Event().wait)
    except TimeoutError:
        print("left")

asyncio.run(main())
"""


async def test_what_it_returns_comes_back_and_what_it_raises_is_raised() -> None:
    assert await apart(threading.current_thread) is not threading.current_thread()
    for error in (ValueError("no"), SystemExit(3), asyncio.CancelledError("odd")):
        with pytest.raises(type(error)) as raised:
            await apart(_raising(error))
        assert raised.value.args == error.args


async def test_many_at_once() -> None:
    barrier = threading.Barrier(
        50
    )  # nobody passes before all are there: more than a pool would have room for
    places = await asyncio.gather(*(apart(barrier.wait) for _ in range(50)))
    assert sorted(places) == list(range(50))


async def test_who_is_cancelled_waits_no_longer_and_what_comes_later_is_dropped() -> None:
    end, ended = threading.Event(), threading.Event()

    def work() -> None:
        end.wait()
        ended.set()

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await apart(work)
    end.set()
    assert await asyncio.to_thread(ended.wait, 20)
    await asyncio.sleep(0)


def test_what_hangs_does_not_keep_the_process_from_ending() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _HANGS], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "left\n", "")


def _raising(error: BaseException) -> Callable[[], None]:
    def work() -> None:
        raise error

    return work
