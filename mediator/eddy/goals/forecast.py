"""Which access should come next? Draws what is not known, and plays every order of the accesses against that.

What an access will answer is not known before it is made, only which bindings it would be asked for now. So a number of
worlds are drawn: in each of them every value either has a match in an alias or has none, with a chance that what was
answered so far makes likely. In a world it can be counted what each order of the accesses would ask in all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from mediator.binding.model import Provider
from mediator.eddy.goals.picture import Picture, Way

Mask = NDArray[np.bool_]
Codes = NDArray[np.int64]
Costs = NDArray[np.float64]

WORLDS = 24
_ROWS = 2_000  # of a table that worlds are drawn for
_SPREAD = 16
_BRIDGED = (
    4.0  # combinations of two tables' values for each of the larger one's, once an alias has joined them
)
_DEEP = 6  # aliases whose orders are all played


@dataclass(frozen=True, slots=True)
class Chance:
    """How likely a value is to have a match: as if so many had been seen with one, and so many without."""

    found: float = 1.0
    missed: float = 1.0


@dataclass(frozen=True, slots=True)
class Later:
    """An access that needs rows of an alias that is not settled itself: about `each` bindings per value of that."""

    provider: Provider
    parent: int
    needs: int  # aliases that have to be settled before
    each: float


@dataclass(frozen=True, slots=True)
class Prospect:
    """What a first access would come to: requests in all, by world, if all that follows is done in the best order."""

    way: Way
    costs: Costs

    @property
    def mean(self) -> float:
        return float(self.costs.mean())


class Forecast:
    def __init__(
        self,
        picture: Picture,
        ways: Sequence[Way],
        later: Sequence[Later],
        chances: Sequence[Chance],
        random: np.random.Generator,
    ) -> None:
        self._picture = picture
        self._ways = ways
        self._later = later
        self._random = random
        self._open = picture.open
        self._sample = [self._sampled(len(table)) for table in picture.tables]
        self._survive: dict[int, dict[int, Mask]] = {}
        self._values: dict[int, dict[int, Codes]] = {}
        for alias in self._open:
            self._draw(alias, chances[alias])
        for alias in self._open:
            self._draw_later(alias, chances[alias])
        self._groups = {id(way): self._grouped(way) for way in ways if way.table >= 0}
        self._shares = {
            id(way): [(n, _sorted(codes[self._sample[n]])) for n, codes in way.parts] for way in ways
        }
        self._alive: dict[tuple[int, int], Mask] = {}
        self._best: dict[int, Costs] = {}

    def prospects(self) -> list[Prospect]:
        """Of all accesses that can be made now."""
        return [
            Prospect(way, self._cost(0, way) + self._to_go(1 << way.provider.alias)) for way in self._ways
        ]

    def likely(self, way: Way) -> NDArray[np.float64]:
        """Of each binding, in what share of the worlds it must be asked even after all others were."""
        found = np.full(way.count, 0.5)
        if way.table < 0:
            return found
        others = sum(1 << a for a in self._open if a != way.provider.alias)
        order, starts, codes = self._groups[id(way)]
        if len(starts):
            alive = self._living(others, way.table)[:, order]
            found[codes] = np.logical_or.reduceat(alive, starts, axis=1).mean(axis=0)
        return found

    def certain(self, way: Way) -> Mask:
        """The bindings that must be asked in whatever order: each stands in a row that has all its other matches."""
        needed = np.zeros(way.count, np.bool_)
        if way.table < 0:
            return needed
        rows = way.codes >= 0
        for alias in self._open:
            if alias == way.provider.alias or way.table not in self._survive[alias]:
                continue
            ties = self._picture.ties(alias, way.table)
            if ties is None:
                return needed  # what it is asked by is not known yet
            rows &= np.isin(ties, self._picture.seen(alias, way.table).known)
        needed[way.codes[rows]] = True
        return needed

    def _sampled(self, rows: int) -> NDArray[np.int64]:
        if rows <= _ROWS:
            return np.arange(rows)
        return np.sort(self._random.choice(rows, _ROWS, replace=False))

    def _draw(self, alias: int, chance: Chance) -> None:
        """In each world, which of each table's rows have a match in the alias."""
        self._survive[alias], self._values[alias] = {}, {}
        for number, rows in enumerate(self._sample):
            ties = self._picture.ties(alias, number)
            if ties is None:
                continue
            seen = self._picture.seen(alias, number)
            match = self._matches(int(ties.max(initial=0)) + 1, chance, seen.found, seen.missed)
            match[:, seen.known] = True
            self._survive[alias][number] = match[:, ties[rows]]
            self._values[alias][number] = ties[rows]

    def _draw_later(self, alias: int, chance: Chance) -> None:
        """An alias that no row is tied to yet thins out the values of the one that it will be asked by."""
        parent = next((w.parent for w in self._later if w.provider.alias == alias), -1)
        if self._survive[alias] or parent < 0:
            return
        for number, values in self._values[parent].items():
            match = self._matches(int(values.max(initial=0)) + 1, chance, 0, 0)
            self._survive[alias][number] = match[:, values]
            self._values[alias][number] = values

    def _matches(self, values: int, chance: Chance, found: int, missed: int) -> Mask:
        # Spread evenly over all that is likely, so that a few worlds show as much as many would.
        many = np.sort(self._random.beta(chance.found + found, chance.missed + missed, WORLDS * _SPREAD))
        likely = self._random.permutation(many[_SPREAD // 2 :: _SPREAD])
        drawn: Mask = self._random.random((WORLDS, values)) < likely[:, None]
        return drawn

    def _grouped(self, way: Way) -> tuple[Codes, Codes, Codes]:
        """The sample's rows in the order of their bindings, where each binding starts, and which it is."""
        return _sorted(way.codes[self._sample[way.table]])

    def _living(self, done: int, table: int) -> Mask:
        """In each world, which of the table's rows are left when these aliases have been asked."""
        found = self._alive.get((done, table))
        if found is None:
            found = np.ones((WORLDS, len(self._sample[table])), np.bool_)
            for alias in self._open:
                if done >> alias & 1 and table in self._survive[alias]:
                    found &= self._survive[alias][table]
            self._alive[done, table] = found
        return found

    def _hope(self, done: int) -> Mask:
        """In which worlds there can still be an answer."""
        left = [self._living(done, n).any(axis=1) for n in range(len(self._sample))]
        return reduce(np.logical_and, left, np.ones(WORLDS, np.bool_))

    def _crossed(self, done: int, way: Way) -> Costs:
        """All pairs of what is left of several tables' values; fewer, once some alias has joined the tables."""
        counts = []
        for number, values in self._shares[id(way)]:
            order, starts, _ = values
            alive = self._living(done, number)[:, order]
            counts.append(
                np.logical_or.reduceat(alive, starts, axis=1).sum(axis=1) if len(starts) else np.zeros(WORLDS)
            )
        pairs = reduce(np.multiply, counts).astype(np.float64)
        tables = {number for number, _ in way.parts}
        if any(done >> a & 1 and len(tables & self._survive[a].keys()) > 1 for a in self._open):
            return np.minimum(pairs, _BRIDGED * reduce(np.maximum, counts))
        return pairs

    def _cost(self, done: int, way: Way) -> Costs:
        if way.parts:
            bindings = self._crossed(done, way)
        elif way.table < 0:
            bindings = np.full(WORLDS, float(way.count))
        else:
            order, starts, present = self._groups[id(way)]
            bindings = np.zeros(WORLDS)
            if len(starts):
                alive = self._living(done, way.table)[:, order]
                bindings = np.logical_or.reduceat(alive, starts, axis=1).sum(axis=1) * (
                    way.count / len(present)
                )
        return _requests(bindings, way.provider) * self._hope(done)

    def _cost_later(self, done: int, later: Later) -> Costs:
        """As many bindings as values of the parent's are left."""
        for number, values in self._values[later.parent].items():
            order = np.argsort(values, kind="stable")
            present, starts = np.unique(values[order], return_index=True)
            if len(present):
                alive = self._living(done, number)[:, order]
                left = np.logical_or.reduceat(alive, starts, axis=1).sum(axis=1) * later.each
                return _requests(left, later.provider) * self._hope(done)
        return np.full(WORLDS, later.each)

    def _to_go(self, done: int) -> Costs:
        """Requests that are still to come in each world, by the order that is best there."""
        found = self._best.get(done)
        if found is None:
            found = self._best[done] = self._played(done)
        return found

    def _played(self, done: int) -> Costs:
        left = [a for a in self._open if not done >> a & 1]
        if not left:
            return np.zeros(WORLDS)
        costs = {a: c for a in left if (c := self._asked_next(done, a)) is not None}
        if not costs:
            return np.zeros(WORLDS)
        if len(left) > _DEEP:
            costs = dict([min(costs.items(), key=lambda item: float(item[1].mean()))])
        return reduce(np.minimum, [cost + self._to_go(done | 1 << a) for a, cost in costs.items()])

    def _asked_next(self, done: int, alias: int) -> Costs | None:
        """What the alias would be asked after these, by its cheapest way."""
        costs = [self._cost(done, w) for w in self._ways if w.provider.alias == alias]
        costs += [
            self._cost_later(done, w)
            for w in self._later
            if w.provider.alias == alias and not w.needs & ~done
        ]
        return reduce(np.minimum, costs) if costs else None


def _sorted(codes: Codes) -> tuple[Codes, Codes, Codes]:
    """Positions in the order of their codes, where each code starts, and which there are; -1 is none."""
    order = np.argsort(codes, kind="stable")
    order = order[codes[order] >= 0]
    present, starts = np.unique(codes[order], return_index=True)
    return order, starts, present


def _requests(bindings: Costs, provider: Provider) -> Costs:
    """As many bindings travel together as the site takes in one request."""
    size = provider.method.batch_size
    return bindings if size == 1 else np.ceil(bindings / size)
