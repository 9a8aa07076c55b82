"""A small site on loopback, in a thread of its own: what a test gives it to answer, it answers over real HTTP."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from aiohttp import web

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@contextmanager
def served(answer: Answer) -> Iterator[str]:
    """The address of a site that answers so, until the block ends."""
    begun, ended = threading.Event(), asyncio.Event()
    place: list[tuple[asyncio.AbstractEventLoop, str]] = []

    async def serve() -> None:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", answer)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        try:
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            place.append((asyncio.get_running_loop(), f"http://127.0.0.1:{runner.addresses[0][1]}"))
            begun.set()
            await ended.wait()
        finally:
            await runner.cleanup()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), name="site")
    thread.start()
    assert begun.wait(20)
    loop, address = place[0]
    try:
        yield address
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join(20)
    assert not thread.is_alive()
