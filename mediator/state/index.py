"""An index over key columns of a row store: which rows have this key?

Built lazily, for rows added since it was last asked. As long as the keys are one exact column of close numbers it is
direct (a key is a place); past that it is hashed. Rows with a NULL in the key are not in it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mediator.state.columns import Keyed
from mediator.state.growable import Growable
from mediator.state.kernels import chains
from mediator.state.kernels import codes as code_kernels
from mediator.state.keys import NO_MASK, Keys
from mediator.state.rowstore import RowStore

Codes = NDArray[np.int64]
Ids = NDArray[np.int32]
Mask = NDArray[np.bool_]

_NO_IDS: Ids = np.zeros(0, np.int32)
# A direct index may have this many places per row, and always this many in all.
_SPARSE = 8
_SMALL = 1 << 12


@dataclass(frozen=True, slots=True)
class Visible:
    """Which stored rows count: those that a query has seen at a position in [since, limit).

    Without `position`, rows were seen in the order of their ids.
    """

    limit: int
    since: int = 0
    position: Ids | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """Matches as pairs (probe position, row id), and where to go on if there was no room for all."""

    at: Ids
    rows: Ids
    next: int
    taken: int


class Index:
    def __init__(self, store: RowStore, fields: tuple[str, ...]) -> None:
        self._store = store
        self.fields = fields
        self.n = 0  # rows taken in
        self._head = np.full(0, -1, np.int32)
        self._following: Growable[np.int32] = Growable(np.int32)
        self._codes: Codes = np.empty(0, np.int64)
        self._own: Growable[np.int64] | None = Growable(np.int64) if len(fields) > 1 else None
        self._single = True  # no chain of a direct index holds two rows
        self._low = 0
        self._shift: np.uint64 | None = None  # set once hashed

    def columns(self) -> list[Keyed]:
        return [self._store.column(f).keyed() for f in self.fields]

    def probe(self, keys: Keys, visible: Visible, start: int, taken: int, room: int) -> Found:
        """Matches of keys[start:], at most `room` of them; the first key has had `taken` already."""
        self.extend()
        valid = NO_MASK if keys.valid is None else keys.valid
        nulls = keys.valid is not None
        quick = self._shift is None and self._single and visible.position is None and not visible.since
        if quick and not taken and len(keys) - start <= room:
            at, found = _pair(len(keys) - start)
            n = chains.probe_single(
                self._head, self._low, keys.codes, valid, nulls, start, visible.limit, at, found
            )
            after, had = len(keys), 0
        else:
            at, found = _pair(room)
            mapped = visible.position is not None
            n, after, had = chains.probe_chains(
                self._head, self._following.data, self._codes, self._shift is not None, self._low,
                self._shift or np.uint64(0), keys.codes, valid, nulls, start, taken,
                visible.position if visible.position is not None else _NO_IDS, mapped,
                visible.since, visible.limit, at, found,
            )
        at, found = at[:n], found[:n]
        equal = keys.check(at, self.columns(), found)
        if equal is not None and not equal.all():
            at, found = at[equal], found[equal]
        return Found(at, found, after, had)

    def first(self, keys: Keys) -> Ids:
        """For each key a row that has its code, else -1. The caller checks that they are equal."""
        self.extend()
        found = np.empty(len(keys), np.int32)
        chains.first_of(
            self._head, self._following.data, self._codes, self._shift is not None, self._low,
            self._shift or np.uint64(0), keys.codes,
            NO_MASK if keys.valid is None else keys.valid, keys.valid is not None, found,
        )
        return found

    def extend(self) -> None:
        """Take in the rows added since; link them onto their chains, or link all anew where they do not fit."""
        if self.n == self._store.n:
            return
        start, stop = self.n, self._store.n
        columns = self.columns()
        codes, valid = self._key_codes(columns, start, stop), _all_valid(columns)
        mask, nulls = (NO_MASK, False) if valid is None else (valid, True)
        self._codes = codes
        self._following.grow(stop)
        self.n = stop
        if self._shift is not None and stop <= len(self._head):
            chains.link_hashed(self._head, self._following.data, codes, mask, nulls, self._shift, start, stop)
        elif self._shift is None and self._has_places(*chains.bounds(codes, mask, nulls, start, stop)):
            self._link_direct(mask, nulls, start)
        else:
            self._link_anew(mask, nulls, columns[0].exact)

    def _key_codes(self, columns: list[Keyed], start: int, stop: int) -> Codes:
        if self._own is None:
            return columns[0].codes()
        fresh = columns[0].codes()[start:stop].copy()
        for column in columns[1:]:
            code_kernels.combine(fresh, column.codes()[start:stop])
        self._own.extend(fresh)
        return self._own.used

    def _has_places(self, low: int, high: int) -> bool:
        """Whether the direct index reaches from `low` to `high`."""
        return high < low or (low >= self._low and high < self._low + len(self._head))

    def _link_anew(self, mask: Mask, nulls: bool, exact: bool) -> None:
        """Every row, old ones first, so that chains keep their order: directly if there are not too many places."""
        low, high = chains.bounds(self._codes, mask, nulls, 0, self.n)
        places = high - low + 1
        if self._own is None and exact and places <= max(_SPARSE * self.n, _SMALL):
            # Keys that grow with time find room at the end, so that this stays rare.
            self._head = np.full(2 * places, -1, np.int32)
            self._low, self._shift, self._single = low, None, True
            self._link_direct(mask, nulls, 0)
            return
        bits = max(8, int(2 * self.n - 1).bit_length())
        self._head = np.full(1 << bits, -1, np.int32)
        self._shift = np.uint64(64 - bits)
        chains.link_hashed(self._head, self._following.data, self._codes, mask, nulls, self._shift, 0, self.n)

    def _link_direct(self, mask: Mask, nulls: bool, start: int) -> None:
        again = chains.link_direct(
            self._head, self._following.data, self._codes, mask, nulls, self._low, start, self.n
        )
        self._single &= not again


def _pair(room: int) -> tuple[Ids, Ids]:
    return np.empty(room, np.int32), np.empty(room, np.int32)


def _all_valid(columns: list[Keyed]) -> Mask | None:
    valid: Mask | None = None
    for column in columns:
        if column.valid is not None:
            valid = column.valid if valid is None else valid & column.valid
    return valid
