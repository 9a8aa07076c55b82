"""What harvests and runs were found to be like: counts of values, what joins, what goes together. Data, of one moment.

It is worth no more than a beginning: what a run sees for itself goes before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from mediator.catalog.measured import Measurements

Place = tuple[str, str]  # a relation, and a column of it


@dataclass(frozen=True, slots=True)
class ColumnProfile:
    """Of the rows that were harvested: how many have a value, how many values there are, and the commonest of them."""

    filled: float
    distinct: float
    most: float  # rows of the commonest value
    heavy: tuple[tuple[str, float], ...] = ()  # values that stand in many rows, as text, and in how many

    @property
    def fan_out(self) -> float:
        """Rows for each value."""
        return self.filled / self.distinct if self.distinct else 0.0


@dataclass(frozen=True)
class RelationProfile:
    """`sample` are rows drawn without regard to what is in them; `together` says how many pairs of values two columns
    have: as many as there can be where they have nothing to do with one another, far fewer where one tells the other.
    """

    declared: str  # the fingerprint of its declaration
    rows: float
    whole: bool  # all of it was harvested
    columns: Mapping[str, ColumnProfile] = field(default_factory=dict)
    sample: pa.Table | None = None
    together: Mapping[tuple[str, str], float] = field(default_factory=dict)
    asked: Mapping[tuple[str, ...], float] = field(default_factory=dict)  # lookups, by what they bound

    def found(self, *fields: str) -> float | None:
        """Of the lookups that bound these fields, how many found something; None where there were few."""
        asked, values = self.asked.get(tuple(sorted(fields)), 0.0), self.distinct(*fields)
        return min(1.0, values / asked) if asked >= _FEW and values is not None else None

    def distinct(self, *columns: str) -> float | None:
        """Different values of one column, or of two together."""
        if len(columns) == 2:
            return self.together.get((columns[0], columns[1]), self.together.get((columns[1], columns[0])))
        found = self.columns.get(columns[0]) if len(columns) == 1 else None
        return found.distinct if found is not None else None


@dataclass(frozen=True, slots=True)
class JoinProfile:
    """Two columns' values against each other."""

    pairs: float  # of rows, that are equal
    values: float  # that both have


@dataclass(frozen=True)
class Profile:
    at: float = 0.0  # when it was made, by the wall's clock
    relations: Mapping[str, RelationProfile] = field(default_factory=dict)
    joins: Mapping[tuple[Place, Place], JoinProfile] = field(default_factory=dict)
    measured: Measurements = field(
        default_factory=Measurements
    )  # of access methods, where nothing newer is known

    def share(self, one: Place, other: Place) -> float | None:
        """Of all pairs of their rows, how many are equal; None where that is not known."""
        join, rows = self._join(one, other), self._rows(one[0]) * self._rows(other[0])
        return None if join is None or not rows else join.pairs / rows

    def met(self, one: Place, other: Place) -> float | None:
        """Of the values of one, how many the other has; None where not all of the other was harvested."""
        join, column = self._join(one, other), self.column(one)
        there = self.relations.get(other[0])
        if join is None or column is None or there is None or not there.whole or not column.distinct:
            return None
        return min(1.0, join.values / column.distinct)

    def column(self, place: Place) -> ColumnProfile | None:
        relation = self.relations.get(place[0])
        return None if relation is None else relation.columns.get(place[1])

    def suiting(self, declared: Mapping[str, str]) -> Profile:
        """Only what is of relations as they are declared now, by name."""
        relations = {n: r for n, r in self.relations.items() if declared.get(n) == r.declared}
        joins = {pair: j for pair, j in self.joins.items() if all(name in relations for name, _ in pair)}
        return Profile(self.at, relations, joins, self.measured)

    def _join(self, one: Place, other: Place) -> JoinProfile | None:
        return self.joins.get((one, other), self.joins.get((other, one)))

    def _rows(self, name: str) -> float:
        found = self.relations.get(name)
        return found.rows if found is not None else 0.0


_FEW = 20  # lookups below which it is not said how many find something
NO_PROFILE = Profile()
