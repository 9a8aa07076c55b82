"""Which partial answers there are: by the stored rows that they are made of.

A key is the vector of row ids of the aliases that a partial answer has rows of. So equal rows of a bag are told apart,
and so are the two sides of a self-join. What was completed is remembered, so that every answer that completes it can
say so, until the room is needed for what is open.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from mediator.flow.batch import Batch, Rows, Signature, as_ids
from mediator.partials.parts import bits
from mediator.state.growable import Growable

Mask = NDArray[np.bool_]


class _Shape:
    """Partial answers that have rows of the same aliases."""

    def __init__(self, mask: int) -> None:
        self.aliases = bits(mask)
        self.ids: dict[bytes, int] = {}
        self._first: Growable[np.bool_] = Growable(
            np.bool_
        )  # whether a row of the first alias is in any of them

    def keys(self, batch: Batch) -> list[bytes]:
        return _keys([_rows(batch, a) for a in self.aliases])

    def note(self, batch: Batch, ids: Sequence[int]) -> None:
        first = _rows(batch, self.aliases[0])
        if len(first):
            self._first.grow(int(first.max()) + 1)
            self._first.data[first] = True
        self.ids.update(zip(self.keys(batch), ids, strict=True))

    def likely(self, batch: Batch) -> NDArray[np.int64]:
        """Where in the batch a key may be that is known: its first row is in some."""
        first = _rows(batch, self.aliases[0])
        near = np.flatnonzero(first < self._first.n)
        return near[self._first.used[first[near]]]

    def batch(self, keys: Sequence[bytes], size: int, mask: int) -> Batch:
        """The rows behind these keys."""
        found = np.frombuffer(b"".join(keys), np.int32).reshape(-1, len(self.aliases))
        rows: list[Rows | None] = [None] * size
        for column, alias in enumerate(self.aliases):
            rows[alias] = np.ascontiguousarray(found[:, column])
        return Batch(Signature(mask), tuple(rows), (0,) * size)


class Register:
    """All of one query: those that are open, and of those that were completed as many as there is room for."""

    def __init__(self, aliases: int, most: int) -> None:
        self.most = most
        self.given = self.completed = self.withdrawn = self.left_out = 0
        self._aliases = aliases
        self._shapes: dict[int, _Shape] = {}
        self._open: dict[int, tuple[int, bytes]] = {}
        self._done: dict[int, tuple[int, bytes]] = {}  # completed, the earliest first

    @property
    def open(self) -> int:
        return len(self._open)

    @property
    def room(self) -> int:
        """How many more may be open."""
        return self.most - len(self._open)

    def unknown(self, batch: Batch) -> Mask:
        """Which rows of the batch are no partial answers yet."""
        shape = self._shapes.get(batch.signature.spanned)
        fresh = np.ones(len(batch), np.bool_)
        if shape is not None:
            near = shape.likely(batch)
            keys = shape.keys(batch.take(near))
            fresh[near] = [key not in shape.ids for key in keys]
        return fresh

    def admit(self, batch: Batch) -> tuple[int, ...]:
        """Ids for as many rows of the batch as there is room for, the first ones. The others are counted."""
        mask, count = batch.signature.spanned, min(len(batch), max(0, self.room))
        self.left_out += len(batch) - count
        if not count:
            return ()
        batch = batch.take(slice(0, count))
        self._forget(len(self._open) + len(self._done) + count - self.most)
        shape = self._shapes.setdefault(mask, _Shape(mask))
        ids = tuple(range(self.given + 1, self.given + 1 + count))
        shape.note(batch, ids)
        self._open.update((id_, (mask, key)) for id_, key in zip(ids, shape.keys(batch), strict=True))
        self.given += count
        return ids

    def extended_by(self, batch: Batch) -> dict[int, tuple[int, ...]]:
        """Of answers of the block: which partial answers are made of the same rows, by the answer's place."""
        found: dict[int, tuple[int, ...]] = {}
        for shape in self._shapes.values():
            near = shape.likely(batch)
            if len(near) and shape.ids:
                for at, key in zip(near.tolist(), shape.keys(batch.take(near)), strict=True):
                    id_ = shape.ids.get(key)
                    if id_ is not None:
                        found[at] = (*found.get(at, ()), id_)
        return found

    def complete(self, ids: Sequence[int]) -> None:
        """An answer was given that completes these."""
        for id_ in ids:
            known = self._open.pop(id_, None)
            if known is not None:
                self._done[id_] = known
                self.completed += 1

    def withdraw(self, ids: Sequence[int]) -> None:
        for id_ in ids:
            mask, key = self._open.pop(id_)
            del self._shapes[mask].ids[key]
        self.withdrawn += len(ids)

    def opened(self) -> Iterator[tuple[tuple[int, ...], Batch]]:
        """All that are open, in batches of those that have rows of the same aliases."""
        by_mask: dict[int, list[tuple[int, bytes]]] = {}
        for id_, (mask, key) in self._open.items():
            by_mask.setdefault(mask, []).append((id_, key))
        for mask, some in by_mask.items():
            keys = [key for _, key in some]
            yield tuple(id_ for id_, _ in some), self._shapes[mask].batch(keys, self._aliases, mask)

    def _forget(self, count: int) -> None:
        for id_ in list(islice(self._done, max(0, count))):
            mask, key = self._done.pop(id_)
            del self._shapes[mask].ids[key]


def _rows(batch: Batch, alias: int) -> NDArray[np.int32]:
    rows = batch.rows[alias]
    assert rows is not None
    return as_ids(rows)


def _keys(columns: Sequence[NDArray[np.int32]]) -> list[bytes]:
    together = np.ascontiguousarray(np.stack(columns, axis=1))
    width = together.dtype.itemsize * together.shape[1]
    data = together.tobytes()
    return [data[at : at + width] for at in range(0, len(data), width)]
