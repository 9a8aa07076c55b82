"""Work that may never end, in a thread that nobody has to wait for."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

_T = TypeVar("_T")


async def apart(work: Callable[[], _T]) -> _T:
    """What `work` returns or raises. Who is cancelled waits no longer, and what comes of it then is dropped.

    The thread is a daemon of its own: one that hangs costs its lookup the deadline, takes no place from others
    as it would in a pool, and does not keep the process from ending.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[_T] = loop.create_future()

    def settle(result: _T | None, error: BaseException | None) -> None:
        if done.done():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(result)  # type: ignore[arg-type]  # there is one where there is no error

    def run() -> None:
        result, error = None, None
        try:
            result = work()
        except BaseException as raised:
            error = raised
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=run, name="wrapper", daemon=True).start()
    return await done
