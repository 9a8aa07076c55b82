"""Which sources are silent: asked, not at their end, and not heard of for longer than is usual."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

from mediator.catalog.measured import Measurements
from mediator.catalog.model import Relation

_USUAL = 0.95  # of the requests take no longer than what is called usual
_LEAST = 0.02  # seconds; a shorter silence says nothing
_UNKNOWN = 0.2  # seconds, where nothing was ever measured
_MOMENT = 0.01  # seconds for which what is usual is not looked up anew


class Silence:
    """By relation, since a query hears of sites by their relations' rows. `after` is what the user said."""

    def __init__(
        self, relations: Mapping[str, Relation], measured: Measurements, after: float | None
    ) -> None:
        self._relations = relations
        self._measured = measured
        self._after = after
        self._since: dict[str, float] = {}  # when it was last heard of, or asked; of those that are under way
        self._known: dict[str, float | None] = {}  # what is usual, as it was a moment ago
        self._looked = 0.0
        self._asked = -math.inf  # when it was last told who is silent

    def heard(self, relation: str, now: float) -> None:
        """Rows came, or an end."""
        self._since[relation] = now

    def under_way(self, relations: Collection[str], now: float) -> None:
        """These have been asked and have not come to their ends, and no others."""
        self._since = {name: self._since.get(name, now) for name in relations}
        if now >= self._looked + _MOMENT:
            self._looked = now
            self._known.clear()

    def silent(self, now: float) -> list[str]:
        self._asked = now
        return [name for name, since in self._since.items() if now >= since + self._patience(name)]

    @property
    def next(self) -> float | None:
        """When the next of them has been silent for too long, if nothing comes. It may be past already, but not when
        it was last told who is: no moment is lost between the two questions."""
        due = [since + self._patience(name) for name, since in self._since.items()]
        return min((at for at in due if at > self._asked), default=None)

    def _patience(self, relation: str) -> float:
        if self._after is not None:
            return self._after
        usual = self._usual(relation)
        if usual is None:
            # It has never been heard of. What others of the query take is all there is to compare it with.
            others = [u for name in self._relations if (u := self._usual(name)) is not None]
            usual = max(others, default=_UNKNOWN)
        return max(_LEAST, usual)

    def _usual(self, relation: str) -> float | None:
        if relation not in self._known:
            methods = self._relations[relation].methods if relation in self._relations else ()
            of = [self._measured.of(relation, method.name).latency.quantile(_USUAL) for method in methods]
            self._known[relation] = max(of, default=0.0) or None
        return self._known[relation]
