"""What the user prefers, made out in batches: rows that are cared for more, or less, float apart from the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from mediator.eddy.floating import Floating
from mediator.eddy.run import Run
from mediator.flow.batch import PLAIN, Batch, Favour, taken
from mediator.query.model import Column, Preference

Weights = float | NDArray[np.float64]  # of rows: one for all, or one each
_Reads = Mapping[Column, Column]  # by the column that a preference names: an equal one that a batch has

_NONE: Mapping[str, float] = {}


class Preferring:
    """Batches that float, each as much cared for as is known of its rows.

    A preference is looked at as soon as a batch spans what it speaks of, or columns that are equal to that in every
    answer. Rows on which it makes a difference part there; a batch of which all rows are alike stays as it is.
    """

    def __init__(self, inner: Floating, run: Run, preferences: Sequence[Preference] = ()) -> None:
        self._inner = inner
        self._run = run
        self._preferences = tuple(preferences)
        self._edition = 0
        self._equals = _equals(run)
        self._known: dict[tuple[int, int], _Reads | None] = {}

    @property
    def rows(self) -> int:
        return self._inner.rows

    @property
    def worth(self) -> Mapping[str, float]:
        """By relation, the weights of all preferences that speak of it, multiplied."""
        if not self._preferences:
            return _NONE
        found: dict[str, float] = {}
        for preference in self._preferences:
            aliases = {column.alias for column in preference.reads}
            for name in {self._run.block.aliases[alias].relation.name for alias in aliases}:
                found[name] = found.get(name, 1.0) * preference.weight
        return found

    def push(self, batch: Batch) -> None:
        if not self._preferences and batch.favour is PLAIN:
            self._inner.push(batch)
            return
        for part in self.parted(batch):
            self._inner.push(part)

    def pop(self) -> Batch:
        return self._inner.pop()

    def __len__(self) -> int:
        return len(self._inner)

    def prefer(self, preferences: Sequence[Preference]) -> None:
        """From now on these count, and not those before; also for what floats already."""
        self._preferences = tuple(preferences)
        self._edition += 1
        self._known.clear()
        for batch in [self._inner.pop() for _ in range(len(self._inner))]:
            self.push(batch.with_(favour=Favour(edition=self._edition)))

    def weights(self, batch: Batch) -> Weights:
        """How much the user cares for each of the batch's rows; one number where they are all alike."""
        favour, weights = self._judged(batch)
        return favour.weight if weights is None else favour.weight * weights

    def parted(self, batch: Batch) -> Iterator[Batch]:
        """The batch in parts that the user cares for differently, the most preferred one first."""
        favour, weights = self._judged(batch)
        if weights is None:
            yield batch if favour is batch.favour else batch.with_(favour=favour)
            return
        for weight in np.unique(weights)[::-1].tolist():
            yield _part(batch, weights == weight, favour._replace(weight=favour.weight * weight))

    def _judged(self, batch: Batch) -> tuple[Favour, NDArray[np.float64] | None]:
        """What is known of all of its rows, and, where a preference can be looked at now that could not be before, how
        much more or less each is worth."""
        favour = batch.favour
        if favour.edition != self._edition:
            favour = Favour(edition=self._edition)
        judged, weights = favour.judged, None
        # What is in the middle of a probe stays together: how far it has come is counted from its first row.
        if batch.cut < 0:
            for number, preference in enumerate(self._preferences):
                reads = None if judged >> number & 1 else self._reads(number, batch.signature.spanned)
                if reads is not None:
                    judged |= 1 << number
                    met = preference.test({c: self._run.gather(batch, at) for c, at in reads.items()})
                    weights = np.ones(len(batch)) if weights is None else weights
                    weights[met] *= preference.weight
        return (favour, None) if weights is None else (favour._replace(judged=judged), weights)

    def _reads(self, number: int, spanned: int) -> _Reads | None:
        """Which of a batch's columns tell whether it satisfies the preference; none where it does not have them all."""
        if (number, spanned) not in self._known:
            self._known[number, spanned] = self._found(self._preferences[number], spanned)
        return self._known[number, spanned]

    def _found(self, preference: Preference, spanned: int) -> _Reads | None:
        reads: dict[Column, Column] = {}
        for column in preference.reads:
            alike = (column, *self._equals.get(column, ()))
            here = next((c for c in alike if spanned >> c.alias & 1), None)
            if here is None:
                return None
            reads[column] = here
        return reads


def _part(batch: Batch, mask: NDArray[np.bool_], favour: Favour) -> Batch:
    if mask.all():
        return batch.with_(favour=favour)
    positions = np.flatnonzero(mask)
    rows = tuple([None if r is None else taken(r, positions) for r in batch.rows])
    return batch.with_(rows=rows, favour=favour)


def _equals(run: Run) -> dict[Column, tuple[Column, ...]]:
    """The columns that are equal to each in every answer."""
    return {column: group.columns for group in run.block.classes for column in group.columns}
