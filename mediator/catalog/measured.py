"""What was measured of access methods, in this process and in those before it: data, which grows old.

Access adds to it, a store keeps it, estimates and policies read it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from mediator.catalog.sketches import Distinct, Histogram, Moments
from mediator.catalog.wrapper import Binding

HALF_LIFE = 7 * 86_400.0  # seconds after which what was measured counts half
_NOTHING = 0.01  # requests: what stands for fewer is forgotten


@dataclass(slots=True)
class Measured:
    """Of one access method at one mirror, or at several together. Counts are weights: old ones count less."""

    latency: Histogram = field(default_factory=Histogram)  # seconds of one request
    requests: float = 0.0  # each attempt
    errors: dict[str, float] = field(default_factory=dict)  # requests that failed, by kind of cause
    rows: Moments = field(default_factory=Moments)  # per lookup
    bytes: Moments = field(default_factory=Moments)  # per lookup
    pages: Moments = field(
        default_factory=Moments
    )  # per request for one or more lookups: with its further pages
    bindings: Distinct = field(default_factory=Distinct)  # that were asked

    @property
    def lookups(self) -> float:
        """That were answered to their end."""
        return self.rows.weight

    @property
    def error_rate(self) -> float:
        return min(1.0, sum(self.errors.values()) / self.requests) if self.requests > 0.0 else 0.0

    @property
    def attempts(self) -> float:
        """Requests for one page, with those that are sent again and those that are sent twice."""
        return max(1.0, self.requests / self.pages.total) if self.pages.total >= 1.0 else 1.0

    def failed(self, kind: str) -> None:
        self.errors[kind] = self.errors.get(kind, 0.0) + 1.0

    def answered(self, bindings: Sequence[Binding], rows: int, pages: int, size: int) -> None:
        """The lookups of one request have come to their end."""
        self.rows.add(len(bindings), rows)
        self.bytes.add(len(bindings), size)
        self.pages.add(1, pages)
        self.bindings.add(bindings)

    def plus(self, other: Measured) -> Measured:
        errors = dict(self.errors)
        for kind, weight in other.errors.items():
            errors[kind] = errors.get(kind, 0.0) + weight
        return Measured(
            self.latency.plus(other.latency),
            self.requests + other.requests,
            errors,
            self.rows.plus(other.rows),
            self.bytes.plus(other.bytes),
            self.pages.plus(other.pages),
            self.bindings.plus(other.bindings),
        )

    def aged(self, share: float) -> Measured:
        return Measured(
            self.latency.aged(share),
            self.requests * share,
            {kind: weight * share for kind, weight in self.errors.items()},
            self.rows.aged(share),
            self.bytes.aged(share),
            self.pages.aged(share),
            Distinct(self.bindings.smallest),
        )


@dataclass(frozen=True, order=True, slots=True)
class Place:
    """One mirror of one access method."""

    relation: str
    method: str
    source: str


class Measurements:
    """Of every access method and mirror that was ever asked."""

    def __init__(self, known: Mapping[Place, Measured] | None = None) -> None:
        self.stirred: Callable[[], object] | None = None  # called when something is about to be added
        self._known = dict(known or {})

    def __iter__(self) -> Iterator[tuple[Place, Measured]]:
        return iter(sorted(self._known.items()))

    def __len__(self) -> int:
        return len(self._known)

    def at(self, place: Place) -> Measured:
        """What there is of one mirror."""
        return self._known.get(place) or Measured()

    def adding(self, place: Place) -> Measured:
        """What there is of one mirror, to be added to now; not to be held on to, as it grows old."""
        if self.stirred is not None:
            self.stirred()
        found = self._known.get(place)
        if found is None:
            found = self._known[place] = Measured()
        return found

    def of(self, relation: str, method: str) -> Measured:
        """What there is of one access method, whichever mirror it was measured at."""
        found = Measured()
        for place, measured in self._known.items():
            if (place.relation, place.method) == (relation, method):
                found = found.plus(measured)
        return found

    def suppose(self, others: Measurements) -> None:
        """What nothing is known of is taken to be as others say."""
        self._known = {**others._known, **self._known}

    def age(self, seconds: float) -> None:
        """So much time has passed. A clock that was set back makes nothing younger."""
        share = 0.5 ** (max(0.0, seconds) / HALF_LIFE)
        aged = {place: measured.aged(share) for place, measured in self._known.items()}
        self._known = {place: m for place, m in aged.items() if m.requests >= _NOTHING}
