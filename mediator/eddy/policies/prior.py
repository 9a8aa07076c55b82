"""What a policy believes before it has seen anything: of pairs of rows, how many a predicate is true of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations

from mediator.binding.model import Verdict
from mediator.catalog.bindfields import parted
from mediator.catalog.measured import Measurements
from mediator.catalog.profile import Profile
from mediator.eddy.pace import Looked
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


def supposed(
    block: Block, verdict: Verdict, measured: Measurements, profile: Profile
) -> Iterator[tuple[str, Looked]]:
    """What a lookup of each relation that was harvested is like: how many rows it finds, and how long the first one
    takes, after which the query sees for itself."""
    for provider in verdict.chosen:
        relation = block.aliases[provider.alias].relation
        harvested = profile.relations.get(relation.name)
        if not provider.depends or harvested is None:
            continue
        fields = tuple(sorted({parted(name)[0] for name in provider.bind_set}))
        found, values = harvested.found(*fields), harvested.distinct(*fields)
        if found is None or not values:
            continue
        seconds = measured.of(relation.name, provider.method.name).latency.quantile(0.5)
        yield (
            relation.name,
            Looked(seconds, found * harvested.rows / values),
        )
