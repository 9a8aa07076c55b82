"""Routing arrays: per signature the legal destinations, the chosen one first. A choice is followed for a while and then
revisited."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from mediator.eddy.destinations import Destination
from mediator.eddy.policy import Policy, Visit
from mediator.flow.batch import Signature


@dataclass(slots=True)
class Route:
    """One signature's array, and how many more batches follow it before the policy is asked again."""

    array: list[Destination]
    left: int
    tried: set[Destination] = field(default_factory=set)


class Router:
    """Keeps the arrays. `revisit` is how many batches of a signature follow one decision."""

    def __init__(
        self, policy: Policy, legal: Callable[[Signature], Sequence[Destination]], revisit: int
    ) -> None:
        self._policy = policy
        self._legal = legal
        self._revisit = revisit
        self._routes: dict[Signature, Route] = {}

    def next(self, signature: Signature) -> Destination:
        route = self._routes.get(signature)
        if route is None:
            route = self._routes[signature] = Route(list(self._legal(signature)), 0)
        if len(route.array) > 1:
            if not route.left:
                chosen = self._policy.choose(signature, route.array)
                route.array.remove(chosen)
                route.array.insert(0, chosen)
                # Until something is known of a destination it gets one batch at a time: it may be a bad one.
                route.left = self._revisit if chosen in route.tried else 1
            route.left -= 1
        return route.array[0]

    def learn(self, visit: Visit) -> None:
        self._policy.learn(visit)
        route = self._routes.get(visit.signature)
        if route is not None:
            route.tried.add(visit.destination)

    def forget(self) -> None:
        """What is legal has changed."""
        self._routes.clear()
