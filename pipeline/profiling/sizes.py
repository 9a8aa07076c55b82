"""How many rows of each alias a block will bring, by a profile: for who shares them out among cells."""

from __future__ import annotations

from mediator.binding.selecting import selected, selections
from mediator.catalog.profile import Profile
from mediator.query.model import Block

_UNKNOWN = 1_000.0


def sizes_of(block: Block, profile: Profile) -> list[float]:
    """By alias, those that pass its selections; the same number for all of which nothing is known."""
    return [_size(block, number, profile) for number in range(len(block.aliases))]


def _size(block: Block, alias: int, profile: Profile) -> float:
    relation = block.aliases[alias].relation
    if relation.literal is not None:
        return float(relation.literal.num_rows)
    known = profile.relations.get(relation.name)
    if known is None:
        return float(relation.rows) if relation.rows is not None else _UNKNOWN
    if not selections(block, alias) or known.sample is None or not known.sample.num_rows:
        return known.rows
    passed = selected(block, alias, known.sample)
    if passed is None:
        return known.rows
    share = float(passed.num_rows / known.sample.num_rows)
    return max(1.0, known.rows * share)
