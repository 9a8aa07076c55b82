"""The wrapper of a database's table: bindings become a statement, its rows a page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

import pyarrow as pa

from mediator.catalog.bindfields import parted
from mediator.catalog.model import Field
from mediator.catalog.statement import Result, Row, Statement
from mediator.catalog.wrapper import Binding, Page, Reply, Request
from mediator.errors import Refused, SchemaChanged, Unreadable
from wrappers.sql.ranges import alike
from wrappers.sql.table import Asked, Table, Term
from wrappers.sql.values import from_database

PAGE = 2_000  # rows: read and typed within a few milliseconds
UNPAGED = 100_000  # rows that come at once where there is no key to tell pages by


@dataclass(frozen=True)
class SqlWrapper:
    """Reads a table in the order of its key, page by page, each with a statement of its own.

    So nothing is kept at the database between two pages: one that failed is simply asked again. A row that
    stays as it is while pages are read comes exactly once. Rows with a NULL in the key come last, by themselves,
    unless the first page has everything.
    """

    relation: str
    fields: tuple[Field, ...]
    table: Table  # its first columns are those of the fields, in their order; then those of the key
    columns: Mapping[str, str]  # by field
    page: int = PAGE
    empty_statuses: frozenset[int] = frozenset()

    @property
    def limit(self) -> int:
        return self.page if self.table.key else UNPAGED + 1

    def request(self, bind_set: tuple[str, ...], bindings: Sequence[Binding]) -> Statement:
        return self.table.matching(self._asked(bind_set, bindings), self.limit)

    def read(
        self, request: Request, bind_set: tuple[str, ...], bindings: Sequence[Binding], reply: Reply
    ) -> Page:
        if not isinstance(reply, Result) or not isinstance(request, Statement):
            raise Refused(f"{self.relation}: not the rows of a database: its source is none")
        asked = self._asked(bind_set, bindings, request.unbounded)
        if otherwise := self._otherwise(asked, reply):
            asked = replace(asked, unbounded=(*asked.unbounded, *otherwise))
            return Page(self._rows(()), (self.table.matching(asked, self.limit),))
        first = request == self.table.matching(asked, self.limit)
        keyless = bool(self.table.key) and request == self.table.keyless(asked, UNPAGED + 1)
        self._check(reply, keyless)
        if keyless or not self.table.key or (first and len(reply.rows) < self.page):
            return Page(self._rows(reply.rows))
        # Rows without a key come by themselves, at the end.
        rows = tuple(row for row in reply.rows if None not in self._key(row))
        begun = first or request == self.table.following(asked, (), self.page)
        fresh = self._fresh(rows, () if begun else request.parameters[-len(self.table.key) :])
        if len(reply.rows) < self.page:
            return Page(self._rows(fresh), (self.table.keyless(asked, UNPAGED + 1),))
        last = self._key(rows[-1]) if rows else ()
        return Page(self._rows(fresh), (self.table.following(asked, last, self.page),))

    def _asked(
        self, bind_set: tuple[str, ...], bindings: Sequence[Binding], unbounded: tuple[str, ...] = ()
    ) -> Asked:
        types = {field.name: field.type for field in self.fields}
        named = map(parted, bind_set)
        terms = [Term(self.columns[field], operator, types[field]) for field, operator in named]
        return Asked(terms, bindings, unbounded)

    def _otherwise(self, asked: Asked, reply: Result) -> tuple[str, ...]:
        """The columns with bounds that this database does not compare as the engine does: it has to be asked
        without those. What they are is only told with the rows."""
        kinds = dict(zip(self.table.columns, reply.kinds, strict=False))
        found = {
            term.column
            for _, term in asked.ranged
            if term.column in kinds and not alike(self.table.dialect, term.type, kinds[term.column])
        }
        return tuple(sorted(found))

    def _key(self, row: Row) -> Row:
        return row[len(self.fields) :]

    def _fresh(self, rows: Sequence[Row], last: Row) -> Sequence[Row]:
        """Without the row that the page before ended with. Raises `SchemaChanged` for two rows with one key."""
        last, *keys = _comparable([last, *map(self._key, rows)])
        if len(set(keys)) < len(keys):
            twice = next(key for key, times in Counter(keys).items() if times > 1)
            raise SchemaChanged(
                f"{self.relation}: two rows have the key {twice!r}: declare a 'key' that is unique"
            )
        return rows[1:] if keys and keys[0] == last else rows

    def _check(self, reply: Result, keyless: bool) -> None:
        if (keyless or not self.table.key) and len(reply.rows) > UNPAGED:
            what = "without a value in the key" if keyless else "and no key to read them in pages by"
            raise Unreadable(
                f"{self.relation}: more than {UNPAGED:,} rows {what}: declare a 'key' of columns that are never NULL"
            )

    def _rows(self, rows: Sequence[Row]) -> pa.RecordBatch:
        columns = list(zip(*rows, strict=True)) or [()] * len(self.fields)
        arrays = [
            from_database(self.table.dialect, self.relation, field, column)
            for field, column in zip(self.fields, columns, strict=False)
        ]
        return pa.RecordBatch.from_arrays(
            arrays, schema=pa.schema([pa.field(f.name, f.type) for f in self.fields])
        )


def _comparable(keys: list[Row]) -> list[Row]:
    """NaN, which to a database is one value, equals itself."""
    if any(isinstance(value, float | Decimal) for value in keys[-1]):
        return [tuple("NaN" if value != value else value for value in key) for key in keys]
    return keys
