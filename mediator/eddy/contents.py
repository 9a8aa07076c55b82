"""Routing on content: where rows of a batch differ in what becomes of them, and a column tells which is which, they go
apart, each part its own way.

A policy says when it is worth a look (`Policy.survey`), and what a row costs at each destination. Some rows are then
tried everywhere at once; of the columns they have, the one is looked for that parts them so that each part's best
order saves most against one order for all. It is found with half of the rows and has to prove itself with the other
half. From then on batches of that signature are divided; their parts have signatures of their own, of which the policy
learns as of any other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mediator.eddy.destinations import Destination, Probe, Select
from mediator.eddy.dividing import Division, Figures, best_division
from mediator.eddy.policy import Policy, Visit
from mediator.eddy.probing import Probing
from mediator.eddy.routing import Router
from mediator.eddy.run import Run
from mediator.eddy.selecting import Selecting
from mediator.eddy.unbuilt import Unbuilt
from mediator.flow.batch import Batch, Signature
from mediator.query.model import Column

_COLUMNS = 12  # of the batch's, that are looked at
_FIRST = 2_000  # rows of a signature before the policy is asked whether they should go apart
_OFTEN = 1.2  # times as many rows until the policy is asked again whether they should go apart
_HOP = 1.5e-4  # seconds that one part more costs a batch, whatever its size


@dataclass(frozen=True, slots=True)
class Survey:
    """Rows tried everywhere: what came of each, in what time, and how many rows they could meet."""

    destinations: tuple[Destination, ...]
    counts: Figures  # by row and destination: how many rows come of it
    seconds: tuple[float, ...]
    visible: tuple[int, ...]


class Contents:
    def __init__(
        self,
        run: Run,
        probing: Probing,
        policy: Policy,
        unbuilt: Unbuilt,
        selecting: Selecting,
        router: Router,
    ) -> None:
        self._run = run
        self._probing = probing
        self._policy = policy
        self._unbuilt = unbuilt
        self._selecting = selecting
        self._router = router
        self._divisions: dict[Signature, Division] = {}
        self._came: dict[Signature, int] = {}  # rows
        self._ask_at: dict[Signature, int] = {}  # when so many have, the policy is asked again

    def parts(self, batch: Batch) -> list[Batch]:
        """The batch, or its parts where they go apart."""
        signature = batch.signature
        if batch.cut >= 0 or signature.part or signature.completing >= 0:
            return [batch]
        if self._due(signature, len(batch)):
            wanted = self._policy.survey(signature, self._router.array(signature), len(batch))
            if wanted is not None:
                self._divide(batch, *wanted)
        if not self._divisions:
            return [batch]
        division = self._divisions.get(signature)
        return [batch] if division is None else self._apart(batch, division)

    def _due(self, signature: Signature, rows: int) -> bool:
        """Whether so many have come by since the policy was last asked that it may think otherwise."""
        came = self._came.get(signature, 0) + rows
        self._came[signature] = came
        if came < self._ask_at.get(signature, _FIRST):
            return False
        self._ask_at[signature] = int(_OFTEN * came)
        return True

    def divided(self) -> Mapping[Signature, Division]:
        """What goes apart, and by what; for people."""
        return dict(self._divisions)

    def _apart(self, batch: Batch, division: Division) -> list[Batch]:
        labels = division.label(self._run.gather(batch, division.column))
        parts = []
        for part in range(1, division.parts + 1):
            at = np.flatnonzero(labels == part)
            if len(at):
                some = batch if len(at) == len(batch) else batch.take(at)
                parts.append(some.signed(batch.signature._replace(part=part)))
        return parts

    def _divide(self, batch: Batch, rows: int, costs: Mapping[Destination, float]) -> None:
        """Look again which column parts the rows best, if any does."""
        at = np.unique(np.linspace(0, len(batch) - 1, min(rows, len(batch))).astype(np.int64))
        sample = batch.take(at)
        survey = self._survey(sample, tuple(costs))
        self._divisions.pop(batch.signature, None)
        if survey is None:
            return
        price = np.array([costs[d] for d in survey.destinations])
        columns = {column: self._run.gather(sample, column) for column in self._columns(sample)}
        found = best_division(columns, survey.counts, price)
        if found is None:
            return
        division, saved = found
        if saved * len(batch) > _HOP * (division.parts - 1):
            self._divisions[batch.signature] = division
            self._tell(sample, survey, division)

    def _survey(self, sample: Batch, destinations: Sequence[Destination]) -> Survey | None:
        """What becomes of each row at each of the destinations; none where that is too much to be found at once."""
        counts, seconds, visible = [], [], []
        for where in destinations:
            if isinstance(where, Probe):
                met, took = self._probing.one(self._unbuilt.arriving(sample, where.alias), where)
                if met.rest is not None:
                    return None
                counts.append(np.bincount(met.at, minlength=len(sample)).astype(np.float64))
                visible.append(self._unbuilt.meets(sample)[where.alias])
            else:
                assert isinstance(where, Select)
                if self._selecting.most(where.predicate) < len(sample):
                    return None
                counts.append(self._selecting.test(sample, where.predicate).astype(np.float64))
                took = self._selecting.took
                visible.append(0)
            seconds.append(took)
        return Survey(tuple(destinations), np.stack(counts, axis=1), tuple(seconds), tuple(visible))

    def _columns(self, sample: Batch) -> list[Column]:
        """Those of all aliases that the rows span, the ones that the query reads first."""
        found: dict[Column, None] = {}
        spanned = [a for a in self._run.block.aliases if sample.rows[a.number] is not None]
        for alias in spanned:
            for group in self._run.block.classes:
                found |= dict.fromkeys(c for c in group.columns if c.alias == alias.number)
        for alias in spanned:
            found |= dict.fromkeys(Column(alias.number, f.name) for f in alias.relation.fields)
        return list(found)[:_COLUMNS]

    def _tell(self, sample: Batch, survey: Survey, division: Division) -> None:
        """What is known of the parts already, for the policy."""
        labels = division.label(self._run.gather(sample, division.column))
        for part in range(1, division.parts + 1):
            mine = labels == part
            rows = int(np.count_nonzero(mine))
            for n, where in enumerate(survey.destinations if rows else ()):
                out = int(survey.counts[mine, n].sum())
                seconds = survey.seconds[n] * rows / len(sample)
                signature = sample.signature._replace(part=part)
                self._router.learn(
                    Visit(signature, where, rows, out, seconds, survey.visible[n]), wanted=True
                )
