"""The unit of flow: rows of one signature that travel together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

# Row ids into one row store. A `range` where they follow one another, as in a batch that was just built.
Rows = NDArray[np.int32] | range
Positions = NDArray[np.int32] | NDArray[np.int64] | slice


class Signature(NamedTuple):
    """All that routing may know of a batch.

    `spanned` and `passed` are bit masks over the block's aliases and its costly predicates; `completing` is the
    probe-completion alias of a batch that bounced, else -1. `part` tells rows apart that a policy wants to treat
    differently; 0 where it does not. It has no bearing on where a batch may go.
    """

    spanned: int
    passed: int = 0
    completing: int = -1
    part: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Own:
    """Where a batch's rows of one alias lie if they were not built: in a store that is gone when its batches are."""

    alias: int
    store: Any  # a `RowStore`, of which this layer knows nothing


class Favour(NamedTuple):
    """How much the user cares for a batch's rows, as far as that is known: `judged` is a bit mask of the preferences
    that were looked at, of the edition of them that counts then."""

    weight: float = 1.0
    judged: int = 0
    edition: int = 0


PLAIN = Favour()


@dataclass(slots=True, eq=False)
class Batch:
    """Per alias spanned, a vector of row ids; all vectors are of one length. Nobody changes one: it is not frozen only
    because many are made, and that takes three times as long.

    `seen` says, per alias, how many of its rows the query had been given when the newest part of this batch was
    built: the batch joins with those only, so that each answer is found once, by its newest part.
    """

    signature: Signature
    rows: tuple[Rows | None, ...]
    seen: tuple[int, ...]
    # Where it must go next. A probe that found too much to go on at once is cut short: the rest goes back to the same
    # alias, and its first row has already had `taken` of its matches. An unbuilt batch goes to an alias again and
    # again, and has met the rows before `since` there.
    cut: int = -1
    taken: int = 0
    since: int = 0
    own: Own | None = None
    favour: Favour = PLAIN

    size: int = field(init=False)

    def __post_init__(self) -> None:
        for rows in self.rows:
            if rows is not None:
                self.size = len(rows)
                return
        raise AssertionError("a batch spans something")

    def __len__(self) -> int:
        return self.size

    def with_(
        self,
        *,
        rows: tuple[Rows | None, ...] | None = None,
        seen: tuple[int, ...] | None = None,
        cut: int | None = None,
        taken: int | None = None,
        since: int | None = None,
        own: Own | None = None,
        favour: Favour | None = None,
    ) -> Batch:
        """The same but for these."""
        return Batch(
            self.signature,
            self.rows if rows is None else rows,
            self.seen if seen is None else seen,
            self.cut if cut is None else cut,
            self.taken if taken is None else taken,
            self.since if since is None else since,
            self.own if own is None else own,
            self.favour if favour is None else favour,
        )

    def take(self, positions: Positions) -> Batch:
        """These rows of the batch, whatever it was in the middle of."""
        rows = tuple([None if r is None else taken(r, positions) for r in self.rows])
        return Batch(self.signature, rows, self.seen, own=self.own, favour=self.favour)

    def parts(self, size: int) -> list[Batch]:
        """The batch in pieces of about equal size, none larger than this."""
        count = -(-len(self) // size)
        if count < 2:
            return [self]
        ends = [len(self) * k // count for k in range(count + 1)]
        parts = [self.take(slice(a, b)).with_(cut=self.cut, since=self.since) for a, b in pairwise(ends)]
        parts[0] = parts[0].with_(taken=self.taken)
        return parts

    def signed(self, signature: Signature) -> Batch:
        return Batch(signature, self.rows, self.seen, own=self.own, favour=self.favour)


def as_ids(rows: Rows) -> NDArray[np.int32]:
    return np.arange(rows.start, rows.stop, dtype=np.int32) if isinstance(rows, range) else rows


def joined(parts: Sequence[Rows]) -> Rows:
    """The ids of several vectors as one; a range where they follow one another."""
    if len(parts) == 1:
        return parts[0]
    runs = [p for p in parts if isinstance(p, range)]
    if len(runs) == len(parts) and all(a.stop == b.start for a, b in pairwise(runs)):
        return range(runs[0].start, runs[-1].stop)
    return np.concatenate([as_ids(p) for p in parts])


def coalesced(batches: Iterable[Batch], most: int) -> list[Batch]:
    """Batches that differ in nothing but their rows put together, as long as no more than `most` rows are.

    What differs all the same is taken from the first.
    """
    heaps: list[list[Batch]] = []
    rows = most
    for batch in batches:
        rows += len(batch)
        if rows > most or heaps[-1][-1].own is not batch.own:
            heaps.append([])
            rows = len(batch)
        heaps[-1].append(batch)
    return [heap[0] if len(heap) == 1 else _one(heap) for heap in heaps]


def heaped(batches: Iterable[Batch], most: int) -> Iterator[list[Batch]]:
    """The batches in their order, in heaps of no more than `most` rows each."""
    heap: list[Batch] = []
    rows = 0
    for batch in batches:
        if heap and rows + len(batch) > most:
            yield heap
            heap, rows = [], 0
        heap.append(batch)
        rows += len(batch)
    if heap:
        yield heap


def _one(batches: Sequence[Batch]) -> Batch:
    vectors = [[r for r in of if r is not None] for of in zip(*(b.rows for b in batches), strict=True)]
    return batches[0].with_(rows=tuple([joined(v) if v else None for v in vectors]))


def taken(rows: Rows, positions: Positions) -> Rows:
    """The row ids at these positions; a slice of a range stays a range."""
    if isinstance(positions, slice):
        return rows[positions]
    if isinstance(rows, range):
        return (positions + rows.start).astype(np.int32)
    return rows[positions]
