"""What the names inside one SELECT can mean. Who fills a scope, and when, is in `names.py` and
`sources.py`."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import pyarrow.types as pt
from sqlglot import exp

from mediator.catalog.model import Catalog, Relation
from mediator.errors import UnknownRelation
from mediator.query.trees import Name


@dataclass(eq=False, slots=True)
class Cte:
    """A WITH entry: one body, however often it is named."""

    name: str
    body: exp.Expr
    columns: tuple[str, ...]
    materialized: bool = False
    recursive: bool = False


@dataclass(eq=False, slots=True)
class Source:
    """One item of a FROM clause: a relation, a derived table, or a WITH entry."""

    id: str  # its own in the whole statement
    name: str  # as the statement calls it
    columns: tuple[str, ...]
    relation: Relation | None = None
    query: exp.Expr | None = None
    cte: Cte | None = None
    position: int | None = None

    def column(self, name: str) -> str | None:
        if name in self.columns:
            return name
        return next((c for c in self.columns if c.lower() == name.lower()), None)

    @property
    def body(self) -> exp.Expr | None:
        """The query that it stands for, if it is no relation."""
        return self.cte.body if self.cte is not None else self.query

    def read(self, column: str) -> exp.Column:
        return column_of(self.id, column)


@dataclass(slots=True)
class Scope:
    """The sources and aliases of one SELECT, and the scope around it."""

    parent: Scope | None
    ctes: dict[str, Cte]
    sources: list[Source] = field(default_factory=list)
    merged: dict[str, exp.Expr] = field(default_factory=dict)  # USING columns: their value
    stands: dict[Name, exp.Expr] = field(default_factory=dict)  # and by the first column of each
    hidden: set[Name] = field(
        default_factory=set
    )  # columns that a plain name or a star leaves to a merged one
    aliases: dict[str, exp.Expr] = field(default_factory=dict)  # as written, not yet resolved
    distinct: bool = False
    keys: list[exp.Expr] = field(default_factory=list)  # what is grouped by

    def source(self, name: str) -> Source | None:
        return next((s for s in self.sources if s.name.lower() == name.lower()), None)

    def meaning(self, parts: Sequence[str]) -> exp.Expr | None:
        """What `a`, `t.a` or `t.a.field` means by this scope's sources alone."""
        source = self.source(parts[0]) if len(parts) > 1 else None
        column = source.column(parts[1]) if source is not None else None
        if source is not None and column is not None:
            return _dotted(source.read(column), parts[2:])
        value = self._unqualified(parts[0], row=len(parts) == 1 or source is None)
        if value is None or (len(parts) > 1 and self._is_plain(value)):
            return None
        return _dotted(value, parts[1:])

    def _is_plain(self, value: exp.Expr) -> bool:
        """Whether it is a relation's column that certainly has no fields of its own: so the name means another."""
        source = next(
            (s for s in self.sources if isinstance(value, exp.Column) and s.id == value.table), None
        )
        if source is None or source.relation is None:
            return False
        kind = source.relation.schema.field(value.name).type
        return not pt.is_nested(kind)

    def star(self) -> list[exp.Expr]:
        """The columns of `*`: a merged one once, where its first column stands."""
        found: list[exp.Expr] = []
        for source in self.sources:
            for column in source.columns:
                if (source.id, column) in self.hidden:
                    continue
                merged = self.stands.get((source.id, column))
                found.append(named(source.read(column) if merged is None else merged.copy(), column))
        return found

    def is_merged(self, source: Source, name: str) -> bool:
        """Whether USING has made one of this column and another source's."""
        column = source.column(name)
        place = (source.id, column or "")
        return place in self.stands or place in self.hidden

    def star_of(self, table: str) -> list[exp.Expr]:
        """The columns of `t.*`."""
        source = self.source(table)
        return [] if source is None else [named(source.read(c), c) for c in source.columns]

    def columns(self) -> list[str]:
        return [c for s in self.sources for c in s.columns]

    def _unqualified(self, name: str, row: bool) -> exp.Expr | None:
        merged = self.merged.get(name.lower())
        if merged is not None:
            return merged.copy() if isinstance(merged, exp.Column) else exp.Paren(this=merged.copy())
        for source in self.sources:
            column = source.column(name)
            if column is not None and (source.id, column) not in self.hidden:
                return source.read(column)
        whole = self.source(name) if row else None
        return None if whole is None else _row(whole)


def column_of(source: str, column: str) -> exp.Column:
    """A column that is resolved: its table is a source's id (or, later, a stage)."""
    made = exp.Column(
        this=exp.to_identifier(column, quoted=True), table=exp.to_identifier(source, quoted=True)
    )
    made.meta["resolved"] = True
    return made


def named(value: exp.Expr, name: str) -> exp.Alias:
    return exp.Alias(this=value, alias=exp.to_identifier(name, quoted=True))


def unique(columns: Iterable[str]) -> list[str]:
    """Names told apart as DuckDB does it: a, a_1, a_2."""
    seen: dict[str, int] = {}
    result: list[str] = []
    for column in columns:
        name = column
        while name.lower() in seen:
            seen[column.lower()] = seen.get(column.lower(), 0) + 1
            name = f"{column}_{seen[column.lower()]}"
        seen.setdefault(name.lower(), 0)
        result.append(name)
    return result


def renamed(columns: Sequence[str], renames: Sequence[str]) -> tuple[str, ...]:
    """Columns under the names that an alias list gives to the first of them."""
    return (*renames, *columns[len(renames) :])


def find_relation(catalog: Catalog, name: str) -> Relation | None:
    if name in catalog.relations:
        return catalog.relations[name]
    return next((r for n, r in catalog.relations.items() if n.lower() == name.lower()), None)


def unknown_relation(catalog: Catalog, name: str, sql: str, position: int | None) -> UnknownRelation:
    near = catalog.near(name)
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are: {_some(sorted(catalog.relations))}"
    missing = "".join(f"\nit may be in what cannot be used: {why}" for why in catalog.unavailable)
    return UnknownRelation(f"there is no relation {name!r}", sql=sql, position=position, hint=hint + missing)


def near_columns(name: str, columns: Iterable[str]) -> str:
    """A hint for a column name that means nothing."""
    lowered = {c.lower(): c for c in columns}
    near = difflib.get_close_matches(name.lower(), list(lowered), n=3)
    if near:
        return f"did you mean {' or '.join(lowered[n] for n in near)}?"
    return f"there are: {_some(list(lowered.values()))}" if lowered else ""


def _some(names: list[str]) -> str:
    return ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")


def _dotted(value: exp.Expr, fields: Sequence[str]) -> exp.Expr:
    for name in fields:
        value = exp.Anonymous(this="struct_extract", expressions=[value, exp.Literal.string(name)])
    return value


def _row(source: Source) -> exp.Expr:
    """A relation's name where a value is wanted: its row as a struct."""
    return exp.Struct(
        expressions=[
            exp.PropertyEQ(this=exp.to_identifier(c, quoted=True), expression=source.read(c))
            for c in source.columns
        ]
    )
