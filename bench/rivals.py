"""Q1's rival: an index join as one module, its cache and its lookups behind one queue, over the same access modules.

Rows of R are handled strictly in their order of arrival. One whose value is in the cache, or is being looked up, is
dealt with at once; one that needs a lookup waits for a place among the lookups under way, and every row behind it
waits too, although its value may have been in the cache for long. That is head-of-line blocking.

The paper's queue is bounded, which makes the scan wait as well. This one is not, to the rival's favour: no row comes
later for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from bench.site import Site
from bench.timed import Noting, Timeline
from mediator.access import Access, HttpTransport
from mediator.flow.events import SEED, Arrived, Ask, Event, Exhausted

_SCAN = 0  # the number of the ask that is R's scan; a lookup's is the value and one


@dataclass(slots=True)
class _Value:
    """What is known of one value: how many rows of S have it, and how many of R wait to know."""

    matches: int = 0
    known: bool = False
    waiting: int = 0


class IndexJoin:
    """`select * from r, s where r.a = s.x`. `answer` is told how many rows were found."""

    def __init__(self, access: Access, concurrency: int, answer: Callable[[int], None]) -> None:
        self._visit = access.visit(self._deliver)
        self._answer = answer
        self._places = asyncio.Semaphore(concurrency)
        self._queue: asyncio.Queue[int | None] = asyncio.Queue()
        self._values: dict[int, _Value] = {}
        self._unknown = 0
        self._settled = asyncio.Event()

    async def run(self) -> None:
        """To the end of its answers."""
        self._visit.ask(Ask(_SCAN, "r", "scan", (), SEED))
        while (value := await self._queue.get()) is not None:
            await self._handle(value)
        while self._unknown:
            self._settled.clear()
            await self._settled.wait()
        self._visit.close()

    async def _handle(self, a: int) -> None:
        value = self._values.get(a)
        if value is None:
            await self._places.acquire()
            value = self._values[a] = _Value()
            self._unknown += 1
            self._visit.ask(Ask(a + 1, "s", "by_x", ("x",), ((a,),)))
        if value.known:
            self._answer(value.matches)
        else:
            value.waiting += 1

    def _deliver(self, event: Event) -> None:
        match event:
            case Arrived(ask=number, landing=landing) if number == _SCAN:
                for a in landing.rows.column("a").to_pylist():
                    self._queue.put_nowait(a)
            case Arrived(ask=number, landing=landing):
                self._values[number - 1].matches += landing.rows.num_rows
            case Exhausted(ask=number) if number == _SCAN:
                self._queue.put_nowait(None)
            case Exhausted(ask=number):
                self._learn(self._values[number - 1])
            case _:
                raise RuntimeError(f"the rival has no answer to {event}")

    def _learn(self, value: _Value) -> None:
        value.known = True
        self._unknown -= 1
        self._answer(value.waiting * value.matches)
        self._places.release()
        self._settled.set()


async def index_join(site: Site) -> Timeline:
    """Q1 as the rival runs it."""
    loop, timeline = asyncio.get_running_loop(), Timeline()
    async with HttpTransport(site.catalog.sources) as http:
        transport = Noting(http, "/by-x")
        async with Access(site.catalog, transport=transport) as access:
            site.reset()
            began = loop.time()

            def answer(count: int) -> None:
                if count:
                    timeline.rows.append((loop.time() - began, count))

            await IndexJoin(access, site.pace.concurrency, answer).run()
            timeline.ended = loop.time() - began
    timeline.lookups = [at - began for at in transport.sent]
    timeline.requests = site.requests()
    return timeline
