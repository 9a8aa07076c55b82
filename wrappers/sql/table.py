"""Statements about one table. Names are quoted, values are parameters: nothing else comes from outside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from mediator.catalog.bindfields import EQUAL
from mediator.catalog.statement import Row, Statement
from mediator.catalog.wrapper import Binding
from wrappers.sql.dialect import Dialect, quoted
from wrappers.sql.ranges import Limit, text_of


@dataclass(frozen=True, slots=True)
class Term:
    """A bind-field: the column, and how it is compared with a value of its field's type."""

    column: str
    operator: str
    type: pa.DataType


@dataclass(frozen=True, slots=True)
class Asked:
    """Rows that meet all the terms with one of the bindings; bounds on columns that are `unbounded` are passed over."""

    terms: Sequence[Term]
    bindings: Sequence[Binding]
    unbounded: tuple[str, ...] = ()

    @property
    def equal(self) -> list[tuple[int, Term]]:
        """Those with a value, and where in a binding that is."""
        return [(at, term) for at, term in enumerate(self.terms) if term.operator == EQUAL]

    @property
    def ranged(self) -> list[tuple[int, Term]]:
        """Those with a bound."""
        terms = enumerate(self.terms)
        return [(at, t) for at, t in terms if t.operator != EQUAL and t.column not in self.unbounded]


@dataclass(frozen=True)
class Table:
    """`columns` are to be read, in this order; `key` are those that pages are told apart by."""

    dialect: Dialect
    path: tuple[str, ...]  # the schemas it is in, and its name
    columns: tuple[str, ...]
    key: tuple[str, ...] = ()

    def matching(self, asked: Asked, limit: int) -> Statement:
        """The first rows of those that are asked for."""
        return self._statement(asked, _Conditions(self.dialect, asked), limit)

    def following(self, asked: Asked, last: Row, limit: int) -> Statement:
        """The same from the row with the key `last` on (all that have a key, where that is empty).

        That row is in it once more, to show whether others have its key: they would be passed over.
        """
        wanted = _Conditions(self.dialect, asked)
        for name in self.key:
            wanted.texts.append(f"{_column(name)} IS NOT NULL")
        if last:
            wanted.begin_at(self.key, last)
        return self._statement(asked, wanted, limit)

    def keyless(self, asked: Asked, limit: int) -> Statement:
        """Those with a NULL in the key: no page begins after them."""
        wanted = _Conditions(self.dialect, asked)
        wanted.texts.append("(" + " OR ".join(f"{_column(name)} IS NULL" for name in self.key) + ")")
        return self._statement(asked, wanted, limit)

    def _statement(self, asked: Asked, wanted: _Conditions, limit: int) -> Statement:
        parts = [
            "SELECT " + ", ".join(map(_column, self.columns)),
            "FROM " + ".".join(map(quoted, self.path)) + " AS r",
        ]
        if wanted.texts:
            parts.append("WHERE " + " AND ".join(wanted.texts))
        if self.key:
            parts.append("ORDER BY " + ", ".join(map(_column, self.key)))
        parts.append(f"LIMIT {limit:d}")
        return Statement(
            path=".".join(self.path),
            method="SELECT",
            sql=" ".join(parts),
            parameters=tuple(wanted.parameters),
            unbounded=asked.unbounded,
        )


class _Conditions:
    """What a WHERE says, and the values of its parameters."""

    def __init__(self, dialect: Dialect, asked: Asked) -> None:
        self.texts: list[str] = []
        self.parameters: list[object] = []
        self._dialect = dialect
        # All that one query asks for together has the same bounds: then they stand once, and the statement is
        # the same for any of them.
        groups: dict[Binding, list[Binding]] = {}
        for binding in asked.bindings:
            groups.setdefault(tuple(binding[at] for at, _ in asked.ranged), []).append(binding)
        if len(groups) == 1:
            ((bounds, bindings),) = groups.items()
            self.texts += self._met_by(asked, bounds, bindings)
        else:
            each = (" AND ".join(self._met_by(asked, *group)) for group in groups.items())
            self.texts.append("(" + " OR ".join(f"({text})" for text in each) + ")")

    def _met_by(self, asked: Asked, bounds: Binding, bindings: Sequence[Binding]) -> list[str]:
        texts = self._any_of(
            [term.column for _, term in asked.equal],
            [tuple(b[at] for at, _ in asked.equal) for b in bindings],
        )
        for (_, term), bound in zip(asked.ranged, bounds, strict=True):
            limit = Limit(_column(term.column), term.operator, term.type, bound)
            texts.append(text_of(self._dialect, limit, self._place))
        return texts

    def _any_of(self, columns: Sequence[str], bindings: Sequence[Binding]) -> list[str]:
        """One column as an IN-list; several as alternatives, of which both databases make use of an index."""
        if not columns:
            return []
        if len(columns) > 1:
            return ["(" + " OR ".join(self._all_of(columns, b) for b in bindings) + ")"]
        values = ", ".join(self._place(binding[0]) for binding in bindings)
        return [f"{_column(columns[0])} IN ({values})"]

    def begin_at(self, key: Sequence[str], last: Row) -> None:
        names, values = map(_column, key), map(self._place, last)
        self.texts.append(f"({', '.join(names)}) >= ({', '.join(values)})")

    def _all_of(self, columns: Sequence[str], binding: Binding) -> str:
        equal = (f"{_column(c)} = {self._place(v)}" for c, v in zip(columns, binding, strict=True))
        return "(" + " AND ".join(equal) + ")"

    def _place(self, value: object) -> str:
        self.parameters.append(self._dialect.value(value))
        return f"{self._dialect.place}{len(self.parameters)}"


def _column(name: str) -> str:
    # Without the table, SQLite takes the name of a column that is gone for a text.
    return f"r.{quoted(name)}"
