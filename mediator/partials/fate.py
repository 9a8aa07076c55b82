"""What becomes of a partial answer: is there an answer that extends it, can there still be one?

Both are asked of what the query itself has been given, when its eddy is at rest: what it has covered is then there.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from mediator.eddy.asking import Asking
from mediator.eddy.constraints import Graph, feeds
from mediator.eddy.eddy import Eddy
from mediator.eddy.feeding import fed
from mediator.eddy.joining import Join, meet, prepare
from mediator.eddy.run import Run
from mediator.errors import MediatorError
from mediator.flow.batch import Batch, as_ids
from mediator.partials.parts import bits
from mediator.query.model import Predicate
from mediator.state.coverage import Known
from mediator.state.index import Visible

Mask = NDArray[np.bool_]
_ROOM = 1 << 16


class Fate:
    """Looks at one query's eddy, and changes nothing there."""

    def __init__(self, eddy: Eddy, graph: Graph) -> None:
        self._run: Run = eddy.run
        self._asking: Asking = eddy.asking
        self._graph = graph
        self.failure: MediatorError | None = None  # of a condition, on rows that no answer may have
        self._joins: dict[tuple[int, int], Join] = {}

    def extended(self, batch: Batch) -> Mask:
        """Which rows are part of an answer that the query has found, or is about to find."""
        batch = self._now(batch)
        rows = np.flatnonzero(self._seen(batch))
        found = np.zeros(len(batch), np.bool_)
        if len(rows):
            found[rows] = self._extended(batch.take(rows))
        return found

    def alive(self, batch: Batch) -> Mask:
        """Which rows may yet be part of an answer: no alias has been heard to its end in vain."""
        return self._alive(self._now(batch))

    def passing(self, batch: Batch) -> Mask:
        """Which rows pass the costly predicates that can be tested on them; the others were tested on the way. Where
        one fails, none of these rows."""
        keep = np.ones(len(batch), np.bool_)
        for predicate in self._run.block.predicates:
            if predicate.costly and not predicate.aliases & ~batch.signature.spanned:
                left = np.flatnonzero(keep)
                some = batch.take(left)
                if len(left):
                    keep[left] = self._tested(predicate, some)
        return keep

    def _tested(self, predicate: Predicate, batch: Batch) -> Mask:
        try:
            return predicate.test({c: self._run.gather(batch, c) for c in predicate.reads})
        except MediatorError as error:
            # The query may never test these rows, and would not fail then.
            self.failure = error
            return np.zeros(len(batch), np.bool_)

    def _extended(self, batch: Batch) -> Mask:
        missing = self._missing(batch)
        if not missing:
            return self.passing(batch)
        if not all(self._run.aliases[a].selected for a in missing):
            return np.zeros(len(batch), np.bool_)
        joined = [a for a in missing if self._graph.joined(batch.signature.spanned, a)]
        return self._any(batch, (joined or missing)[0], self._extended)

    def _alive(self, batch: Batch) -> Mask:
        alive = np.ones(len(batch), np.bool_)
        undecided = np.ones(len(batch), np.bool_)
        for alias in self._missing(batch):
            if not self._graph.joined(batch.signature.spanned, alias):
                if self._asking.promised(alias) and not self._run.aliases[alias].selected:
                    return np.zeros(len(batch), np.bool_)
                continue
            rows = np.flatnonzero(undecided & self._settled(batch, alias))
            if len(rows):
                alive[rows] = self._any(batch.take(rows), alias, self._alive)
                undecided[rows] = False
        return alive

    def _any(self, batch: Batch, alias: int, test: Callable[[Batch], Mask]) -> Mask:
        """Which rows have a match in the alias that passes the test."""
        join = self._join(batch.signature.spanned, alias)
        prepare(self._run, join, batch)
        found = np.zeros(len(batch), np.bool_)
        rest: Batch | None = batch
        done = 0
        while rest is not None:
            met = meet(self._run, join, rest, _ROOM)
            if met.wider is not None:
                found[done + met.at[test(met.wider)]] = True
            done += met.done
            rest = met.rest
        return found

    def _settled(self, batch: Batch, alias: int) -> Mask:
        """Of which rows all matches in the alias have been given."""
        coverage = self._run.view(alias).coverage
        if self._asking.promised(alias):
            return np.ones(len(batch), np.bool_)
        settled = np.zeros(len(batch), np.bool_)
        for provider in self._asking.providers[alias]:
            if provider.depends and feeds(batch.signature.spanned, provider):
                keys = fed(self._run, batch, provider)
                settled |= coverage.states(provider.bind_set, keys) == Known.COMPLETE
                settled |= ~keys.whole()  # what is fed from a NULL joins with nothing
        return settled

    def _seen(self, batch: Batch) -> Mask:
        """Whether the query itself has been given all rows that they are made of."""
        seen = np.ones(len(batch), np.bool_)
        for alias in bits(batch.signature.spanned):
            rows = batch.rows[alias]
            assert rows is not None
            view = self._run.aliases[alias]
            seen &= _shown(view.visible(view.view.count), as_ids(rows))
        return seen

    def _now(self, batch: Batch) -> Batch:
        """The batch as if it came just now: it meets all that is there."""
        seen = tuple(a.view.count for a in self._run.aliases)
        return Batch(batch.signature, batch.rows, seen)

    def _missing(self, batch: Batch) -> list[int]:
        return bits(self._graph.whole & ~batch.signature.spanned)

    def _join(self, spanned: int, alias: int) -> Join:
        if (spanned, alias) not in self._joins:
            self._joins[spanned, alias] = Join.of(self._run.block, spanned, alias)
        return self._joins[spanned, alias]


def _shown(visible: Visible, ids: NDArray[np.int32]) -> Mask:
    if visible.position is None:
        return ids < visible.limit
    shown: Mask = visible.position[ids] < visible.limit
    return shown
