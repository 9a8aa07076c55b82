"""Several kernels at once: they release the GIL, so threads are enough."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

_WORTH = 4_096  # rows; below that, waking a thread takes longer than the work


class Hands:
    """A fixed number of threads; the caller's own is one of them."""

    def __init__(self, count: int = 1) -> None:
        self.count = max(1, count)
        self._pool = ThreadPoolExecutor(self.count - 1, "mediator-hand") if self.count > 1 else None

    def each(self, tasks: Sequence[Callable[[], T]], rows: int) -> list[T]:
        """Run the tasks, at the same time if they have rows enough to be worth it; their results in order."""
        if self._pool is None or len(tasks) < 2 or rows < _WORTH:
            return [task() for task in tasks]
        others = [self._pool.submit(task) for task in tasks[1:]]
        return [tasks[0](), *(o.result() for o in others)]

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown()
