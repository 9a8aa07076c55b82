"""Routing arrays: per signature the legal destinations, the chosen one first. A choice is followed for a while and then
revisited."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mediator.eddy.decisions import Decisions
from mediator.eddy.destinations import Destination
from mediator.eddy.flows import Flows
from mediator.eddy.policy import AGAIN, Policy, Situation, Visit
from mediator.eddy.situating import Situating
from mediator.flow.batch import Batch, Signature


@dataclass(slots=True)
class Route:
    """One signature's array, how many more batches follow it before the policy is asked again, and how many did last
    time."""

    array: list[Destination]
    left: int = 0
    patience: int = 0


class Router:
    """Keeps the arrays. `revisit` is how many batches of a signature follow one decision at most."""

    def __init__(
        self,
        policy: Policy,
        legal: Callable[[Signature], Sequence[Destination]],
        revisit: int,
        decisions: Decisions | None = None,
        situating: Situating | None = None,
    ) -> None:
        """`situating` tells the policy more of the moment than a batch does."""
        self.flows = Flows()
        self.decisions = decisions  # none where nobody looks on
        self._policy = policy
        self._legal = legal
        self._revisit = revisit
        self._situating = situating
        self._routes: dict[Signature, Route] = {}

    def next(self, batch: Batch) -> tuple[Destination, int]:
        """Where a batch goes, and how many of its rows are to be tried there before; 0: none."""
        route = self._route(batch.signature)
        if len(route.array) > 1:
            if not route.left and (trial := self._choose(batch, route)) is not None:
                return trial
            route.left -= 1
        return route.array[0], 0

    def array(self, signature: Signature) -> Sequence[Destination]:
        """Where a batch of this signature may go, the chosen destination first."""
        return self._route(signature).array

    def due(self, signature: Signature) -> bool:
        """Whether the next batch of this signature is decided about anew."""
        route = self._routes.get(signature)
        return route is not None and not route.left and len(route.array) > 1

    def _route(self, signature: Signature) -> Route:
        route = self._routes.get(signature)
        if route is None:
            route = self._routes[signature] = Route(list(self._legal(signature)))
        return route

    def _choose(self, batch: Batch, route: Route) -> tuple[Destination, int] | None:
        """Ask the policy, or find out what it wants to know first. The more often it says the same, the longer it is
        believed."""
        signature, situation = batch.signature, self._situation(batch, route)
        chosen = self._policy.choose(signature, route.array, situation)
        sample = self._policy.sample(signature, chosen)
        if sample:
            return chosen, sample
        if self.decisions is not None:
            self.decisions.chose(signature, route.array, situation, chosen)
        again = chosen == route.array[0] and route.patience and not self.remote(chosen)
        route.left = route.patience = min(self._revisit, 4 * route.patience) if again else 1
        route.array.remove(chosen)
        route.array.insert(0, chosen)
        return None

    def _situation(self, batch: Batch, route: Route) -> Situation:
        if self._situating is None:
            return Situation(len(batch), batch.seen)
        return self._situating.of(batch, route.array)

    def remote(self, where: Destination) -> bool:
        """Whether what is sent there may have to be looked up."""
        return self._situating is not None and self._situating.remote(where)

    def learn(self, visit: Visit, wanted: bool = False) -> None:
        """Let the policy take it into account, if it was `wanted` or the policy is to be told of visits there; and
        choose again soon if it was not what was expected."""
        flow = None
        if not visit.compared:
            flow, like = self.flows.learn(visit)
            if flow.unheard and like and not wanted:
                flow.unheard -= 1
                flow.untold += 1
                return
            if flow.untold and not wanted:
                visit, flow.untold = visit._replace(alike=flow.untold), 0
        said = self._policy.learn(visit)
        if said and flow is not None:
            flow.unheard = max(0, said)
        if said == AGAIN and (route := self._routes.get(visit.signature)) is not None:
            route.left = 0

    def arrays(self) -> dict[Signature, tuple[Destination, ...]]:
        """Those that stand now."""
        return {signature: tuple(route.array) for signature, route in self._routes.items()}

    def forget(self) -> None:
        """What is legal has changed."""
        self._routes.clear()
