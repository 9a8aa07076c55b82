"""What a policy believes before it has seen anything: of pairs of rows, how many a predicate is true of."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

from mediator.catalog.profile import Profile
from mediator.query.model import Block

# By predicates and by the aliases that they tie, as bit masks.
Prior = Mapping[tuple[int, int], float]
NO_PRIOR: Prior = {}


def prior_of(block: Block, profile: Profile) -> Prior:
    """Of each class of equal columns, between any two of its relations that were harvested."""
    found: dict[tuple[int, int], float] = {}
    if not profile.joins:
        return found
    joining = [k for k in block.classes if len({c.alias for c in k.columns}) > 1]
    for number, equal in enumerate(joining):
        for one, other in combinations(equal.columns, 2):
            if one.alias == other.alias:
                continue
            places = [(block.aliases[c.alias].relation.name, c.field) for c in (one, other)]
            share = profile.share(places[0], places[1])
            if share is not None:
                found[1 << number, 1 << one.alias | 1 << other.alias] = share
    return found
