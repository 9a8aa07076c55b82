"""Batches between two steps."""

from __future__ import annotations

from collections import deque
from random import Random
from typing import Protocol

from mediator.flow.batch import Batch


class Floating(Protocol):
    @property
    def rows(self) -> int:
        """In all batches together."""
        ...

    def push(self, batch: Batch) -> None: ...

    def pop(self) -> Batch: ...

    def __len__(self) -> int: ...


class WidestFirst:
    """What the user cares for most goes first; of equals what is nearest to being an answer, so that work in flight
    drains before new input is taken."""

    def __init__(self, aliases: int) -> None:
        self._aliases = aliases
        self._levels: list[_Level] = []  # by weight, the largest first; mostly there is one
        self._count = 0
        self.rows = 0

    def push(self, batch: Batch) -> None:
        self.rows += len(batch)
        self._count += 1
        self._level(batch.favour.weight).push(batch)

    def pop(self) -> Batch:
        self._count -= 1
        for level in self._levels:
            if level.count:
                batch = level.pop()
                self.rows -= len(batch)
                return batch
        raise IndexError("nothing floats")

    def __len__(self) -> int:
        return self._count

    def _level(self, weight: float) -> _Level:
        for level in self._levels:
            if level.weight == weight:
                return level
        level = _Level(weight, self._aliases)
        used = [other for other in self._levels if other.count]
        self._levels = sorted([*used, level], key=lambda level: -level.weight)
        return level


class _Level:
    """Batches of one weight."""

    def __init__(self, weight: float, aliases: int) -> None:
        self.weight = weight
        self.count = 0
        self._by_width: list[deque[Batch]] = [deque() for _ in range(aliases + 1)]
        self._widest = 0  # none is wider

    def push(self, batch: Batch) -> None:
        self.count += 1
        width = batch.signature.spanned.bit_count()
        self._by_width[width].append(batch)
        self._widest = max(self._widest, width)

    def pop(self) -> Batch:
        self.count -= 1
        while not self._by_width[self._widest]:
            self._widest -= 1
        return self._by_width[self._widest].popleft()


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
