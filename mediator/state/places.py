"""Three ways to find the newest row of a key: a place for each code, slots for codes, slots for strings.

Each links rows onto their chains and finds where the chains of wanted keys begin. Strings of a column that has a
vocabulary are codes, which are their numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mediator.state.columns import TextColumn
from mediator.state.growable import Growable
from mediator.state.kernels import direct, hashed
from mediator.state.keys import NO_IDS, NO_MASK, Keys, Part
from mediator.state.slots import OpenSlots

Codes = NDArray[np.int64]
Ids = NDArray[np.int32]
Mask = NDArray[np.bool_]
Sight = tuple[Ids, bool, int, int]  # which rows count, as the kernels take it


@dataclass(frozen=True, slots=True)
class Stored:
    """The key column of an index, or the codes of several."""

    column: TextColumn | None  # a single column of text
    codes: Codes | Ids  # otherwise; or the numbers, where the column has a vocabulary
    valid: Mask | None

    @property
    def mask(self) -> tuple[Mask, bool]:
        return (NO_MASK, False) if self.valid is None else (self.valid, True)


class Places(Protocol):
    def link(self, following: Ids, stored: Stored, start: int, stop: int) -> tuple[int, bool]:
        """Put rows [start, stop) at the front of their chains, as far as there are places for them.

        Returns how far that is, and whether any chain had a row already.
        """
        ...

    def newest(self, stored: Stored, keys: Keys, start: int, stop: int, sight: Sight) -> tuple[Ids, Ids]:
        """For each of the keys [start, stop) the newest row, where that is in sight: pairs (key, row)."""
        ...


class Direct:
    """For exact codes close to one another."""

    def __init__(self, low: int, size: int) -> None:
        self._low = low
        self._head: Growable[np.int32] = Growable(np.int32)
        self._head.grow(size)

    def reach(self, low: int, high: int, most: int) -> bool:
        """Get places for codes up to this one, if there are no more than `most` then."""
        if low < self._low or high - self._low >= most:
            return False
        self._head.grow(high - self._low + 1)
        return True

    def link(self, following: Ids, stored: Stored, start: int, stop: int) -> tuple[int, bool]:
        done: tuple[int, bool] = direct.link_direct(
            self._head.used, self._low, following, stored.codes, *stored.mask, start, stop
        )
        return done

    def newest(self, stored: Stored, keys: Keys, start: int, stop: int, sight: Sight) -> tuple[Ids, Ids]:
        at, rows = _pairs(stop - start)
        wanted = _wanted(stored, keys, start, stop)
        n = direct.find_direct(self._head.used, self._low, *wanted, start, stop, *sight, at, rows)
        return at[:n], rows[:n]


class Hashed:
    """For codes of any kind. Where they are those of several columns, equal codes need not be equal keys."""

    def __init__(self, rows: int) -> None:
        self.slots = OpenSlots(rows)

    def link(self, following: Ids, stored: Stored, start: int, stop: int) -> tuple[int, bool]:
        self.slots.widen(stop - start)
        fresh, again = hashed.link_codes(
            self.slots.data, self.slots.shift, following, stored.codes, *stored.mask, start, stop
        )
        self.slots.used += fresh
        return stop, again

    def newest(self, stored: Stored, keys: Keys, start: int, stop: int, sight: Sight) -> tuple[Ids, Ids]:
        at, rows = _pairs(stop - start)
        wanted = _wanted(stored, keys, start, stop)
        n = hashed.find_codes(
            self.slots.data, self.slots.shift, stored.codes, *wanted, start, stop, *sight, at, rows
        )
        return at[:n], rows[:n]


class Texts:
    """For one column of text."""

    def __init__(self, rows: int) -> None:
        self._slots = OpenSlots(rows)

    def link(self, following: Ids, stored: Stored, start: int, stop: int) -> tuple[int, bool]:
        assert stored.column is not None
        self._slots.widen(stop - start)
        words, heap = stored.column.words.data, stored.column.heap.data
        fresh, again = hashed.link_texts(
            self._slots.data, self._slots.shift, following, words, heap, *stored.mask, start, stop
        )
        self._slots.used += fresh
        return stop, again

    def newest(self, stored: Stored, keys: Keys, start: int, stop: int, sight: Sight) -> tuple[Ids, Ids]:
        own, wanted = stored.column, keys.parts[0].column
        assert own is not None
        assert isinstance(wanted, TextColumn)
        at, rows = _pairs(stop - start)
        n = hashed.find_texts(
            self._slots.data,
            self._slots.shift,
            own.words.data,
            own.heap.data,
            wanted.words.data,
            wanted.heap.data,
            *_where(keys),
            start,
            stop,
            *sight,
            at,
            rows,
        )
        return at[:n], rows[:n]


def _pairs(count: int) -> tuple[Ids, Ids]:
    return np.empty(count, np.int32), np.empty(count, np.int32)


def _wanted(
    stored: Stored, keys: Keys, start: int, stop: int
) -> tuple[Codes | Ids, Mask, bool, Ids, bool, int]:
    """The codes of the keys, and where among them those of the keys [start, stop) are."""
    if stored.column is not None:
        return _numbered(stored.column, keys, start, stop)
    if keys.together is None:
        return keys.parts[0].column.codes(), *_where(keys)
    valid, nulls = (NO_MASK, False) if keys.valid is None else (keys.valid, True)
    return keys.together, valid, nulls, NO_IDS, False, 0


def _numbered(
    stored: TextColumn, keys: Keys, start: int, stop: int
) -> tuple[Codes | Ids, Mask, bool, Ids, bool, int]:
    """The same for strings, by the vocabulary of those that are stored."""
    (part,) = keys.parts
    assert isinstance(part.column, TextColumn)
    assert stored.vocabulary is not None
    if part.column.vocabulary is stored.vocabulary:
        return part.column.numbers(), *_where(keys)
    some = Part(part.column, part.rows[start:stop])
    valid = some.mask()
    numbers = stored.vocabulary.find(part.column, some.rows)
    return numbers, NO_MASK if valid is None else valid, valid is not None, NO_IDS, False, -start


def _where(keys: Keys) -> tuple[Mask, bool, Ids, bool, int]:
    """Which of a column's rows are NULL, and which of them are the keys."""
    (part,) = keys.parts
    valid, nulls = (NO_MASK, False) if part.column.valid is None else (part.column.valid, True)
    if isinstance(part.rows, range):
        return valid, nulls, NO_IDS, False, part.rows.start
    return valid, nulls, part.rows, True, 0
