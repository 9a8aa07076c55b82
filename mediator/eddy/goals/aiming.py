"""What a goal needs of a query: its ceilings, and what is known of its relations before anything is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from math import exp

import numpy as np

from mediator.binding.model import Provider
from mediator.catalog.bindfields import EQUAL, parted
from mediator.catalog.ceilings import Ceilings
from mediator.catalog.measured import Measurements
from mediator.catalog.profile import NO_PROFILE, Profile
from mediator.eddy.goals.allowance import Allowance
from mediator.eddy.goals.forecast import Chance
from mediator.eddy.goals.goal import GOALS, Facts, Goal, Toward
from mediator.eddy.goals.thrift import Thrift
from mediator.eddy.policy import Policy
from mediator.errors import MediatorError
from mediator.query.model import Block

_ONCE = 0.5  # scans after which a relation's size counts as measured
_FEW = 1.5  # lookups after which what they bring does
_WEIGHT = (
    4.0  # values: what is said beforehand of how many have a match weighs as much as so many that were tried
)
_HARVESTED = 24.0  # values: so much weighs what harvests showed of the very columns that are joined
_MOST = 0.95  # of all values, that are believed to have a match before any was tried


@dataclass(frozen=True)
class Aim:
    """A goal, and by what it is pursued."""

    goal: Goal
    block: Block
    measured: Measurements
    max_calls: int | None = None
    per_source: Mapping[str, Ceilings] = field(default_factory=dict)
    seed: int = 0
    profile: Profile = NO_PROFILE

    def __post_init__(self) -> None:
        if self.goal not in GOALS:
            raise MediatorError(f"There is no goal {self.goal!r}; there are {', '.join(GOALS)}")

    @property
    def allowance(self) -> Allowance:
        at = {name: said.calls for name, said in self.per_source.items() if said.calls is not None}
        asked_at = {
            a.relation.name: frozenset(m.source for method in a.relation.methods for m in method.mirrors)
            for a in self.block.aliases
        }
        return Allowance(self.max_calls, at, asked_at)

    def toward(self, policy: Policy) -> Toward:
        """The policy, narrowed; `Toward.facts` wants to know the asking."""
        names = [a.relation.name for a in self.block.aliases]
        return Toward(self.goal, policy, Facts(names, self._rows(), self.allowance))

    def thrift(self) -> Thrift | None:
        """What waits with lookups, if anything does."""
        always, allowance = self.goal == "fewest_calls", self.allowance
        if not always and not allowance.any:
            return None
        chance = partial(_chance, self.block, self.measured, self.profile)
        return Thrift(always, allowance, chance, np.random.default_rng(self.seed))

    def _rows(self) -> dict[str, float]:
        """How many rows scans will bring, where that was measured or is declared."""
        found = {}
        for alias in self.block.aliases:
            relation = alias.relation
            for method in relation.scans:
                rows = self.measured.of(relation.name, method.name).rows
                if rows.groups >= _ONCE:
                    found[relation.name] = rows.mean
                elif (known := self.profile.relations.get(relation.name)) is not None and known.whole:
                    found.setdefault(relation.name, known.rows)
                elif relation.rows is not None:
                    found.setdefault(relation.name, float(relation.rows))
        return found


def _chance(block: Block, measured: Measurements, profile: Profile, provider: Provider) -> Chance:
    """How likely a lookup is to find anything, by what was harvested, what earlier ones found or what is declared."""
    relation = block.aliases[provider.alias].relation
    if (met := _met(block, profile, provider)) is not None:
        return Chance(0.5 + _HARVESTED * met, 0.5 + _HARVESTED * (1.0 - met))
    rows = measured.of(relation.name, provider.method.name).rows
    usual = rows.mean if rows.weight >= _FEW else provider.method.rows_per_lookup
    if usual is None:
        return Chance()
    found = min(_MOST, 1.0 - exp(-usual))
    return Chance(0.5 + _WEIGHT * found, 0.5 + _WEIGHT * (1.0 - found))


def _met(block: Block, profile: Profile, provider: Provider) -> float | None:
    """Of the values that feed it, how many have a match: as many as found one in a harvest; or where all that it could
    find was harvested, of each value as if it had nothing to do with the others."""
    relation, found = block.aliases[provider.alias].relation.name, 1.0
    harvested = profile.relations.get(relation)
    fields = [parted(given.field)[0] for given in provider.inputs]
    if harvested is not None and fields and (share := harvested.found(*fields)) is not None:
        return share
    for given in provider.inputs:
        field, operator = parted(given.field)
        if given.column is None or operator != EQUAL:
            return None
        feeding = block.aliases[given.column.alias].relation.name, given.column.field
        met = profile.met(feeding, (relation, field))
        if met is None:
            return None
        found *= met
    return found if provider.inputs else None
