"""The same web without sockets, in a time that jumps."""

import asyncio
import threading
import time

import pytest

from fixtures import Behaviour, Fault, FaultKind, Fixed, Web, book_trade_web, papers_web
from fixtures.virtual import Deadlock, VirtualTransport, run
from mediator.catalog.model import Mirror
from mediator.catalog.wrapper import Reply, Request
from mediator.errors import Unreachable

Story = list[tuple[float, str, str]]


def _mirror(web: Web, path: str) -> Mirror:
    return Mirror("site", web.url + path)


def test_an_hour_takes_no_time() -> None:
    async def wait() -> float:
        await asyncio.sleep(3_600)
        return asyncio.get_running_loop().time()

    begun = time.thread_time()
    assert run(wait()) == pytest.approx(3_600)
    assert time.thread_time() - begun < 1.0


def test_a_lookup_takes_its_latency() -> None:
    web = papers_web(behaviours={"s_x": Behaviour(latency=Fixed(0.25))})

    async def ask() -> tuple[Reply, float]:
        reply = await VirtualTransport(web).send(_mirror(web, "/s"), Request("/by-x", (("x", "7"),)))
        return reply, asyncio.get_running_loop().time()

    reply, now = run(ask())
    assert (reply.status, reply.body, now) == (200, b'{"rows":[{"x":7,"y":7}]}', 0.25)


async def _tell(web: Web) -> Story:
    """What happens to 40 books' reviews that are asked for side by side, and when."""
    transport, story = VirtualTransport(web), Story()
    loop = asyncio.get_running_loop()

    async def ask(isbn: str) -> None:
        try:
            reply = await transport.send(_mirror(web, "/readers"), Request("/reviews", (("isbn", isbn),)))
            story.append((loop.time(), isbn, str(reply.status)))
        except Unreachable as error:
            story.append((loop.time(), isbn, error.message))

    async with asyncio.TaskGroup() as group:
        for isbn in web.tables["books"]["isbn"].to_pylist():
            group.create_task(ask(isbn))
    return story


def test_the_same_seed_tells_the_same_story() -> None:
    told = [run(_tell(book_trade_web(40, seed=seed, behaviours="demo"))) for seed in (1, 1, 2)]
    assert told[0] == told[1]
    assert told[0] != told[2]
    assert {"200", "429"} <= {what for _, _, what in told[0]}


@pytest.mark.parametrize("kind", ["reset", "truncate"])
def test_a_broken_connection_is_unreachable(kind: FaultKind) -> None:
    web = papers_web(behaviours={"r": Behaviour(faults=(Fault(kind, requests=(1,)),))})
    with pytest.raises(Unreachable) as caught:
        run(VirtualTransport(web).send(_mirror(web, "/r"), Request("/rows")))
    assert caught.value.again


def test_what_hangs_can_be_left() -> None:
    web = papers_web(behaviours={"r": Behaviour(faults=(Fault("hang", requests=(1,)),))})

    async def leave() -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(30):
                await VirtualTransport(web).send(_mirror(web, "/r"), Request("/rows"))
        return asyncio.get_running_loop().time()

    assert run(leave()) == 30
    assert web.counters["r"].abandoned == 1


def test_waiting_for_nothing_is_a_deadlock() -> None:
    async def wait() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(Deadlock):
        run(wait())


def test_time_stands_still_while_a_thread_works() -> None:
    async def work() -> float:
        gate = threading.Event()
        loop = asyncio.get_running_loop()
        loop.call_later(5.0, gate.set)
        working = loop.run_in_executor(None, gate.wait, 0.05)
        opened = await working
        assert not opened, "the timer went off while the thread was still working"
        await asyncio.sleep(10)
        assert gate.is_set()
        return loop.time()

    assert run(work()) == 10


def test_tasks_are_walked_in_the_order_they_were_made() -> None:
    async def walk() -> bool:
        loop = asyncio.get_running_loop()
        tasks = [loop.create_task(asyncio.sleep(1)) for _ in range(50)]
        in_order = list(set(tasks)) == tasks
        await asyncio.gather(*tasks)
        return in_order

    assert run(walk())


def test_the_clock_of_a_web_starts_with_its_first_request() -> None:
    web = papers_web(behaviours={"r": Behaviour(initial_delay=2.0)})

    async def late() -> float:
        await asyncio.sleep(100)
        await VirtualTransport(web).send(_mirror(web, "/r"), Request("/rows"))
        return asyncio.get_running_loop().time()

    assert run(late()) == 102
