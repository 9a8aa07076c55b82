"""How many rows wait for each binding that is being asked for: the more do, the sooner it is to be asked.

Rows are counted by the entries of the coverage, a batch at a time. What has changed enough is told once a turn.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mediator.eddy.preferring import Weights
from mediator.eddy.run import Run
from mediator.flow.events import FIRST, Ask, Binding, Urge
from mediator.state.coverage import BindSet, Known
from mediator.state.growable import Growable

Numbers = NDArray[np.int32]
_Set = tuple[str, BindSet]

_NEWS = 1.05  # times as much as was told: less makes no difference to the order
_SPARSE = 8  # times as many entries as rows: then rows are sorted rather than counted entry by entry


class _Count:
    """Of one bind set, by number of entry: what waits, what of it was told, which asks carry it."""

    def __init__(self) -> None:
        self.total: Growable[np.float64] = Growable(np.float64)
        self.told: Growable[np.float64] = Growable(np.float64)
        self.changed: list[NDArray[np.int64]] = []
        self.asks: dict[Binding, int] = {}

    def add(self, numbers: Numbers, weights: Weights) -> None:
        most = int(numbers.max()) + 1
        self.total.grow(most)
        self.told.grow(most)
        if most > _SPARSE * len(numbers):
            found, each = np.unique(numbers, return_inverse=True)
            self.changed.append(found.astype(np.int64))
            self.total.data[found] += _summed(each, weights, len(found))
        else:
            sums = _summed(numbers, weights, most)
            self.changed.append(np.flatnonzero(sums))
            self.total.data[:most] += sums

    def news(self) -> NDArray[np.int64]:
        """The entries of which more, or less, waits than was told."""
        if not self.changed:
            return np.zeros(0, np.int64)
        changed = self.changed[0] if len(self.changed) == 1 else np.unique(np.concatenate(self.changed))
        self.changed.clear()
        total, told = self.total.data[changed], self.told.data[changed]
        fresh = changed[(total > _NEWS * told) | (total < told)]
        self.told.data[fresh] = self.total.data[fresh]
        return fresh


class Urging:
    """One per block. With `active` off nothing is counted, and lookups go in the order in which they were asked."""

    def __init__(self, run: Run, active: bool) -> None:
        self.active = active
        self.worth: Mapping[str, float] = {}  # how much more than others a relation's scans are worth
        self._scans: list[Urge] = []
        self._run = run
        self._counts: dict[_Set, _Count] = {}

    def first(self, relation: str) -> float:
        """How urgent it is to ask a relation for what needs no row's help."""
        return FIRST * self.worth.get(relation, 1.0) if self.active else 0.0

    def prefer(self, worth: Mapping[str, float], scans: Iterable[Ask]) -> None:
        """From now on some scans are worth more than others, those under way included."""
        self.worth = worth
        if self.active:
            self._scans += [Urge(a.number, dict.fromkeys(a.bindings, self.first(a.relation))) for a in scans]

    def asked(self, ask: Ask) -> None:
        """From now on this ask carries its bindings."""
        if self.active and ask.bind_set:
            count = self._counts.setdefault((ask.relation, ask.bind_set), _Count())
            count.asks.update(dict.fromkeys(ask.bindings, ask.number))

    def ended(self, ask: Ask, bindings: Collection[Binding]) -> None:
        """Nobody waits for these any more."""
        count = self._counts.get((ask.relation, ask.bind_set))
        if count is not None:
            for binding in bindings:
                count.asks.pop(binding, None)

    def wait(self, relation: str, bind_set: BindSet, numbers: Numbers, weights: Weights) -> None:
        """Rows wait for the bindings of these entries, one for each number, and count for so much each."""
        if self.active and len(numbers):
            self._counts.setdefault((relation, bind_set), _Count()).add(numbers, weights)

    def anew(self) -> None:
        """Forget who waits: all of them are about to be counted again."""
        for count in self._counts.values():
            count.total.data[: count.total.n] = 0.0
            count.changed.append(np.arange(count.total.n))

    def waits(self, relation: str, bind_set: BindSet) -> bool:
        """Whether any binding of the bind set is being asked for."""
        count = self._counts.get((relation, bind_set))
        return count is not None and bool(count.asks)

    def commands(self) -> list[Urge]:
        """What has changed since this was last asked."""
        scans, self._scans = self._scans, []
        urged: dict[int, dict[Binding, float]] = {}
        for (relation, bind_set), count in self._counts.items():
            coverage = self._run.views[relation].coverage
            fresh = count.news()
            if not len(fresh):
                continue
            asked = fresh[coverage.states_of(bind_set, fresh.astype(np.int32)) == Known.ASKED]
            bindings = coverage.bindings(bind_set, asked.tolist())
            for binding, urgency in zip(bindings, count.total.data[asked].tolist(), strict=True):
                number = count.asks.get(binding)
                if number is not None:
                    urged.setdefault(number, {})[binding] = urgency
        return [*scans, *(Urge(number, urgencies) for number, urgencies in urged.items())]


def _summed(numbers: NDArray[np.integer[Any]], weights: Weights, size: int) -> NDArray[np.float64]:
    """Per entry what the rows that wait for it weigh together."""
    if isinstance(weights, float):
        counts: NDArray[np.float64] = np.bincount(numbers, minlength=size).astype(np.float64)
        return weights * counts
    summed: NDArray[np.float64] = np.bincount(numbers, weights, minlength=size).astype(np.float64)
    return summed
