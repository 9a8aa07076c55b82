"""The whole statement, put before DuckDB over empty relations: is it sound, and what are its columns
called?

All that SQL can get wrong short of what it means (`names.py`) is found here, and told in this engine's own
errors.
"""

from __future__ import annotations

import duckdb
from sqlglot import exp

from mediator.catalog.model import Catalog, Field
from mediator.errors import QueryError, TypeMismatch, UnknownColumn, Unparsable, Unsupported
from mediator.query import duck
from mediator.query.parameters import Parameters, given
from mediator.query.scope import find_relation, near_columns, unknown_relation
from mediator.query.trees import position_of


def check(statement: exp.Expr, sql: str, catalog: Catalog, parameters: Parameters) -> list[str]:
    """The names of the answer's columns, as DuckDB gives them. Raises what is wrong."""
    schemas = {t.name: t for t in _tables(statement, sql, catalog)}
    relations = {n: r.schema for n, t in schemas.items() if (r := find_relation(catalog, t.name)) is not None}
    try:
        if duck.count(sql) != 1:
            raise Unsupported("one statement at a time", sql=sql)
        return duck.names(sql, relations, given(parameters))
    except duckdb.Error as error:
        raise _told(duck.fault(error, sql), statement, sql, catalog) from None


def _tables(statement: exp.Expr, sql: str, catalog: Catalog) -> list[exp.Table]:
    """Every relation named in the statement; those that are WITH entries are left out."""
    entries = {c.alias.lower() for c in statement.find_all(exp.CTE)}
    found = []
    for table in statement.find_all(exp.Table):
        if not isinstance(table.this, exp.Identifier):
            continue
        if table.db:
            raise unknown_relation(catalog, table.sql("duckdb"), sql, position_of(table))
        if find_relation(catalog, table.name) is not None:
            found.append(table)
        elif table.name.lower() not in entries:
            raise unknown_relation(catalog, table.name, sql, position_of(table.this))
    return found


def _told(fault: duck.Fault, statement: exp.Expr, sql: str, catalog: Catalog) -> QueryError:
    first = fault.message.split("\n")[0]
    if fault.subtype == "COLUMN_NOT_FOUND":
        columns = [f.name for t in _tables(statement, sql, catalog) for f in _fields(catalog, t.name)]
        hint = near_columns(fault.name, columns)
        return UnknownColumn(
            f"there is no column {fault.name!r} here", sql=sql, position=fault.position, hint=hint
        )
    if first.startswith("Ambiguous reference to column"):
        return UnknownColumn(first, sql=sql, position=fault.position)
    if "does not have a column named" in first or "not found in FROM clause" in first:
        return UnknownColumn(first, sql=sql, position=fault.position)
    if fault.kind in ("Parser", "Syntax"):
        return Unparsable(first, sql=sql, position=fault.position)
    if fault.kind in ("Binder", "Conversion", "Catalog", "Invalid Type", "Out of Range", "Mismatch Type"):
        return TypeMismatch(first, sql=sql, position=fault.position, hint=_rest(fault.message))
    return Unsupported(first, sql=sql, position=fault.position)


def _fields(catalog: Catalog, name: str) -> list[Field]:
    relation = find_relation(catalog, name)
    return list(relation.fields) if relation is not None else []


def _rest(message: str) -> str:
    return " ".join(message.split("\n")[1:]).strip()
