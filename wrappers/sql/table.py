"""Statements about one table. Names are quoted, values are parameters: nothing else comes from outside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mediator.catalog.statement import Row, Statement
from mediator.catalog.wrapper import Binding
from wrappers.sql.dialect import Dialect, quoted


@dataclass(frozen=True)
class Table:
    """`columns` are to be read, in this order; `key` are those that pages are told apart by."""

    dialect: Dialect
    path: tuple[str, ...]  # the schemas it is in, and its name
    columns: tuple[str, ...]
    key: tuple[str, ...] = ()

    def matching(self, columns: Sequence[str], bindings: Sequence[Binding], limit: int) -> Statement:
        """The first rows in which these columns have the values of one of the bindings."""
        wanted = _Conditions(self.dialect)
        wanted.any_of(columns, bindings)
        return self._statement(wanted, limit)

    def following(
        self, columns: Sequence[str], bindings: Sequence[Binding], last: Row, limit: int
    ) -> Statement:
        """The same from the row with the key `last` on (all that have a key, where that is empty).

        That row is in it once more, to show whether others have its key: they would be passed over.
        """
        wanted = _Conditions(self.dialect)
        wanted.any_of(columns, bindings)
        for name in self.key:
            wanted.texts.append(f"{_column(name)} IS NOT NULL")
        if last:
            wanted.begin_at(self.key, last)
        return self._statement(wanted, limit)

    def keyless(self, columns: Sequence[str], bindings: Sequence[Binding], limit: int) -> Statement:
        """Those with a NULL in the key: no page begins after them."""
        wanted = _Conditions(self.dialect)
        wanted.any_of(columns, bindings)
        wanted.texts.append("(" + " OR ".join(f"{_column(name)} IS NULL" for name in self.key) + ")")
        return self._statement(wanted, limit)

    def _statement(self, wanted: _Conditions, limit: int) -> Statement:
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
        )


class _Conditions:
    """What a WHERE says, and the values of its parameters."""

    def __init__(self, dialect: Dialect) -> None:
        self.texts: list[str] = []
        self.parameters: list[object] = []
        self._dialect = dialect

    def any_of(self, columns: Sequence[str], bindings: Sequence[Binding]) -> None:
        """One column as an IN-list; several as alternatives, of which both databases make use of an index."""
        if len(columns) == 1:
            values = ", ".join(self._place(binding[0]) for binding in bindings)
            self.texts.append(f"{_column(columns[0])} IN ({values})")
        elif columns:
            self.texts.append("(" + " OR ".join(self._all_of(columns, b) for b in bindings) + ")")

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
