"""The whole statement, put before DuckDB over empty relations: is it sound, and what are its columns
called?

All that SQL can get wrong short of what it means (`names.py`) is found here, and told in this engine's own
errors.
"""

from __future__ import annotations

import re

import duckdb
from sqlglot import exp

from mediator.catalog.delay import DELAY
from mediator.catalog.model import Catalog, Field
from mediator.errors import (
    QueryError,
    TypeMismatch,
    UnknownColumn,
    UnknownRelation,
    Unparsable,
    Unsupported,
)
from mediator.query import duck
from mediator.query.functions import stubs
from mediator.query.parameters import Parameters, given
from mediator.query.scope import find_relation, near_columns, unknown_relation
from mediator.query.simple import column_names
from mediator.query.trees import position_of
from mediator.statements.database import NotOne


def check(statement: exp.Expr, sql: str, catalog: Catalog, parameters: Parameters) -> list[str]:
    """The names of the answer's columns, as DuckDB gives them. Raises what is wrong."""
    simple = column_names(statement, sql, catalog)
    if simple is not None:
        return simple
    schemas = {t.name: t for t in _tables(statement, sql, catalog)}
    relations = {n: r.schema for n, t in schemas.items() if (r := find_relation(catalog, t.name)) is not None}
    try:
        return duck.names(sql, relations, given(parameters), stubs(catalog.functions))
    except NotOne:
        raise Unsupported("one statement at a time", sql=sql) from None
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
    """DuckDB's complaint as one of this engine's errors."""
    first, hint = fault.message.split("\n")[0], _rest(fault.message)
    missing = re.search(r'does not have a column named "(.*)"', first)
    if fault.subtype == "COLUMN_NOT_FOUND" or missing:
        name = missing[1] if missing else fault.name
        columns = [f.name for t in _tables(statement, sql, catalog) for f in _fields(catalog, t.name)]
        message, hint = f"there is no column {name!r} here", near_columns(name, columns)
        return UnknownColumn(message, sql=sql, position=fault.position, hint=hint)
    if re.search(rf"Function with name {DELAY.name} does not exist", first):
        hint = "it makes a query slow on purpose, for experiments: a catalog has it where its owner says so"
    return _kind(fault, first)(first, sql=sql, position=fault.position, hint=hint)


def _kind(fault: duck.Fault, message: str) -> type[QueryError]:
    if re.match(r"Ambiguous reference to column|Column .* not found|.* not found in FROM clause", message):
        return UnknownColumn
    if re.match(r"Referenced table .* not found", message):
        return UnknownRelation
    if fault.kind in ("Parser", "Syntax"):
        return Unparsable
    if fault.subtype == "NO_MATCHING_FUNCTION" or fault.kind in _TYPE_FAULTS or _TYPE_WORDS.search(message):
        return TypeMismatch
    # Not of a kind that has a name here: an aggregate in WHERE, a column that is not grouped by.
    return Unsupported if fault.kind == "Catalog" else QueryError


_TYPE_FAULTS = {"Conversion", "Invalid Type", "Out of Range", "Mismatch Type"}
_TYPE_WORDS = re.compile(r"Cannot (compare|mix|combine|cast)|values of type|same number of result columns")


def _fields(catalog: Catalog, name: str) -> list[Field]:
    relation = find_relation(catalog, name)
    return list(relation.fields) if relation is not None else []


def _rest(message: str) -> str:
    return " ".join(message.split("\n")[1:]).strip()
