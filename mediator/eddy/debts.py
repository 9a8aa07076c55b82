"""Before the end: is any row still owed a lookup?

A row can stop on the way without having been looked up where it should have been: it was parked at a SteM whose
provider it could not feed while the row that could had stopped elsewhere, or the provider it relied on failed. Such
rows are still stored. So when nothing floats and nothing is under way, and something of the kind happened, the inputs
of each provider are gone through once more, from the SteMs: combinations that no coverage entry answers, and that what
has completely arrived does not rule out, are looked up now.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from mediator.eddy.asking import Asking
from mediator.eddy.constraints import Graph
from mediator.eddy.joining import Join, meet
from mediator.eddy.run import Run
from mediator.flow.batch import Batch

_ROOM = 1 << 16


def settle(run: Run, asking: Asking, graph: Graph) -> bool:
    """Look up what is owed to the first alias, in the order of dependence, that is owed anything; whether one is."""
    for alias in asking.order:
        provider = asking.chosen[alias]
        if not provider.depends or run.view(alias).coverage.whole:
            continue
        before = len(asking.commands) + len(asking.delivered)
        for batch in inputs(run, graph, provider.depends):
            doubtful = asking.uncovered(batch, alias)
            if doubtful is not None:
                owed = batch.take(np.flatnonzero(doubtful))
                asking.look_up(_possible(run, graph, owed, alias), provider)
        if len(asking.commands) + len(asking.delivered) > before:
            return True
    return False


def inputs(run: Run, graph: Graph, depends: int) -> Iterator[Batch]:
    """Every combination of rows that these aliases have, joined where a predicate joins them."""
    aliases = [a for a in range(graph.size) if depends >> a & 1]
    everything = run.everything(aliases[0])
    stack = [everything] if len(everything) else []
    while stack:
        batch = stack.pop()
        missing = [a for a in aliases if not batch.signature.spanned >> a & 1]
        if not missing:
            yield batch
            continue
        spanned = batch.signature.spanned
        alias = next((a for a in missing if graph.joined(spanned, a)), missing[0])
        met = meet(run, Join.of(run.block, spanned, alias), batch, _ROOM)
        stack += [part for part in (met.rest, met.wider) if part is not None]


def _possible(run: Run, graph: Graph, batch: Batch, toward: int) -> Batch:
    """The rows of the batch that have a match in every joined alias that has arrived completely."""
    spanned = batch.signature.spanned
    for alias in range(graph.size):
        known = alias != toward and not spanned >> alias & 1 and run.view(alias).coverage.whole
        if known and graph.joined(spanned, alias) and len(batch):
            batch = batch.take(_matched(run, Join.of(run.block, spanned, alias), batch))
    return batch


def _matched(run: Run, join: Join, batch: Batch) -> NDArray[np.int64]:
    matched = np.zeros(len(batch), np.bool_)
    rest: Batch | None = batch
    done = 0
    while rest is not None:
        met = meet(run, join, rest, _ROOM)
        matched[done + met.at] = True
        done += met.done
        rest = met.rest
    return np.flatnonzero(matched)
