"""The fewest lookups that a query could have been answered with, found after the fact, by nothing of the engine.

A *plan* says for each table that no scan brings by which bind set it is asked, and in which order such tables are
asked, one after another. When a table's turn comes, all tables that were got before it (the scanned ones, and those
whose turn came earlier) are joined by all of the query's conditions on them; the lookups of the table are the different
values, in that join, of the columns that its bind set is equal to. Where tables that nothing joins feed one bind set,
every combination of their values is a lookup; where the join is empty, nothing is asked any more. Bind-fields that
equal a constant have it from the query. A plan costs the sum over its tables, and hindsight takes the cheapest.

What a set of tables joins to does not hang on the order in which they were got, as what was got of each has every row
that matches those before. So the costs are counted once per set, with DuckDB, and the orders are walked set by set.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product

import duckdb

from bench.papers.federations import SELECTED, Federation
from mediator.catalog.model import BindSet

_FAR = 10**9

Source = tuple[str, str]  # a table and one of its columns; no table, and a value, for a constant


@dataclass(frozen=True, slots=True)
class Least:
    """How many lookups, and the plan: table by table, which bind set it was asked by, and how often."""

    lookups: int
    plan: tuple[tuple[str, BindSet, int], ...]


class TooLarge(Exception):
    """Joins of it have more rows than anybody wants to count."""


@dataclass(slots=True)
class Hindsight:
    federation: Federation
    most: int = 200_000  # rows that a join may have
    _counts: dict[tuple[frozenset[str], tuple[Source, ...]], int] = field(default_factory=dict)
    _best: dict[frozenset[str], Least] = field(default_factory=dict)

    def least(self) -> Least:
        with duckdb.connect(config={"threads": 1}) as self_:
            for name, table in self.federation.tables.items():
                self_.register(f"{name}_arrow", table)
                self_.execute(f"CREATE TABLE {name} AS SELECT * FROM {name}_arrow")
            relations = self.federation.catalog.relations
            got = frozenset(name for name, relation in relations.items() if relation.scans)
            return self._from(self_, got)

    def _from(self, duck: duckdb.DuckDBPyConnection, got: frozenset[str]) -> Least:
        """What is left to be asked at best when these have been got."""
        if got in self._best:
            return self._best[got]
        left = [name for name in self.federation.tables if name not in got]
        best = Least(0 if not left else _FAR, ())
        for name in left:
            asked = min(self._ways(duck, got, name), default=None)
            if asked is not None:
                rest = self._from(duck, got | {name})
                if asked[0] + rest.lookups < best.lookups:
                    best = Least(asked[0] + rest.lookups, ((name, asked[1], asked[0]), *rest.plan))
        self._best[got] = best
        return best

    def _ways(
        self, duck: duckdb.DuckDBPyConnection, got: frozenset[str], name: str
    ) -> Iterator[tuple[int, BindSet]]:
        """What each bind set of the table would come to now."""
        for method in self.federation.catalog.relations[name].methods:
            for bind_set in method.bind_sets():
                for sources in product(*(self._sources(name, f, got) for f in bind_set)):
                    yield self._count(duck, got, sources), bind_set

    def _sources(self, name: str, column: str, got: frozenset[str]) -> list[Source]:
        """Where a value for a bind-field comes from: a constant, or the columns of got tables that are equal to it."""
        if column == "c" and name in self.federation.constants:
            return [("", str(self.federation.constants[name]))]
        return sorted(s for s in _equal(self.federation, (name, column)) if s[0] in got)

    def _count(
        self, duck: duckdb.DuckDBPyConnection, got: frozenset[str], sources: tuple[Source, ...]
    ) -> int:
        """Different values of these columns in the join of what was got."""
        key = got, sources
        if key not in self._counts:
            feeding = {table for table, _ in sources if table}
            total = 1
            for part in _connected(self.federation, got):
                columns = [f"{t}.{c}" for t, c in sources if t in part]
                total *= self._distinct(duck, part, columns if feeding & part else [])
                if not total:
                    break
            self._counts[key] = total
        return self._counts[key]

    def _distinct(self, duck: duckdb.DuckDBPyConnection, part: frozenset[str], columns: list[str]) -> int:
        joined = f"FROM {', '.join(sorted(part))} WHERE {' AND '.join(['TRUE', *_conditions(self.federation, part)])}"
        if not columns:
            row = duck.execute(f"SELECT count(*) FROM (SELECT 1 {joined} LIMIT 1)").fetchone()
        else:
            size = duck.execute(f"SELECT count(*) FROM (SELECT 1 {joined} LIMIT {self.most + 1})").fetchone()
            if size is None or size[0] > self.most:
                raise TooLarge(f"{self.federation.seed}: {sorted(part)}")
            row = duck.execute(
                f"SELECT count(*) FROM (SELECT DISTINCT {', '.join(columns)} {joined})"
            ).fetchone()
        assert row is not None
        return int(row[0])


def _equal(federation: Federation, column: Source) -> set[Source]:
    """The columns of other tables that a column equals by way of the query's joins."""
    found, fresh = {column}, {column}
    while fresh:
        near: set[Source] = set()
        for join in federation.joins:
            sides = (join.left, join.left_column), (join.right, join.right_column)
            for one, other in (sides, sides[::-1]):
                if one in fresh and other not in found:
                    near.add(other)
        found, fresh = found | near, near
    return {source for source in found if source[0] != column[0]}


def _connected(federation: Federation, tables: frozenset[str]) -> list[frozenset[str]]:
    """The tables in parts that equal columns hold together, be it by way of a table that is not among them."""
    parts = [frozenset([table]) for table in sorted(tables)]
    for table in sorted(tables):
        columns = federation.tables[table].column_names
        near = {other for c in columns for other, _ in _equal(federation, (table, c)) if other in tables}
        together = [p for p in parts if p & (near | {table})]
        parts = [p for p in parts if p not in together] + [frozenset().union(*together)]
    return parts


def _conditions(federation: Federation, part: frozenset[str]) -> list[str]:
    """All that the query says of these tables alone, and what follows from it for them."""
    limits: Mapping[str, int] = federation.limits
    found = [f"{t}.{SELECTED} < {n}" for t, n in limits.items() if t in part]
    found += [f"{t}.c = {n}" for t, n in federation.constants.items() if t in part]
    for table in sorted(part):
        for column in federation.tables[table].column_names:
            for other, theirs in sorted(_equal(federation, (table, column))):
                if other in part and other > table:
                    found.append(f"{table}.{column} = {other}.{theirs}")
    return found
