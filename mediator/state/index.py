"""An index over key columns of a row store: which rows have this key?

Built lazily, for rows added since it was last asked. Where the keys are one exact column of close numbers it has a
place for each; others are hashed. Rows with a NULL in the key are not in it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mediator.state.columns import Keyed, TextColumn
from mediator.state.growable import Growable
from mediator.state.kernels import chains, direct
from mediator.state.kernels import codes as code_kernels
from mediator.state.keys import NO_IDS, Keys
from mediator.state.places import Direct, Hashed, Places, Sight, Stored, Texts
from mediator.state.rowstore import RowStore
from mediator.state.vocabulary import Vocabulary

Codes = NDArray[np.int64]
Ids = NDArray[np.int32]
Mask = NDArray[np.bool_]

# A direct index may have this many places per row, and always this many in all.
_SPARSE = 16
_SMALL = 1 << 12
_LEAST = np.iinfo(np.int64).min
_ALL: Sight = (NO_IDS, False, 0, np.iinfo(np.int32).max)


@dataclass(frozen=True, slots=True)
class Visible:
    """Which stored rows count: those that a query has seen at a position in [since, limit).

    Without `position`, rows were seen in the order of their ids.
    """

    limit: int
    since: int = 0
    position: Ids | None = None

    @property
    def sight(self) -> Sight:
        if self.position is None:
            return NO_IDS, False, self.since, self.limit
        return self.position, True, self.since, self.limit


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
        self._places: Places = Direct(0, 0)
        self._following: Growable[np.int32] = Growable(np.int32)
        self._single = True  # no key has two rows
        self._bounds = 0, 0, -1  # of the first so many rows the least and the greatest code, if there is any
        self._together = _Together() if len(fields) > 1 else None
        self._stored = Stored(None, np.zeros(0, np.int64), None)

    @property
    def vocabulary(self) -> Vocabulary | None:
        """That of its one column, if it has one."""
        column = self._store.bare(self.fields[0]) if len(self.fields) == 1 else None
        return column.vocabulary if isinstance(column, TextColumn) else None

    def probe(self, keys: Keys, visible: Visible, start: int, taken: int, room: int) -> Found:
        """Matches of keys[start:], at most `room` of them; the first key has had `taken` already.

        When all fit, they come in no particular order.
        """
        self.extend()
        stop = min(len(keys), start + room)
        found = None
        if not taken and stop == len(keys):
            found = self._all(keys, visible, start, room)
        if found is None:
            found = self._in_turn(keys, visible, start, stop, taken, room)
        if self._together is None:
            return found
        equal = keys.check(found.at, self._columns(), found.rows)
        return found if equal.all() else Found(found.at[equal], found.rows[equal], found.next, found.taken)

    def extend(self) -> None:
        """Take in the rows added since; link them onto their chains, or link all anew where they do not fit."""
        if self.n == self._store.n:
            return
        start, self.n = self.n, self._store.n
        stored = self._stored = self._read()
        self._following.claim(self.n)  # of a row that is NULL nobody reads it
        numbered = stored.column is None or stored.column.vocabulary is not None
        if not numbered and not start:
            self._places = Texts(self.n)
        if numbered and isinstance(self._places, Texts):  # it has come to have a vocabulary
            start, self._places, self._single = 0, Direct(0, 0), True
        if isinstance(self._places, Hashed):
            start = self._reconsider(stored, start)
        done, again = self._places.link(self._following.data, stored, start, self.n)
        self._single &= not again
        if done < self.n and self._reaches(stored, done):
            done, again = self._places.link(self._following.data, stored, done, self.n)
            self._single &= not again
        if done < self.n:
            self._places = self._direct(stored) or Hashed(self.n)
            _, again = self._places.link(self._following.data, stored, 0, self.n)
            self._single = not again

    def _columns(self) -> list[Keyed]:
        return [self._store.column(f).keyed() for f in self.fields]

    def _read(self) -> Stored:
        columns = self._columns()
        if self._together is not None:
            self._together.extend(columns, self.n)
            return Stored(None, self._together.codes.used, self._together.valid.used)
        (column,) = columns
        if isinstance(column, TextColumn):
            return Stored(column, column.numbers(), column.valid)
        return Stored(None, column.codes(), column.valid)

    def _reaches(self, stored: Stored, start: int) -> bool:
        """Whether there are places now for the keys of the rows from `start` on: where keys are greater by and by, like
        the numbers of a vocabulary, those that have one keep it."""
        if not isinstance(self._places, Direct) or self._together is not None or not start:
            return False
        return self._places.reach(*self._bounded(stored), max(_SPARSE * self.n, _SMALL))

    def _reconsider(self, stored: Stored, start: int) -> int:
        """There may be rows enough by now for a place for each key; from which row on to link."""
        places = self._direct(stored)
        if places is None:
            return start
        self._places, self._single = places, True
        return 0

    def _direct(self, stored: Stored) -> Direct | None:
        """Places for every key of one exact column, where that takes no more room than slots would."""
        if self._together is not None:
            return None
        low, high = self._bounded(stored)
        places = high - low + 1
        if places > max(_SPARSE * self.n, _SMALL):
            return None
        # Later keys find room below and, as many grow with time, more above, so that this stays rare.
        below = max(places // 16, _SMALL // 4)
        return Direct(max(low - below, _LEAST), below + places + max(places // 4, _SMALL))

    def _bounded(self, stored: Stored) -> tuple[int, int]:
        """The least and the greatest code; (0, -1) where there is none. It looks at those that came since it last did:
        of hashed keys it is asked every time whether there could be a place for each by now."""
        known, low, high = self._bounds
        if known < self.n:
            least, most = direct.bounds(stored.codes, *stored.mask, known, self.n)
            if low > high:
                low, high = least, most
            elif least <= most:
                low, high = min(low, least), max(high, most)
            self._bounds = self.n, low, high
        return low, high

    def _all(self, keys: Keys, visible: Visible, start: int, room: int) -> Found | None:
        """Every row of these keys' chains, link by link; none if they outgrow the room."""
        stop = len(keys)
        if self._single:
            return Found(*self._places.newest(self._stored, keys, start, stop, visible.sight), stop, 0)
        at, rows = self._places.newest(self._stored, keys, start, stop, _ALL)
        going = len(at)
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
                self._following.data, *visible.sight, at, rows, going, out_at, out_rows, n
            )
        return Found(out_at[:n], out_rows[:n], stop, 0)

    def _in_turn(self, keys: Keys, visible: Visible, start: int, stop: int, taken: int, room: int) -> Found:
        """As many rows of these keys' chains as there is room for, in the order of the keys."""
        at, rows = self._places.newest(self._stored, keys, start, stop, _ALL)
        out_at, out_rows = np.empty(room, np.int32), np.empty(room, np.int32)
        n, chain, had = chains.follow_each(
            self._following.data, *visible.sight, at, rows, len(at), taken, out_at, out_rows
        )
        return Found(out_at[:n], out_rows[:n], int(at[chain]) if chain < len(at) else stop, had)


class _Together:
    """Several columns' codes as one for each row, and which rows have no NULL in any of them."""

    def __init__(self) -> None:
        self.codes: Growable[np.int64] = Growable(np.int64)
        self.valid: Growable[np.bool_] = Growable(np.bool_)

    def extend(self, columns: list[Keyed], stop: int) -> None:
        start = self.codes.n
        fresh, valid = columns[0].codes()[start:stop].copy(), np.ones(stop - start, np.bool_)
        for column in columns[1:]:
            code_kernels.combine(fresh, column.codes()[start:stop])
        for column in columns:
            if column.valid is not None:
                valid &= column.valid[start:stop]
        self.codes.extend(fresh)
        self.valid.extend(valid)


def _longer(ids: Ids, n: int, size: int) -> Ids:
    longer = np.empty(size, np.int32)
    longer[:n] = ids[:n]
    return longer
