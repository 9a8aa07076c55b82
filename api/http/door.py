"""Where queries come in, a few at a time. Many that begin together would take every step together, and the first of
them would wait for its answer as long as the last."""

from __future__ import annotations

import asyncio
from types import TracebackType

_LONG = 0.05  # seconds: whoever takes longer to begin keeps nobody waiting


class Door:
    def __init__(self, at_once: int) -> None:
        self._places = asyncio.Semaphore(at_once)

    async def enter(self) -> Place:
        """First come, first served."""
        await self._places.acquire()
        return Place(self._places)


class Place:
    """In the door: until it is left, or for a while."""

    def __init__(self, places: asyncio.Semaphore) -> None:
        self._places: asyncio.Semaphore | None = places
        self._leaving = asyncio.get_running_loop().call_later(_LONG, self.leave)

    def leave(self) -> None:
        """No effect for the second time."""
        places, self._places = self._places, None
        if places is not None:
            self._leaving.cancel()
            places.release()

    def __enter__(self) -> Place:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """What goes wrong on the way in leaves."""
        if error is not None:
            self.leave()
