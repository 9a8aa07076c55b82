"""Which column a name means, within a SELECT and the ones round it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from pipeline.sparksql.errors import NotAgreed
from pipeline.sparksql.kinds import Piece


@dataclass(frozen=True, slots=True)
class Table:
    """Rows with columns c0, c1, ...: DuckDB's names of them, and types. `spark` is what stands in FROM."""

    spark: str
    columns: tuple[tuple[str, str], ...]

    def renamed(self, names: list[str]) -> Table:
        first = [(name, type_) for name, (_, type_) in zip(names, self.columns, strict=False)]
        return Table(self.spark, (*first, *self.columns[len(first) :]))


@dataclass(slots=True)
class Scope:
    outer: Scope | None = None
    sources: dict[str, tuple[str, Table]] = field(
        default_factory=dict
    )  # by DuckDB's name in small letters: Spark's
    aliases: Mapping[str, exp.Expr] = field(default_factory=dict)  # of the select list
    windows: Mapping[str, exp.Window] = field(default_factory=dict)

    def add(self, name: str, alias: str, table: Table) -> None:
        if name.lower() in self.sources:
            raise NotAgreed(f"two tables by the name of {name}")
        self.sources[name.lower()] = alias, table

    def column(self, table: str, name: str) -> Piece:
        """Of this SELECT, or of the one round it: further out Spark does not look."""
        for scope in (self, self.outer):
            if scope is not None and table.lower() in scope.sources:
                return _column(*scope.sources[table.lower()], name)
        raise NotAgreed(f"the column {table}.{name}")

    def bare(self, name: str) -> Piece | exp.Expr:
        """A column by that name alone, or what goes by it in the select list; not where it could be either."""
        wanted = name.lower()
        columns = [source for source in self.sources.values() if wanted in _names(source[1])]
        if len(columns) + (wanted in self.aliases) != 1:
            raise NotAgreed(f"the name {name}, which is not of one table")
        return _column(*columns[0], name) if columns else self.aliases[wanted]


def _names(table: Table) -> set[str]:
    return {column.lower() for column, _ in table.columns}


def _column(alias: str, table: Table, name: str) -> Piece:
    found = [n for n, (column, _) in enumerate(table.columns) if column.lower() == name.lower()]
    if len(found) != 1:
        raise NotAgreed(f"the column {name}")
    return Piece(f"{alias}.c{found[0]}", table.columns[found[0]][1])
