"""Routing arrays: per signature the legal destinations, the chosen one first. A choice is followed for a while and then
revisited."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mediator.eddy.destinations import Destination
from mediator.eddy.policy import Policy, Visit
from mediator.flow.batch import Signature


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
        self, policy: Policy, legal: Callable[[Signature], Sequence[Destination]], revisit: int
    ) -> None:
        self._policy = policy
        self._legal = legal
        self._revisit = revisit
        self._routes: dict[Signature, Route] = {}

    def next(self, signature: Signature) -> tuple[Destination, int]:
        """Where a batch goes, and how many of its rows are to be tried there before; 0: none."""
        route = self._routes.get(signature)
        if route is None:
            route = self._routes[signature] = Route(list(self._legal(signature)))
        sample = 0
        if len(route.array) > 1:
            if not route.left:
                sample = self._choose(signature, route)
            route.left -= 1
        return route.array[0], sample

    def _choose(self, signature: Signature, route: Route) -> int:
        """Ask the policy. The more often it says the same, the longer it is believed."""
        before, chosen = route.array[0], self._policy.choose(signature, route.array)
        route.array.remove(chosen)
        route.array.insert(0, chosen)
        sample = self._policy.sample(signature, chosen)
        again = chosen == before and not sample
        route.left = route.patience = (
            min(self._revisit, 2 * route.patience) if again and route.patience else 1
        )
        return sample

    def learn(self, visit: Visit) -> None:
        self._policy.learn(visit)

    def forget(self) -> None:
        """What is legal has changed."""
        self._routes.clear()
