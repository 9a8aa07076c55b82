"""A vocabulary: the strings of columns that are joined with each other, each with a number.

A string is looked up once, when it is stored. After that indexes and probes deal with numbers close to one another, as
they do where keys are numbers anyway. It knows all strings that its columns have held, and is gone when they are.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mediator.errors import MediatorError
from mediator.flow.batch import Rows
from mediator.state.growable import Growable
from mediator.state.kernels import numbers as kernels
from mediator.state.slots import OpenSlots, Slots

Numbers = NDArray[np.int32]
Words = NDArray[np.int64]
Mask = NDArray[np.bool_]
Heap = NDArray[np.uint8]

_NO_IDS: NDArray[np.int32] = np.zeros(0, np.int32)
_NO_MASK: Mask = np.zeros(0, np.bool_)


class Spoken(Protocol):
    """A column of text, whose strings a vocabulary may have."""

    vocabulary: Vocabulary | None
    words: Growable[np.int64]
    heap: Growable[np.uint8]

    @property
    def valid(self) -> Mask | None: ...

    def numbers(self) -> Numbers: ...


class Vocabulary:
    def __init__(self) -> None:
        self.count = 0
        self._slots = OpenSlots()
        self._words: Growable[np.int64] = Growable(np.int64)
        self._heap: Growable[np.uint8] = Growable(np.uint8)
        self._columns: weakref.WeakSet[Spoken] = weakref.WeakSet()

    def join(self, column: Spoken) -> None:
        """From now on it has the strings of this column."""
        self._columns.add(column)

    def settle(self) -> None:
        """Number what its columns have."""
        for column in self._columns:
            column.numbers()

    def extend(self, column: Spoken, numbers: Growable[np.int32]) -> None:
        """Number the column's strings from where its numbers end; NULLs get -1."""
        start, stop = numbers.n, column.words.n // 2
        if start == stop:
            return
        if self.count + stop - start > kernels.MOST:
            raise MediatorError(
                f"Columns that are joined can have {kernels.MOST:,} different strings at most"
            )
        self._slots.widen(stop - start)
        self._words.reserve(2 * (self.count + stop - start))
        self._heap.reserve(self._heap.n + column.heap.n)
        numbers.reserve(stop)
        count, self._heap.n = kernels.number_texts(
            *self._known(), np.uint64(self.count), self._heap.n,
            column.words.data, column.heap.data, *_mask(column), np.uint64(start), np.uint64(stop), numbers.data,
        )  # fmt: skip
        self._slots.used += count - self.count
        numbers.n, self.count, self._words.n = stop, count, 2 * count

    def find(self, column: Spoken, rows: Rows) -> Numbers:
        """The numbers of strings of any column; -1 for those that it does not know."""
        if not self.count:  # the kernel takes for granted that there is a first string
            return np.full(len(rows), -1, np.int32)
        numbers = np.empty(len(rows), np.int32)
        where = (_NO_IDS, False, rows.start) if isinstance(rows, range) else (rows, True, 0)
        kernels.find_numbers(*self._known(), column.words.data, column.heap.data, *where, len(rows), numbers)
        return numbers

    def _known(self) -> tuple[Slots, np.uint64, Words, Heap]:
        return self._slots.data, self._slots.shift, self._words.data, self._heap.data


def share(columns: Iterable[Spoken]) -> None:
    """Let columns that are joined with each other have one vocabulary. One that has another already keeps that: its
    strings are then found in the others' one by one, as those of any column are."""
    together = list(dict.fromkeys(columns))
    if len(together) < 2:
        return
    known = [c.vocabulary for c in together if c.vocabulary is not None]
    vocabulary = known[0] if known else Vocabulary()
    for column in together:
        if column.vocabulary is None:
            column.vocabulary = vocabulary
            vocabulary.join(column)


def _mask(column: Spoken) -> tuple[Mask, bool]:
    return (_NO_MASK, False) if column.valid is None else (column.valid, True)
