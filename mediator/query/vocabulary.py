"""What DuckDB calls things: its own functions, and the columns that have no other name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

import duckdb
import pyarrow as pa

from mediator.query.duck import cursor, installed, run
from mediator.statements.patience import go_on

_ASK = "SELECT json_deserialize_sql(json_serialize_sql(q)) AS label FROM labelled"


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


def labels(expressions: Sequence[str]) -> list[str]:
    """What DuckDB calls columns of a select list that have no names of their own."""
    found = _labels(list(dict.fromkeys(expressions)))
    return [found[expression] for expression in expressions]


def _labels(expressions: list[str]) -> dict[str, str]:
    """All at once: to ask for each one takes longer than all else that is to be found out about a statement. Where one
    of them has none, its halves are asked."""
    if not expressions:
        return {}
    go_on()
    asked = pa.table({"q": [f"SELECT {expression}" for expression in expressions]})
    try:
        told = run(_ASK, {"labelled": asked}, light=True)["label"].to_pylist()
    except duckdb.Error:
        if len(expressions) == 1:
            return {expressions[0]: expressions[0]}
        half = len(expressions) // 2
        return _labels(expressions[:half]) | _labels(expressions[half:])
    return {e: str(text).removeprefix("SELECT ") for e, text in zip(expressions, told, strict=True)}
