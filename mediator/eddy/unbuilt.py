"""Rows that are not built: they probe again and again, and nobody finds them.

A row is stored and indexed so that rows that come later find it. A huge relation that nothing else depends on can do
without: its batches keep their rows to themselves and go from SteM to SteM like any others, but where they found what
there was they wait, and come again for what has been built since, until everything has arrived. So each combination is
found once, by the row that was not built; `since` is the paper's LastMatchTimeStamp, as a position.

It is possible where no provider in the block needs anybody's row: then no row is ever looked up, none is owed a lookup,
and all that a waiting batch waits for arrives by itself. One relation of a block at most may be unbuilt, since its rows
and those of another such one would never meet.

Rows that come before those of any other relation meet nobody, built or not. They are put off until there is something
to compare them with: else the beginning of the huge relation, which was first to come, would be what all others probe.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from mediator.binding.model import Provider
from mediator.eddy.joining import Met
from mediator.eddy.policy import Coming, Policy
from mediator.eddy.run import Run
from mediator.flow.batch import Batch, coalesced, heaped
from mediator.flow.events import Arrived, Landing
from mediator.query.model import ROW_ID, Block

_SMALL = 1 << 14  # rows: to copy so many takes less than to send them round by themselves


class Unbuilt:
    """Which landings are not built, and which of their batches wait for which alias."""

    def __init__(self, run: Run, policy: Policy, providers: Sequence[Sequence[Provider]]) -> None:
        self._run = run
        self._policy = policy
        self._eligible = _eligible(run.block, providers)
        self._came: dict[str, int] = {}  # rows that have landed, whatever became of them
        self._put_off: tuple[str, list[Arrived]] = "", []
        self._landings: list[tuple[int, Landing]] = []
        self._waiting: dict[int, list[Batch]] = {}
        self.rows: dict[str, int] = {}  # that came and were not built
        self.passing: set[int] = set()  # aliases of which such rows passed the selections

    def build_all(self) -> None:
        """Somebody else looks for the rows of every relation. Before anything has come."""
        self._eligible = {}

    def came(self, relation: str, rows: int) -> None:
        """So many rows have landed."""
        self._came[relation] = self._came.get(relation, 0) + rows

    def puts_off(self, relation: str, event: Arrived) -> bool:
        """Whether nothing can be said about these rows yet. They are then kept until `decided`."""
        alias = self._eligible.get(relation)
        if alias is None or self._shared(alias) or self._held(but=alias):
            return False
        self._put_off[1].append(event)
        self._put_off = relation, self._put_off[1]
        return True

    def decided(self) -> list[Arrived]:
        """What was put off, to be dealt with now."""
        events = self._put_off[1]
        self._put_off = "", []
        return events

    @property
    def waiting(self) -> int:
        """Rows that were put off."""
        return sum(e.landing.rows.num_rows for e in self._put_off[1])

    def takes(self, relation: str, landing: Landing) -> bool:
        """Whether these rows, which have just come, are not to be built."""
        alias = self._eligible.get(relation)
        if alias is None or landing.ids is not None or not landing.rows.num_rows:
            return False
        held = tuple(self._count(a) for a in range(len(self._run.aliases)))
        if self._policy.builds(Coming(alias, landing.rows.num_rows, held[alias], held, self._shared(alias))):
            return False
        self._eligible = {relation: alias}
        self._landings.append((alias, landing))
        self.rows[relation] = self.rows.get(relation, 0) + landing.rows.num_rows
        return True

    def _shared(self, alias: int) -> bool:
        return bool(self._run.block.aliases[alias].relation.methods[0].mirrors)

    def _count(self, alias: int) -> int:
        """Rows of the alias that have come: from its site, or out of the SteM."""
        name = self._run.block.aliases[alias].relation.name
        return max(self._run.view(alias).count, self._came.get(name, 0))

    def _held(self, but: int) -> bool:
        """Whether any row of another alias has come."""
        return any(self._count(a) for a in range(len(self._run.aliases)) if a != but)

    @property
    def landed(self) -> int:
        """Rows that no batch was made of yet."""
        return sum(landing.rows.num_rows for _, landing in self._landings)

    def batches(self) -> Iterator[Batch]:
        """Those of the landings taken since this was last asked."""
        for alias, landing in self._landings:
            for batch in self._run.pass_by(alias, landing.rows):
                self.passing.add(alias)
                yield batch
        self._landings.clear()

    def arriving(self, batch: Batch, alias: int) -> Batch:
        """The batch as it comes to an alias for the first time: it meets whatever is there."""
        return self._renewed(batch, alias) if batch.own is not None and batch.cut < 0 else batch

    def meets(self, batch: Batch) -> tuple[int, ...]:
        """How many rows of each alias the batch may meet, should it go there now."""
        return batch.seen if batch.own is None else tuple([a.view.count for a in self._run.aliases])

    def wait(self, batch: Batch, alias: int, met: Met, single: bool) -> None:
        """The batch has met what was there of an alias. If a row can match only one, those that have go no further."""
        if single:
            missed = np.ones(len(batch), np.bool_)
            missed[met.at[met.at < len(batch)]] = False
            batch = batch.take(np.flatnonzero(missed))
        if len(batch):
            since = batch.seen[alias]
            self._waiting.setdefault(alias, []).append(batch.with_(cut=alias, taken=0, since=since))

    def due(self, complete: Callable[[int], bool]) -> list[Batch]:
        """The waiting batches for which more has been built. Those that wait for an alias that is `complete` are let
        go."""
        due: list[Batch] = []
        for alias, batches in self._waiting.items():
            count = self._run.view(alias).count
            due += self.together([self._again(b, alias) for b in batches if b.since < count])
            over = bool(batches) and complete(alias)
            self._waiting[alias] = [] if over else [b for b in batches if b.since == count]
        return due

    def together(self, batches: Sequence[Batch]) -> list[Batch]:
        """Unbuilt batches that are alike put together: every time they wait there are more and smaller ones. Of
        different landings only small ones are, as something of their rows has to be copied."""
        whole = [batch for batch in batches if batch.own is None]
        most = self._run.largest_batch
        for alike in _grouped((b for b in batches if b.own is not None), _likeness):
            small: list[Batch] = []
            for of_one in _grouped(alike, lambda batch: id(batch.own)):
                for batch in coalesced(of_one, most):
                    (small if len(batch) < _SMALL else whole).append(batch)
            whole += [self._run.packed(heap) for heap in heaped(small, most)]
        return whole

    def forget(self) -> None:
        """Nothing more is wanted."""
        if self.waiting:
            self.rows[self._put_off[0]] = self.waiting
        self._put_off = "", []
        self._landings.clear()
        self._waiting.clear()

    def _again(self, batch: Batch, alias: int) -> Batch:
        """The batch on its way back. One that found nothing built is still free to go elsewhere."""
        return self._renewed(batch, alias) if batch.since else batch.with_(cut=-1)

    def _renewed(self, batch: Batch, alias: int) -> Batch:
        seen = list(batch.seen)
        seen[alias] = self._run.view(alias).count
        return batch.with_(seen=tuple(seen))


def _likeness(batch: Batch) -> tuple[object, ...]:
    """What batches that travel together have in common."""
    return batch.signature, batch.cut, batch.since, batch.favour


def _grouped(batches: Iterable[Batch], key: Callable[[Batch], object]) -> Iterable[list[Batch]]:
    """Those with the same key together, in the order in which the first of them came."""
    groups: dict[object, list[Batch]] = {}
    for batch in batches:
        groups.setdefault(key(batch), []).append(batch)
    return groups.values()


def _eligible(block: Block, providers: Sequence[Sequence[Provider]]) -> dict[str, int]:
    """Relations whose rows need not be built, each with its alias: with one scan, read once, and told apart nowhere."""
    if len(block.aliases) == 1 or any(p.depends for of in providers for p in of):
        return {}
    told_apart = {o.column.alias for o in block.outputs if o.column.field == ROW_ID}
    told_apart |= {c.alias for p in block.predicates for c in p.reads if c.field == ROW_ID}
    names = [a.relation.name for a in block.aliases]
    return {
        a.relation.name: a.number
        for a in block.aliases
        if names.count(a.relation.name) == 1
        and a.number not in told_apart
        and [m.kind for m in a.relation.methods] == ["scan"]
        and not a.relation.repeats
        and a.relation.literal is None
    }
