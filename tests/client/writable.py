"""The DB-API driver with tables that can be written, for suites that write before they read.

What is inserted is kept here, as text and parameters; a SELECT over such a table goes to the server with the rows in
its place, as VALUES. So everything but the writing itself is the driver's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, Self

from api.client import dbapi
from api.client.parameters import Parameters

_CREATE = re.compile(r"create table (\w+) \((.*)\)", re.IGNORECASE)
_DROP = re.compile(r"drop table (\w+)", re.IGNORECASE)
_INSERT = re.compile(r"insert into (\w+) values (\(.*\))", re.IGNORECASE)
_FROM = re.compile(r"from (\w+)", re.IGNORECASE)

# By name: the columns, and what was inserted with which parameters.
Tables = dict[str, tuple[list[str], list[tuple[str, list[Any]]]]]


class Connection(dbapi.Connection):
    tables: Tables

    def cursor(self) -> Cursor:
        made = Cursor(self.client, self, self._whole, self._options)
        made.tables = self.tables
        return made


class Cursor(dbapi.Cursor):
    tables: Tables

    def execute(self, operation: str, parameters: Parameters | None = None) -> Self:
        given = list(parameters or ())
        if found := _CREATE.fullmatch(operation):
            names = [column.split()[0] for column in found[2].split(", ")]
            return self._written(lambda: self.tables.__setitem__(found[1], (names, [])))
        if found := _DROP.fullmatch(operation):
            return self._written(lambda: self.tables.pop(found[1], None))
        if found := _INSERT.fullmatch(operation):
            return self._written(lambda: self.tables[found[1]][1].append((found[2], given)))
        return self._read(operation)

    def executemany(self, operation: str, seq_of_parameters: Sequence[Parameters]) -> Self:  # type: ignore[override]
        for parameters in seq_of_parameters:
            self.execute(operation, parameters)
        return self

    def _written(self, work: Any) -> Self:
        self._open()
        self._leave()
        work()
        return self

    def _read(self, operation: str) -> Self:
        name = _FROM.findall(operation)[0]
        columns, rows = self.tables[name]
        values = ", ".join(text for text, _ in rows) or f"({', '.join(['NULL::VARCHAR'] * len(columns))})"
        nothing = "" if rows else " WHERE false"
        table = f"(SELECT * FROM (VALUES {values}) AS v({', '.join(columns)}){nothing}) AS {name}"
        parameters = [parameter for _, given in rows for parameter in given]
        return super().execute(operation.replace(f"from {name}", f"FROM {table}"), parameters)


def driver() -> SimpleNamespace:
    """Like the module, with tables of its own."""
    tables: Tables = {}

    def connect(*arguments: Any, **more: Any) -> Connection:
        plain = dbapi.connect(*arguments, **more)
        made = Connection(plain.client, False, {})
        made.tables = tables
        return made

    return SimpleNamespace(**{**vars(dbapi), "connect": connect})
