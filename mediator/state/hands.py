"""Several kernels at once: they release the GIL, so threads are enough."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from queue import SimpleQueue
from threading import Lock, Thread
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
        # An executor of Python's takes longer to be told, and to be waited for, than many a piece of work.
        self._told: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self._others = [
            Thread(target=_work, args=(self._told,), name=f"mediator-hand-{n}", daemon=True)
            for n in range(1, self.count)
        ]
        for other in self._others:
            other.start()

    def each(self, tasks: Sequence[Callable[[], T]], rows: int) -> list[T]:
        """Run the tasks, at the same time if they have rows enough to be worth it; their results in order. Raises what
        the first one to fail has raised; those that had not begun by then are left."""
        if not self._others or len(tasks) < 2 or rows < self._worth:
            return [task() for task in tasks]
        heap = _Heap(tasks)
        work = shared(heap.work)
        for _ in range(min(self.count, len(tasks)) - 1):
            self._told.put(work)
        work()
        return heap.all()

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
        for _ in self._others:
            self._told.put(None)
        for other in self._others:
            other.join()


def _work(told: SimpleQueue[Callable[[], object] | None]) -> None:
    while (work := told.get()) is not None:
        work()
        del work  # what it has read need not wait for the next


class _Heap(Generic[T]):
    """Tasks that several threads take one by one, so that none idles while there are more. Who comes when all are taken
    has nothing to do. Taking a number is one step, which no other thread can come between."""

    def __init__(self, tasks: Sequence[Callable[[], T]]) -> None:
        self._tasks = tasks
        self._next, self._done = count(), count(1)
        self._results: dict[int, T] = {}
        self._failed: BaseException | None = None
        self._busy = Lock()  # until all are done
        self._busy.acquire()

    def work(self) -> None:
        while (number := next(self._next)) < len(self._tasks):
            try:
                if self._failed is None:
                    self._results[number] = self._tasks[number]()
            except BaseException as error:
                self._failed = self._failed or error
            if next(self._done) == len(self._tasks):
                self._busy.release()

    def all(self) -> list[T]:
        """Waits for those that others have taken."""
        with self._busy:
            if self._failed is not None:
                raise self._failed
            return [self._results[number] for number in range(len(self._tasks))]
