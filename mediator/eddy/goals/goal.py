"""What a query is run for: one dial between calls and time. A goal narrows what is legal, a policy chooses among what
is left; so any policy goes with any goal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from mediator.eddy.asking import Asking
from mediator.eddy.destinations import Destination, Hold, LookUp, Park
from mediator.eddy.goals.allowance import Allowance
from mediator.eddy.policy import Coming, Policy, Situation, Visit
from mediator.flow.batch import Signature

Goal = Literal["first_rows", "all_rows", "fewest_calls"]
GOALS: tuple[Goal, ...] = get_args(Goal)


@dataclass(slots=True)
class Facts:
    """What a goal goes by beside the signature. `asking` is there once the eddy is."""

    relations: Sequence[str]  # by alias
    rows: Mapping[str, float] = field(default_factory=dict)  # of a whole relation, where that is known
    allowance: Allowance = field(default_factory=Allowance)
    asking: Asking | None = None


class Toward:
    """A policy, with only those destinations to choose among that serve a goal."""

    def __init__(self, goal: Goal, policy: Policy, facts: Facts) -> None:
        self._goal = goal
        self._policy = policy
        self.facts = facts

    @property
    def glances(self) -> bool:
        return self._policy.glances

    def choose(self, signature: Signature, legal: Sequence[Destination], situation: Situation) -> Destination:
        served = self.served(signature, legal, situation)
        return served[0] if len(served) == 1 else self._policy.choose(signature, served, situation)

    def served(
        self, signature: Signature, legal: Sequence[Destination], situation: Situation
    ) -> Sequence[Destination]:
        """Those of the legal destinations that serve the goal."""
        if signature.completing < 0 or len(legal) == 1:
            return legal
        parks = [d for d in legal if isinstance(d, Park)]
        holds = [d for d in legal if isinstance(d, Hold)]
        lookups = [d for d in legal if isinstance(d, LookUp)]
        if self._goal == "fewest_calls":
            return parks or holds
        if not parks and holds and self._scarce(lookups, situation):
            return holds
        if self._goal == "first_rows":
            return lookups or parks
        if parks and lookups and self._overtaken(signature.completing, situation):
            return parks
        return [*parks, *lookups]

    def learn(self, visit: Visit) -> int | None:
        return self._policy.learn(visit)

    def sample(self, signature: Signature, destination: Destination) -> int:
        return self._policy.sample(signature, destination)

    def survey(
        self, signature: Signature, legal: Sequence[Destination], rows: int
    ) -> tuple[int, Mapping[Destination, float]] | None:
        return None if signature.completing >= 0 else self._policy.survey(signature, legal, rows)

    def why(
        self, signature: Signature, legal: Sequence[Destination], situation: Situation
    ) -> Mapping[Destination, Mapping[str, float]]:
        """The policy's figures, and of a lookup beside a scan how long either is expected to take."""
        found = {d: dict(figures) for d, figures in self._policy.why(signature, legal, situation).items()}
        if signature.completing >= 0 and self.facts.asking is not None:
            takes, left = self._seconds(signature.completing, situation)
            for destination in legal:
                if isinstance(destination, LookUp) and takes:
                    found.setdefault(destination, {})["seconds of lookups"] = takes
                elif isinstance(destination, Park) and left < float("inf"):
                    found.setdefault(destination, {})["seconds of scan"] = left
        return found

    def builds(self, coming: Coming) -> bool:
        return self._policy.builds(coming)

    def _overtaken(self, alias: int, situation: Situation) -> bool:
        """Whether a scan will probably have ended before lookups for these rows are answered."""
        if self.facts.asking is None:
            return False
        takes, left = self._seconds(alias, situation)
        return takes > left

    def _seconds(self, alias: int, situation: Situation) -> tuple[float, float]:
        """How long the lookups, and the rest of the scan, are expected to take."""
        assert self.facts.asking is not None
        pace, relation = self.facts.asking.pace, self.facts.relations[alias]
        left = pace.scan_left(relation, self.facts.rows.get(relation, 0.0))
        return pace.lookups_take(relation, situation.rows), left

    def _scarce(self, lookups: Sequence[LookUp], situation: Situation) -> bool:
        """Whether there may be more to ask than the ceilings allow: then it is asked in the order of what it brings."""
        asking = self.facts.asking
        if asking is None or not self.facts.allowance.any or not lookups:
            return False
        provider = asking.providers[lookups[0].alias][lookups[0].provider]
        left = self.facts.allowance.left(provider, asking.tallies)
        return left is not None and situation.rows > left * provider.method.batch_size
