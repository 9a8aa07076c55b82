"""Several mirrors fetch the same page: who brings it first wins, the others are called back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from mediator.access.mirrors.runner import Runner, Slot
from mediator.catalog.wrapper import Page
from mediator.errors import SourceError

# What one mirror came to.
Outcome = tuple[Runner, Page | SourceError]
Fetch = Callable[[Runner, Slot | None], Awaitable[Page]]


class Contest:
    """Tells the outcomes one by one, as they come. To be ended before its task group is left."""

    def __init__(self, group: asyncio.TaskGroup, fetch: Fetch) -> None:
        self.running = 0  # who have come to nothing yet
        self._group = group
        self._fetch = fetch
        self._outcomes: asyncio.Queue[Outcome] = asyncio.Queue()
        self._tasks: list[asyncio.Task[None]] = []

    def send(self, runner: Runner, slot: Slot | None = None) -> None:
        """One more mirror takes part, in a place that it has already or will claim."""
        self.running += 1
        self._tasks.append(self._group.create_task(self._run(runner, slot)))

    async def outcome(self, patience: float | None) -> Outcome | None:
        """The next outcome; none when patience runs out first."""
        try:
            async with asyncio.timeout(patience):
                runner, came = await self._outcomes.get()
        except TimeoutError:
            return None
        self.running -= 1
        return runner, came

    def end(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def _run(self, runner: Runner, slot: Slot | None) -> None:
        try:
            self._outcomes.put_nowait((runner, await self._fetch(runner, slot)))
        except SourceError as error:
            self._outcomes.put_nowait((runner, error))
