"""Several kernels at once: they release the GIL, so threads are enough."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


class Hands:
    """A fixed number of threads; the caller's own is one of them."""

    def __init__(self, count: int = 1) -> None:
        self.count = max(1, count)
        self._pool = ThreadPoolExecutor(self.count - 1, "mediator-hand") if self.count > 1 else None

    def each(self, tasks: Sequence[Callable[[], T]]) -> list[T]:
        """Run the tasks, at the same time as far as the hands reach; their results in order."""
        if self._pool is None or len(tasks) < 2:
            return [task() for task in tasks]
        others = [self._pool.submit(task) for task in tasks[1:]]
        return [tasks[0](), *(o.result() for o in others)]

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown()
