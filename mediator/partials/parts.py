"""What is left of a block when some of its aliases are out of reach."""

from __future__ import annotations

from collections.abc import Sequence

from mediator.binding.model import Provider
from mediator.eddy.constraints import Graph
from mediator.flow.batch import Batch


def bits(mask: int) -> list[int]:
    return [a for a in range(mask.bit_length()) if mask >> a & 1]


def beyond_reach(missing: int, chosen: Sequence[Provider], may_ask: bool) -> int:
    """These aliases, and all that cannot be had without them: whose provider is fed by one of them. If nothing may be
    asked: by anybody."""
    while True:
        more = missing
        for provider in chosen:
            if provider.depends and (not may_ask or provider.depends & missing):
                more |= 1 << provider.alias
        if more == missing:
            return missing
        missing = more


def parts(graph: Graph, missing: int) -> tuple[int, ...]:
    """The largest sets of the other aliases that predicates hold together. Across the gaps between them every row
    would go with every other: that says nothing that the parts do not say."""
    left, found = graph.whole & ~missing, []
    while left:
        part = left & -left
        while True:
            joined = [a for a in bits(left & ~part) if graph.joined(part, a)]
            if not joined:
                break
            for alias in joined:
                part |= 1 << alias
        found.append(part)
        left &= ~part
    return tuple(found) if missing else ()


def within(batch: Batch, mask: int) -> Batch:
    """The batch with no rows but those of these aliases."""
    rows = tuple(r if mask >> a & 1 else None for a, r in enumerate(batch.rows))
    return Batch(batch.signature._replace(spanned=mask, passed=0, completing=-1), rows, batch.seen)
