"""Several kernels at once: they release the GIL, so threads are enough."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Generic, TypeVar

from mediator.statements.patience import shared

T = TypeVar("T")

_WORTH = 1 << 15  # rows; below that, waking a thread takes longer than the work
_PIECES = 2  # for each hand, so that one that is done early finds more to do


class Hands:
    """A fixed number of threads; the caller's own is one of them. Less than `worth` rows keep only one busy."""

    def __init__(self, count: int = 1, worth: int = _WORTH) -> None:
        self.count = max(1, count)
        self._worth = worth
        self._pool = ThreadPoolExecutor(self.count - 1, "mediator-hand") if self.count > 1 else None

    def each(self, tasks: Sequence[Callable[[], T]], rows: int) -> list[T]:
        """Run the tasks, at the same time if they have rows enough to be worth it; their results in order."""
        if self._pool is None or len(tasks) < 2 or rows < self._worth:
            return [task() for task in tasks]
        heap = _Heap(tasks)
        work = shared(heap.work)
        others = [self._pool.submit(work) for _ in range(min(self.count, len(tasks)) - 1)]
        try:
            work()
        finally:
            for other in others:
                if not other.cancel():
                    other.result()
        return heap.results

    def worth(self, rows: int) -> bool:
        """Whether so many rows may be worth a hand of their own."""
        return _PIECES * self.count * rows >= self._worth

    @property
    def reach(self) -> int:
        """How many pieces of work are wanted at a time."""
        return 1 if self.count == 1 else _PIECES * self.count

    def share(self, rows: int) -> int:
        """The most rows that one piece of work should have, of so many in all."""
        return max(rows, 1) if self.count == 1 else max(self._worth, -(-rows // self.reach))

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown()


class _Heap(Generic[T]):
    """Tasks that several threads take one by one, so that none idles while there are more."""

    def __init__(self, tasks: Sequence[Callable[[], T]]) -> None:
        self._tasks = tasks
        self._next = count()  # taking a number from it is one step, which no other thread can come between
        self._results: dict[int, T] = {}

    def work(self) -> None:
        while (number := next(self._next)) < len(self._tasks):
            self._results[number] = self._tasks[number]()

    @property
    def results(self) -> list[T]:
        return [self._results[number] for number in range(len(self._tasks))]
