"""What one query wants of single sources while it runs: to leave one alone for now, or to favour it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple, get_args

# Whether a second mirror is sent after a late one: only where nothing is to be hoped of the first, within a budget, or
# within a larger one.
Hedging = Literal["none", "some", "more"]
HEDGINGS: tuple[Hedging, ...] = get_args(Hedging)


class Way(NamedTuple):
    """How those who want a lookup will have it: not of these sources, and rather of those, by so much."""

    barred: frozenset[str] = frozenset()
    boosts: tuple[tuple[str, float], ...] = ()


OPEN = Way()


class Wishes:
    """One per query, looked at by whatever waits for it."""

    __slots__ = ("boosts", "hedging", "paused")

    def __init__(self) -> None:
        self.paused: frozenset[str] = frozenset()
        self.boosts: Mapping[str, float] = {}
        self.hedging: Hedging = "some"

    def steer(self, paused: Collection[str], boosts: Mapping[str, float]) -> bool:
        """From now on these sources are left alone, and those are favoured. Whether it was otherwise before."""
        before = self.paused, self.boosts
        self.paused = frozenset(paused)
        self.boosts = {source: factor for source, factor in boosts.items() if factor != 1.0}
        return before != (self.paused, self.boosts)

    @property
    def none(self) -> bool:
        return not (self.paused or self.boosts)

    def way(self, places: Sequence[str]) -> Way:
        """As far as these sources are concerned."""
        if self.none:
            return OPEN
        boosts = tuple((place, self.boosts[place]) for place in places if place in self.boosts)
        return Way(self.paused.intersection(places), boosts)

    def favour(self, places: Sequence[str]) -> float:
        """How much more a lookup is worth that one of these sources answers."""
        if not self.boosts:
            return 1.0
        return max(self.boosts.get(place, 1.0) for place in places)


def together(ways: Iterable[Way]) -> Way:
    """How several queries will have one lookup: left alone is only what all of them leave alone."""
    first, *others = ways
    if not others:
        return first
    boosts = dict(first.boosts)
    for way in others:
        for source, factor in way.boosts:
            boosts[source] = max(factor, boosts.get(source, factor))
    return Way(first.barred.intersection(*(way.barred for way in others)), tuple(sorted(boosts.items())))
