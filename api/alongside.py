"""Something that looks on while a block runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

Watch = Callable[[asyncio.Event], Coroutine[Any, Any, None]]


@asynccontextmanager
async def alongside(watch: Watch) -> AsyncIterator[None]:
    """`watch` runs within. It is told when the block is over, and waited for: not cancelled in the middle of a look.
    What goes wrong in either is raised as it is; what goes wrong in `watch` ends the block."""
    over = asyncio.Event()
    failures: list[BaseException] = []
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(watch(over))
            try:
                yield
            except BaseException as error:
                # Kept out of the group, which would cancel the watcher and wrap the error.
                failures.append(error)
            finally:
                over.set()
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    if failures:
        raise failures[0]
