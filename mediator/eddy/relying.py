"""Who brings each alias's rows as things stand: the chosen providers, those that could stand in, and those that have
let somebody down."""

from __future__ import annotations

from collections.abc import Sequence

from mediator.binding.choice import choose
from mediator.binding.model import Provider, Verdict
from mediator.flow.events import Ask
from mediator.query.model import Block


class Relying:
    def __init__(self, block: Block, verdict: Verdict) -> None:
        self._block = block
        self._all = verdict.providers
        self.providers = _relied_on(verdict.providers, verdict.chosen)  # those that have not let anyone down
        self.chosen = verdict.chosen
        self.order = verdict.order
        self.broken: set[tuple[int, str]] = set()  # (alias, method) pairs that let someone down
        self._let_down: set[tuple[str, str]] = set()  # methods of relations that failed for some binding

    def failed(self, ask: Ask) -> None:
        """Its way of asking has failed for some binding."""
        self._let_down.add((ask.relation, ask.method))

    def on(self, ask: Ask) -> list[int]:
        """The aliases that rely on this way of asking."""
        return [a for a in self._aliases(ask.relation) if self.chosen[a].bind_set == ask.bind_set]

    def rely(self, provider: Provider) -> bool:
        """Choose this provider for its alias; whether that can be.

        It cannot where its way of asking has failed for anybody, or where it would come to wait for itself.
        """
        if not self._unfailing(provider):
            return False
        ways = [
            [kept, *(p for p in of if p != kept and self._unfailing(p))]
            for kept, of in zip(self.chosen, self.providers, strict=True)
        ]
        ways[provider.alias] = [provider]
        again = choose(ways)
        if again is None:
            return False
        self.chosen, self.order = again
        return True

    def replace(self, ask: Ask, relying: Sequence[int]) -> bool:
        """Choose again without this way of asking, for the aliases that relied on it; whether there is another."""
        # A scan is not asked again for anybody.
        without = relying if ask.bind_set else self._aliases(ask.relation)
        broken = self.broken | {(a, ask.method) for a in without}
        again = self._chosen_without(broken) if relying else None
        if again is None:
            return False
        self.broken, (self.chosen, self.order) = broken, again
        kept = [[p for p in of if (p.alias, p.method.name) not in broken] for of in self._all]
        self.providers = _relied_on(kept, self.chosen)
        return True

    def _chosen_without(
        self, broken: set[tuple[int, str]]
    ) -> tuple[tuple[Provider, ...], tuple[int, ...]] | None:
        """Nobody comes to rely anew on what has failed already, for somebody who did not rely on it, unless there is
        nothing else."""
        stale = {
            (alias, method)
            for relation, method in self._let_down
            for alias in self._aliases(relation)
            if self.chosen[alias].method.name != method
        }
        return choose(self._all, broken | stale) or choose(self._all, broken)

    def _aliases(self, relation: str) -> list[int]:
        return [a.number for a in self._block.aliases if a.relation.name == relation]

    def _unfailing(self, provider: Provider) -> bool:
        relation = self._block.aliases[provider.alias].relation.name
        return (relation, provider.method.name) not in self._let_down


def _relied_on(
    providers: Sequence[Sequence[Provider]], chosen: Sequence[Provider]
) -> tuple[tuple[Provider, ...], ...]:
    """Per alias those that are as good as the chosen one: where that brings all rows, one that does not is no help."""
    if not chosen:
        return tuple(map(tuple, providers))
    return tuple(
        tuple(p for p in of if p.method.proves == "all" or best.method.proves != "all")
        for of, best in zip(providers, chosen, strict=True)
    )
