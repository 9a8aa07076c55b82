"""Three ways to find the newest row of a key: a place for each code, slots for codes, slots for strings.

Each links rows onto their chains and finds where the chains of wanted keys begin.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mediator.state.columns import TextColumn
from mediator.state.kernels import direct, hashed
from mediator.state.keys import NO_IDS, NO_MASK, Keys
from mediator.state.memory import zeros

Codes = NDArray[np.int64]
Ids = NDArray[np.int32]
Mask = NDArray[np.bool_]
Slots = NDArray[np.uint64]
Sight = tuple[Ids, bool, int, int]  # which rows count, as the kernels take it

_FEWEST = 8  # bits of the number of slots
_LEAP = 22  # up to here tables grow fourfold, from here on twofold


@dataclass(frozen=True, slots=True)
class Stored:
    """The key column of an index, or the codes of several."""

    column: TextColumn | None  # a single column of text
    codes: Codes  # otherwise
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
        self._head = zeros(size, np.int32)

    def link(self, following: Ids, stored: Stored, start: int, stop: int) -> tuple[int, bool]:
        done: tuple[int, bool] = direct.link_direct(
            self._head, self._low, following, stored.codes, *stored.mask, start, stop
        )
        return done

    def newest(self, stored: Stored, keys: Keys, start: int, stop: int, sight: Sight) -> tuple[Ids, Ids]:
        at, rows = _pairs(stop - start)
        n = direct.find_direct(self._head, self._low, *_wanted(keys), start, stop, *sight, at, rows)
        return at[:n], rows[:n]


class _Slots:
    def __init__(self, rows: int) -> None:
        self._bits = max(_FEWEST, int(2 * rows - 1).bit_length())
        self._slots = self._empty()
        self._used = 0

    @property
    def _shift(self) -> np.uint64:
        return np.uint64(32 - self._bits)

    def _empty(self) -> Slots:
        slots: Slots = zeros(1 << self._bits, np.uint64)
        return slots

    def lacks_room(self, rows: int) -> bool:
        """Whether so many rows, whatever their keys, would leave less than half of the slots empty."""
        return 2 * (self._used + rows) > 1 << self._bits

    def _widen(self, rows: int) -> None:
        before = self._bits
        while self.lacks_room(rows):
            self._bits += 2 if self._bits < _LEAP else 1
        if self._bits > before:
            old, self._slots = self._slots, self._empty()
            hashed.spread_out(old, self._slots, self._shift)


class Hashed(_Slots):
    """For codes of any kind. Where they are those of several columns, equal codes need not be equal keys."""

    def link(self, following: Ids, stored: Stored, start: int, stop: int) -> tuple[int, bool]:
        self._widen(stop - start)
        fresh, again = hashed.link_codes(
            self._slots, self._shift, following, stored.codes, *stored.mask, start, stop
        )
        self._used += fresh
        return stop, again

    def newest(self, stored: Stored, keys: Keys, start: int, stop: int, sight: Sight) -> tuple[Ids, Ids]:
        at, rows = _pairs(stop - start)
        n = hashed.find_codes(
            self._slots, self._shift, stored.codes, *_wanted(keys), start, stop, *sight, at, rows
        )
        return at[:n], rows[:n]


class Texts(_Slots):
    """For one column of text."""

    def link(self, following: Ids, stored: Stored, start: int, stop: int) -> tuple[int, bool]:
        assert stored.column is not None
        self._widen(stop - start)
        words, heap = stored.column.words.data, stored.column.heap.data
        fresh, again = hashed.link_texts(
            self._slots, self._shift, following, words, heap, *stored.mask, start, stop
        )
        self._used += fresh
        return stop, again

    def newest(self, stored: Stored, keys: Keys, start: int, stop: int, sight: Sight) -> tuple[Ids, Ids]:
        own, wanted = stored.column, keys.parts[0].column
        assert own is not None
        assert isinstance(wanted, TextColumn)
        at, rows = _pairs(stop - start)
        n = hashed.find_texts(
            self._slots,
            self._shift,
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


def _wanted(keys: Keys) -> tuple[Codes, Mask, bool, Ids, bool, int]:
    """The codes of the keys, and where among them each key's is."""
    if keys.together is None:
        return keys.parts[0].column.codes(), *_where(keys)
    valid, nulls = (NO_MASK, False) if keys.valid is None else (keys.valid, True)
    return keys.together, valid, nulls, NO_IDS, False, 0


def _where(keys: Keys) -> tuple[Mask, bool, Ids, bool, int]:
    """Which of a column's rows are NULL, and which of them are the keys."""
    (part,) = keys.parts
    valid, nulls = (NO_MASK, False) if part.column.valid is None else (part.column.valid, True)
    if isinstance(part.rows, range):
        return valid, nulls, NO_IDS, False, part.rows.start
    return valid, nulls, part.rows, True, 0
