"""What the desk serves: anything that waits for its turn at a source."""

from __future__ import annotations

from typing import Protocol

# Whoever has the smaller one goes first: (-urgency, order of arrival, whether it has not begun). A queue tells the rank
# of whoever is next with the urgency divided by the seconds that a request is expected to take.
Rank = tuple[float, int, bool]


class Queue(Protocol):
    """Requests that wait: bindings not asked yet, or further requests of trips under way."""

    def rank(self) -> Rank | None:
        """The rank of whoever is next; none when nobody waits."""
        ...

    def serve(self) -> bool:
        """Lets the next one go, if it may go now."""
        ...

    def ready_at(self) -> float:
        """When the mere passing of time could let the next one go; infinite when it could not."""
        ...
