"""What each fixed order would cost, from counts of rows instead of runs.

Under an order every alias's rows take one route: a chain of sets of aliases, each with one alias more. How many rows
reach a set does not depend on the route to it, only on the alias that they started from: they are the rows of the join
of the set's tables whose part of that alias came last. Those counts, for each alias and each connected set, give all
routes of all orders. A join with too many rows is sampled on the way, and its count is an estimate.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from bench.papers.drawn import Drawn, Edge

Ints = NDArray[np.int64]

_SAMPLE = 20_000  # rows of a join that are enough to go on with
# Seconds, as fitted to runs of the engine: of a batch's step, of a row that probes, of a row that is found; of a row in
# an index on the two columns by which a cycle is closed; of a batch that comes, of a row in it, of an answer.
_A_STEP, _A_ROW_IN, _A_ROW_OUT = 25e-6, 6e-9, 7e-9
_A_ROW_INDEXED = 30e-9
_A_BATCH, _A_ROW, _AN_ANSWER = 60e-6, 25e-9, 10e-9


@dataclass(frozen=True, slots=True)
class _Sample:
    """Rows of a join, by the row number in each table. `came` is when the newest part came; each stands for `weight`
    rows."""

    rows: dict[int, Ints]
    came: Ints
    weight: float


class Counts:
    """How many rows reach each set of aliases from each alias, and what that makes of every order."""

    def __init__(self, query: Drawn) -> None:
        self._query = query
        self._random = np.random.default_rng(query.seed)
        self._came, self._batches = _arrivals(query)
        self._kept = [_kept(query, n) for n in range(query.size)]
        self._indexes: dict[tuple[int, int], tuple[Ints, Ints]] = {}
        self._neighbours = [
            sum(1 << _other(e, n) for e in query.edges if n in (e.left, e.right)) for n in range(query.size)
        ]
        self.rows = np.zeros((query.size, 1 << query.size))
        for alias in range(query.size):
            self._count(alias)
        self.orders = np.array(list(permutations(range(query.size))))

    def costs(self) -> NDArray[np.float64]:
        """Of every order, in estimated seconds."""
        total = np.full(len(self.orders), self._common())
        closing = np.zeros(len(self.orders), np.int64)
        for alias in range(self._query.size):
            total += self._costs_from(alias, closing)
        for alias, kept in enumerate(self._kept):
            total += (closing >> alias & 1) * len(kept) * _A_ROW_INDEXED
        return total

    @property
    def answers(self) -> float:
        """About how many."""
        return float(self.rows[:, -1].sum())

    def drifts(self, parts: int = 4) -> dict[tuple[int, int], list[float]]:
        """How many matches a row of an alias has in each neighbour in all, by quarters of the alias's rows."""
        drifts = {}
        for edge in self._query.edges:
            for alias in (edge.left, edge.right):
                other = _other(edge, alias)
                keys = self._column(alias, edge)
                inside = np.sort(self._column(other, edge)[self._kept[other]])
                found = np.searchsorted(inside, keys, side="right") - np.searchsorted(inside, keys)
                pieces = np.array_split(found[self._kept[alias]], parts)
                drifts[alias, other] = [round(float(p.mean()), 3) if len(p) else 0.0 for p in pieces]
        return drifts

    def _common(self) -> float:
        """What a query costs whatever its order."""
        rows = sum(map(len, self._kept))
        return sum(self._batches) * _A_BATCH + rows * _A_ROW + self.answers * _AN_ANSWER

    def _costs_from(self, alias: int, closing: Ints) -> NDArray[np.float64]:
        """Of the rows of one alias, under every order; in `closing` are marked the aliases that are probed by two
        columns."""
        size, neighbours = self._query.size, np.array(self._neighbours)
        spanned = np.full(len(self.orders), 1 << alias)
        reach = np.full(len(self.orders), self._neighbours[alias])
        total = np.zeros(len(self.orders))
        for _ in range(size - 1):
            open_ = (reach[:, None] & ~spanned[:, None]) >> self.orders & 1
            going = self.orders[np.arange(len(self.orders)), open_.argmax(axis=1)]
            before = self.rows[alias, spanned]
            twice = (_bits(neighbours[going] & spanned) > 1) & (before > 0)
            closing |= np.where(twice, 1 << going, 0)
            spanned = spanned | 1 << going
            reach = reach | neighbours[going]
            steps = np.minimum(before, self._batches[alias])
            total += steps * _A_STEP + before * _A_ROW_IN + self.rows[alias, spanned] * _A_ROW_OUT
        return total

    def _count(self, alias: int) -> None:
        """From one alias, set by set, the smaller ones first."""
        own = np.flatnonzero(self._kept[alias])
        samples = {1 << alias: self._thinned({alias: own}, self._came[alias][own], 1.0)}
        self.rows[alias, 1 << alias] = len(own)
        for mask in sorted(range(1, 1 << self._query.size), key=int.bit_count):
            sample = samples.get(mask)
            if sample is None:
                continue
            for other in range(self._query.size):
                wider = mask | 1 << other
                if wider != mask and wider not in samples and self._reach(mask) >> other & 1:
                    samples[wider], count = self._widened(sample, other)
                    self.rows[alias, wider] = count

    def _reach(self, mask: int) -> int:
        reach = 0
        for alias in range(self._query.size):
            if mask >> alias & 1:
                reach |= self._neighbours[alias]
        return reach

    def _widened(self, sample: _Sample, other: int) -> tuple[_Sample, float]:
        """The sample joined with one alias more, and the count of rows that it stands for."""
        first, *rest = [
            e for e in self._query.edges if other in (e.left, e.right) and _other(e, other) in sample.rows
        ]
        inside, order = self._index(first, other)
        keys = self._column(_other(first, other), first)[sample.rows[_other(first, other)]]
        low = np.searchsorted(inside, keys * self._span)
        found = np.searchsorted(inside, keys * self._span + sample.came) - low
        ends = np.cumsum(found)
        total = int(ends[-1]) if len(ends) else 0
        weight = sample.weight
        picks = np.arange(total)
        if total > _SAMPLE:
            picks = np.sort(self._random.integers(0, total, _SAMPLE))
            weight *= total / _SAMPLE
        at = np.searchsorted(ends, picks, side="right")
        there = order[low[at] + picks - (ends[at] - found[at])]
        keep = np.ones(len(at), np.bool_)
        for edge in rest:
            mine = self._column(_other(edge, other), edge)[sample.rows[_other(edge, other)][at]]
            keep &= mine == self._column(other, edge)[there]
        at, there = at[keep], there[keep]
        rows = {alias: of[at] for alias, of in sample.rows.items()} | {other: there}
        return _Sample(rows, sample.came[at], weight), weight * len(at)

    def _thinned(self, rows: dict[int, Ints], came: Ints, weight: float) -> _Sample:
        count = len(came)
        if count <= _SAMPLE:
            return _Sample(rows, came, weight)
        some = np.sort(self._random.choice(count, _SAMPLE, replace=False))
        return _Sample({a: of[some] for a, of in rows.items()}, came[some], weight * count / _SAMPLE)

    def _index(self, edge: Edge, alias: int) -> tuple[Ints, Ints]:
        """The alias's rows by key and, within a key, as they came."""
        found = self._indexes.get((edge.number, alias))
        if found is None:
            rows = np.flatnonzero(self._kept[alias])
            both = self._column(alias, edge)[rows] * self._span + self._came[alias][rows]
            order = np.argsort(both, kind="stable")
            found = self._indexes[edge.number, alias] = both[order], rows[order]
        return found

    def _column(self, alias: int, edge: Edge) -> Ints:
        return np.asarray(self._query.tables[alias].column(f"j{edge.number}").chunk(0))

    @property
    def _span(self) -> int:
        return sum(self._batches) + 1


def _bits(masks: Ints) -> Ints:
    """How many are set in each."""
    counts: Ints = np.zeros_like(masks)
    for bit in range(int(masks.max(initial=0)).bit_length()):
        counts += masks >> bit & 1
    return counts


def _other(edge: Edge, alias: int) -> int:
    return edge.right if alias == edge.left else edge.left


def _arrivals(query: Drawn) -> tuple[list[Ints], list[int]]:
    """Of every table, in which round each of its rows comes; and how many batches it has."""
    came: list[list[Ints]] = [[] for _ in query.tables]
    for number, ((name, batch),) in enumerate(query.rounds):
        came[int(name[1:])].append(np.full(batch.num_rows, number))
    return [np.concatenate(of) for of in came], [len(of) for of in came]


def _kept(query: Drawn, alias: int) -> NDArray[np.bool_]:
    """Which rows pass the selection."""
    cut = query.cuts[alias]
    values = np.asarray(query.tables[alias].column("v").chunk(0))
    return np.ones(len(values), np.bool_) if cut is None else values < cut
