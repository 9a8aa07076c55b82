"""What DuckDB calls things: its own functions, and the columns that have no other name."""

from __future__ import annotations

import re
from functools import lru_cache

import duckdb

from mediator.query.duck import cursor, installed


@lru_cache(maxsize=1)
def aggregates() -> frozenset[str]:
    """The names of all aggregate functions, and of the macros that are made of them."""
    rows = cursor().execute("SELECT function_name, function_type, macro_definition FROM duckdb_functions()")
    listed = rows.fetchall()
    found = {name.lower() for name, kind, _ in listed if kind == "aggregate"}
    macros = {name.lower(): _called(body) for name, kind, body in listed if kind == "macro" and body}
    while more := {name for name, calls in macros.items() if name not in found and calls & found}:
        found |= more
    return frozenset(found)


@lru_cache(maxsize=1)
def function_names() -> frozenset[str]:
    """The names of all that DuckDB can call by itself."""
    rows = cursor().execute("SELECT DISTINCT lower(function_name) FROM duckdb_functions()").fetchall()
    return frozenset(name for (name,) in rows if name not in installed())


def _called(definition: str) -> set[str]:
    return {name.lower() for name in re.findall(r"(\w+)\"?\(", definition)}


def label(expression: str) -> str:
    """What DuckDB calls a column of a select list that has no name of its own."""
    quoted = f"SELECT {expression}".replace("'", "''")
    try:
        told = cursor().sql(f"SELECT json_deserialize_sql(json_serialize_sql('{quoted}'))").fetchall()
    except duckdb.Error:
        return expression
    return str(told[0][0]).removeprefix("SELECT ") if told else expression
