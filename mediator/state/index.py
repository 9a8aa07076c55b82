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
        self._following: Growable[np.int32] = Growable(np.int32)
        self._codes: Codes = np.empty(0, np.int64)
        self._own: Growable[np.int64] | None = Growable(np.int64) if len(fields) > 1 else None
        self._single = True  # no key has two rows
        self._head = _NO_IDS  # of a direct index, with a place for each code from `low` on
        self._low = 0
        self._slots: NDArray[np.uint64] | None = None  # of a hashed one
        self._shift = np.uint64(0)
        self._keys = 0

    def columns(self) -> list[Keyed]:
        return [self._store.column(f).keyed() for f in self.fields]

    def probe(self, keys: Keys, visible: Visible, start: int, taken: int, room: int) -> Found:
        """Matches of keys[start:], at most `room` of them; the first key has had `taken` already.

        When all fit, they come in no particular order.
        """
        self.extend()
        stop = min(len(keys), start + room)
        at, rows = self._newest(keys, start, stop)
        found = None
        if not taken and stop == len(keys):
            found = self._all(at, rows, visible, stop, room)
        if found is None:
            found = self._in_turn(*self._newest(keys, start, stop), visible, stop, taken, room)
        equal = keys.check(found.at, self.columns(), found.rows)
        if equal is not None and not equal.all():
            return Found(found.at[equal], found.rows[equal], found.next, found.taken)
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
        if self._slots is not None and 2 * (self._keys + stop - start) <= len(self._slots):
            self._link_hashed(mask, nulls, start)
        elif self._slots is None and self._has_places(*chains.bounds(codes, mask, nulls, start, stop)):
            self._link_direct(mask, nulls, start)
        else:
            self._link_anew(mask, nulls, columns[0].exact)

    def _newest(self, keys: Keys, start: int, stop: int) -> tuple[Ids, Ids]:
        """For each key that has any row, the newest."""
        valid, nulls = (NO_MASK, False) if keys.valid is None else (keys.valid, True)
        at, rows = np.empty(stop - start, np.int32), np.empty(stop - start, np.int32)
        if self._slots is None:
            n = chains.find_direct(self._head, self._low, keys.codes, valid, nulls, start, stop, at, rows)
        else:
            n = chains.find_hashed(
                self._slots, self._codes, self._shift, keys.codes, valid, nulls, start, stop, at, rows
            )
        return at[:n], rows[:n]

    def _all(self, at: Ids, rows: Ids, visible: Visible, stop: int, room: int) -> Found | None:
        """Every row of these chains, link by link; none if they outgrow the room."""
        position, mapped = _places(visible)
        since, limit, going = visible.since, visible.limit, len(at)
        if self._single:
            n = chains.keep_visible(position, mapped, since, limit, at, rows, going)
            return Found(at[:n], rows[:n], stop, 0)
        size = min(room, 2 * going)
        out_at, out_rows = np.empty(size, np.int32), np.empty(size, np.int32)
        n = 0
        while going:
            if n + going > size:
                size = min(room, 4 * size)
                if n + going > size:
                    return None
                out_at, out_rows = _longer(out_at, n, size), _longer(out_rows, n, size)
            n, going = chains.follow_all(
                self._following.data, position, mapped, since, limit, at, rows, going, out_at, out_rows, n
            )
        return Found(out_at[:n], out_rows[:n], stop, 0)

    def _in_turn(self, at: Ids, rows: Ids, visible: Visible, stop: int, taken: int, room: int) -> Found:
        """As many rows of these chains as there is room for, in the order of the keys."""
        out_at, out_rows = np.empty(room, np.int32), np.empty(room, np.int32)
        n, chain, had = chains.follow_each(
            self._following.data,
            *_places(visible),
            visible.since,
            visible.limit,
            at,
            rows,
            len(at),
            taken,
            out_at,
            out_rows,
        )
        return Found(out_at[:n], out_rows[:n], int(at[chain]) if chain < len(at) else stop, had)

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
        """Every row, old ones first, so that chains keep their order: directly if that takes no more room."""
        low, high = chains.bounds(self._codes, mask, nulls, 0, self.n)
        places = high - low + 1
        self._single = True
        if self._own is None and exact and places <= max(_SPARSE * self.n, _SMALL):
            # Keys that grow with time find room at the end, so that this stays rare.
            self._head = np.full(places + max(places // 4, _SMALL), -1, np.int32)
            self._low, self._slots = low, None
            self._link_direct(mask, nulls, 0)
            return
        bits = max(8, int(2 * self.n - 1).bit_length())
        self._slots = np.zeros(1 << bits, np.uint64)
        self._shift = np.uint64(64 - bits)
        self._keys, self._head = 0, _NO_IDS
        self._link_hashed(mask, nulls, 0)

    def _link_direct(self, mask: Mask, nulls: bool, start: int) -> None:
        again = chains.link_direct(
            self._head, self._following.data, self._codes, mask, nulls, self._low, start, self.n
        )
        self._single &= not again

    def _link_hashed(self, mask: Mask, nulls: bool, start: int) -> None:
        assert self._slots is not None
        fresh, again = chains.link_hashed(
            self._slots, self._following.data, self._codes, mask, nulls, self._shift, start, self.n
        )
        self._keys += fresh
        self._single &= not again


def _longer(ids: Ids, n: int, size: int) -> Ids:
    longer = np.empty(size, np.int32)
    longer[:n] = ids[:n]
    return longer


def _places(visible: Visible) -> tuple[Ids, bool]:
    return (_NO_IDS, False) if visible.position is None else (visible.position, True)


def _all_valid(columns: list[Keyed]) -> Mask | None:
    valid: Mask | None = None
    for column in columns:
        if column.valid is not None:
            valid = column.valid if valid is None else valid & column.valid
    return valid
