"""What a query may still ask, by its ceilings and by what it has asked. Pages and second tries are not known here, so
it is at most so much."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mediator.binding.model import Provider
from mediator.eddy.asked import Tally


@dataclass(frozen=True)
class Allowance:
    """`whole` is the ceiling of the query, `at` those of single sources; `asked_at` says where each relation is."""

    whole: int | None = None
    at: Mapping[str, int] = field(default_factory=dict)
    asked_at: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @property
    def any(self) -> bool:
        return self.whole is not None or bool(self.at)

    def left(self, provider: Provider, tallies: Mapping[str, Tally]) -> int | None:
        """Requests that the provider's method may still be sent; none where nothing limits it."""
        left: list[int] = []
        if self.whole is not None:
            left.append(self.whole - sum(t.asked for t in tallies.values()))
        places = {mirror.source for mirror in provider.method.mirrors}
        if places and all(place in self.at for place in places):
            most = sum(self.at[place] for place in places)
            spent = sum(t.asked for name, t in tallies.items() if self.asked_at.get(name, places) & places)
            left.append(most - spent)
        return max(0, min(left)) if left else None
