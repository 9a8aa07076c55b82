"""Something that is to be done by a certain time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Alarm:
    """One time of the running event loop's, at which something is done. Setting it anew takes its earlier time back."""

    def __init__(self) -> None:
        self._handle: asyncio.TimerHandle | None = None

    @property
    def was_set(self) -> bool:
        """Whether it was ever set and not taken back: its time may have come already."""
        return self._handle is not None

    def set(self, when: float, do: Callable[[], object]) -> None:
        self.off()
        self._handle = asyncio.get_running_loop().call_at(when, do)

    def off(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
