"""The clock, read once: a statement runs in many pieces and for a while, and `now()` is one moment in all
of them."""

from __future__ import annotations

from sqlglot import exp

from mediator.query import duck
from mediator.query.parameters import literal
from mediator.query.trees import function_name

_CLOCKS = {
    "now", "today", "current_date", "current_time", "current_timestamp", "current_localtime",
    "current_localtimestamp", "localtime", "localtimestamp", "get_current_time", "get_current_timestamp",
    "transaction_timestamp",
}  # fmt: skip


def steady(statement: exp.Expr) -> None:
    """Puts the moment of the call in place of every reading of the clock."""
    readings = [n for n in statement.find_all(exp.Func) if function_name(n) in _CLOCKS]
    if not readings:
        return
    items = [f"{node.sql('duckdb')} AS c{n}" for n, node in enumerate(readings)]
    moments = duck.run(f"SELECT {', '.join(items)}", {}, light=True).to_pylist()[0]
    for node, moment in zip(readings, moments.values(), strict=True):
        node.replace(literal(moment))
