"""One block's partial answers, as stored rows: what is found beside the eddy, what completes it, what is withdrawn.

It looks at the eddy's views and coverage only while the eddy is at rest. No clock and no SQL is known here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from mediator.clock import Clock
from mediator.eddy.constraints import Graph
from mediator.eddy.eddy import Eddy
from mediator.eddy.feeding import constants
from mediator.flow.batch import Batch, coalesced, heaped
from mediator.flow.events import Command
from mediator.partials.beside import Beside
from mediator.partials.fate import Fate
from mediator.partials.parts import beyond_reach, parts
from mediator.partials.register import Register
from mediator.state.coverage import Known
from mediator.state.hands import Hands

_MOST = 1 << 14  # rows of a batch of partial answers


class BlockPartials:
    """`may_ask` allows for lookups of their own. Before the eddy has started."""

    def __init__(
        self,
        eddy: Eddy,
        numbers: Iterator[int],
        clock: Clock,
        hands: Hands,
        *,
        max_age: float = float("inf"),
        most: int = 10_000,
        may_ask: bool = True,
    ) -> None:
        eddy.unbuilt.build_all()
        self.eddy = eddy
        self.graph = Graph.of(eddy.run.block)
        self.register = Register(self.graph.size, most)
        self.fate = Fate(eddy, self.graph)
        self.beside = Beside(eddy, self.graph, numbers, clock, hands, max_age)
        self.missing = 0  # aliases that are done without now
        self.parts: tuple[int, ...] = ()
        self._may_ask = may_ask

    def do_without(self, aliases: int) -> list[Command]:
        """These are out of reach from now on, with all that cannot be had without them, and no others."""
        asking = self._may_ask or self.eddy.finished  # at the end all has been asked that ever will be
        missing = beyond_reach(aliases, self.eddy.asking.chosen, asking) if aliases else 0
        if missing == self.missing:
            return []
        self.missing = missing
        self.parts = tuple(p for p in parts(self.graph, missing) if self._of_sources(p))
        return self.beside.look(self.parts, self._may_ask and not self.eddy.finished)

    def failed(self, lookups: bool = False) -> int:
        """Aliases that will not be had, since what brings all their rows failed; or, at the end, any lookup of it."""
        found, asking = 0, self.eddy.asking
        names = {relation for relation, *_ in asking.missing()} if lookups else set()
        for alias in self.eddy.run.block.aliases:
            provider = asking.chosen[alias.number]
            known = Known.NOTHING
            if not provider.depends:
                known = self.eddy.run.view(alias.number).coverage.known(
                    provider.bind_set, constants(provider)
                )
            if known == Known.FAILED or alias.relation.name in names:
                found |= 1 << alias.number
        return found

    @property
    def idle(self) -> bool:
        """Whether a turn would do nothing. With no room for more there is nothing to be looked for."""
        return self.beside.idle or not self.register.room

    def turn(self, hops: int = 1) -> tuple[list[Batch], list[Command]]:
        """Look on, when the eddy is at rest. What was found and may be opened, heaped, and what is to be asked."""
        found, commands = self.beside.turn(hops) if self.register.room else ([], [])
        fresh = [b for batch in found if len(b := self._openable(batch))]
        by_part: dict[int, list[Batch]] = {}
        for batch in fresh:
            by_part.setdefault(batch.signature.spanned, []).append(batch)
        return [_one(heap) for some in by_part.values() for heap in heaped(some, _MOST)], commands

    def dead(self) -> tuple[int, ...]:
        """Those open that no answer can complete any more, as far as the eddy knows, which is at rest."""
        found: list[int] = []
        for ids, batch in self.register.opened():
            found += [ids[n] for n in np.flatnonzero(~self.fate.alive(batch)).tolist()]
        return tuple(found)

    def stop(self) -> list[Command]:
        """Nothing more is looked for."""
        self.missing, self.parts = 0, ()
        return self.beside.look((), False)

    def _openable(self, batch: Batch) -> Batch:
        for test in (self.register.unknown, self.fate.passing, self.fate.alive):
            batch = batch.take(np.flatnonzero(test(batch)))
        return batch.take(np.flatnonzero(~self.fate.extended(batch)))

    def _of_sources(self, part: int) -> bool:
        """Whether there is more to it than lists of constants."""
        aliases = self.eddy.run.block.aliases
        return any(part >> a.number & 1 and a.relation.literal is None for a in aliases)


def _one(heap: Sequence[Batch]) -> Batch:
    """Batches that have rows of the same aliases as one."""
    (whole,) = coalesced(heap, sum(map(len, heap)))
    return whole
