"""Batches between two steps."""

from __future__ import annotations

from collections import deque
from random import Random
from typing import Protocol

from mediator.flow.batch import Batch


class Floating(Protocol):
    rows: int  # in all batches together

    def push(self, batch: Batch) -> None: ...

    def pop(self) -> Batch: ...

    def __len__(self) -> int: ...


class WidestFirst:
    """What is nearest to being an answer goes first, so that work in flight drains before new input is taken."""

    def __init__(self, aliases: int) -> None:
        self._by_width: list[deque[Batch]] = [deque() for _ in range(aliases + 1)]
        self._count = 0
        self.rows = 0

    def push(self, batch: Batch) -> None:
        self.rows += len(batch)
        self._by_width[batch.signature.spanned.bit_count()].append(batch)
        self._count += 1

    def pop(self) -> Batch:
        self._count -= 1
        batch = next(q for q in reversed(self._by_width) if q).popleft()
        self.rows -= len(batch)
        return batch

    def __len__(self) -> int:
        return self._count


class AnyOrder:
    """Whichever: for tests, where every interleaving must give the same answers."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._batches: list[Batch] = []
        self.rows = 0

    def push(self, batch: Batch) -> None:
        self.rows += len(batch)
        self._batches.append(batch)

    def pop(self) -> Batch:
        chosen = self._random.randrange(len(self._batches))
        self._batches[chosen], self._batches[-1] = self._batches[-1], self._batches[chosen]
        batch = self._batches.pop()
        self.rows -= len(batch)
        return batch

    def __len__(self) -> int:
        return len(self._batches)
