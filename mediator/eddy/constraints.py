"""Where may a batch go? The rules that make any route a right one; which route is wise is the policy's to say.

BuildFirst         a batch floats only after its newest part was built, as `Run.deliver` sees to; or it is one that
                   nobody needs to find, and comes again (`unbuilt.py`)
ProbeCompletion    a batch that bounced off alias S goes to no SteM again, only to access modules of S
Holding            it may also be held: it is forgotten, with a debt, and before the end all that is owed is asked
Blind last         a batch that cannot feed S's provider goes to S only when nothing else is legal: parked there early
                   it would never meet the row that carries the binding
Crossing           where a provider's inputs come from aliases that nothing joins, their cross product is a legal step,
                   for a batch that has one of the inputs and nowhere better to go
Costly predicates  may be tested as soon as their columns are there, and must be before the batch leaves
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mediator.binding.model import Provider
from mediator.eddy.destinations import Destination, Hold, Leave, LookUp, Park, Probe, Select
from mediator.flow.batch import Signature
from mediator.query.model import Block


@dataclass(frozen=True, slots=True)
class Graph:
    """What of a block the rules look at: which aliases a predicate ties to which, and which predicates are costly."""

    size: int
    ties: tuple[int, ...]  # bit masks: the aliases of an equality class, or of a predicate
    pairwise: tuple[bool, ...]  # whether any two aliases of the tie are joined by it, as in an equality class
    costly: tuple[tuple[int, int], ...]  # (predicate, aliases)

    @classmethod
    def of(cls, block: Block) -> Graph:
        ties = [(_mask(c.alias for c in k.columns), True) for k in block.classes]
        ties += [(p.aliases, False) for p in block.predicates]
        ties = [(mask, pairwise) for mask, pairwise in ties if mask.bit_count() > 1]
        costly = tuple((p.number, p.aliases) for p in block.predicates if p.costly)
        return cls(len(block.aliases), tuple(m for m, _ in ties), tuple(p for _, p in ties), costly)

    @property
    def whole(self) -> int:
        return (1 << self.size) - 1

    def joined(self, spanned: int, alias: int) -> bool:
        """Whether some predicate can be tested on a batch that spans these once it has the alias too."""
        bit = 1 << alias
        for mask, pairwise in zip(self.ties, self.pairwise, strict=True):
            if mask & bit and mask & spanned and (pairwise or not mask & ~(spanned | bit)):
                return True
        return False


def legal(
    signature: Signature, graph: Graph, providers: Sequence[Sequence[Provider]], chosen: Sequence[Provider]
) -> tuple[Destination, ...]:
    """Every destination that keeps the answer right. There is always one."""
    if signature.completing >= 0:
        return _completions(signature, providers, chosen)
    tests: list[Destination] = [
        Select(number)
        for number, aliases in graph.costly
        if not signature.passed >> number & 1 and not aliases & ~signature.spanned
    ]
    missing = [a for a in range(graph.size) if not signature.spanned >> a & 1]
    if not missing:
        return tuple(tests) or (Leave(),)
    sighted, others = _probes(signature.spanned, missing, graph, chosen)
    return tuple(tests + sighted) or tuple(others)


def feeds(spanned: int, provider: Provider) -> bool:
    """Whether a batch that spans these aliases knows all the provider's inputs."""
    return not provider.depends & ~spanned


def _completions(
    signature: Signature, providers: Sequence[Sequence[Provider]], chosen: Sequence[Provider]
) -> tuple[Destination, ...]:
    alias = signature.completing
    lookups: list[Destination] = [
        LookUp(alias, number)
        for number, provider in enumerate(providers[alias])
        if provider.depends and feeds(signature.spanned, provider)
    ]
    owed = chosen[alias].depends and feeds(signature.spanned, chosen[alias])
    held = [Hold(alias)] if lookups else []
    return (*lookups, *held) if owed else (Park(alias), *lookups, *held)


def _probes(
    spanned: int, missing: Sequence[int], graph: Graph, chosen: Sequence[Provider]
) -> tuple[list[Destination], list[Destination]]:
    """The SteMs that this batch may go to at any time, and those that are for when nothing else is left."""
    joined = [a for a in missing if graph.joined(spanned, a)]
    sighted = [a for a in joined if feeds(spanned, chosen[a])]
    apart = [a for a in missing if a not in joined]
    last = (
        _crossings(spanned, joined, chosen)
        or joined
        or [a for a in apart if feeds(spanned, chosen[a])]
        or apart
    )
    return [Probe(a) for a in sighted], [Probe(a) for a in last]


def _crossings(spanned: int, blind: Sequence[int], chosen: Sequence[Provider]) -> list[int]:
    """Aliases that hold the missing inputs of a provider of which this batch has some."""
    found: list[int] = []
    for alias in blind:
        if chosen[alias].depends & spanned:
            needed = _needed(alias, chosen) & ~spanned & ~(1 << alias)
            found += [a for a in _bits(needed) if feeds(spanned, chosen[a]) and a not in found]
    return found


def _needed(alias: int, chosen: Sequence[Provider]) -> int:
    """Everything that the alias's rows depend on, directly or not."""
    needed, seen = chosen[alias].depends, 0
    while needed != seen:
        seen = needed
        for other in _bits(seen):
            needed |= chosen[other].depends
    return needed


def _bits(mask: int) -> list[int]:
    return [a for a in range(mask.bit_length()) if mask >> a & 1]


def _mask(aliases: Iterable[int]) -> int:
    mask = 0
    for alias in aliases:
        mask |= 1 << alias
    return mask
