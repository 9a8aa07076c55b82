"""ORDER BY ... LIMIT k over plain columns of one stage: an answer that may be certain before all rows have come."""

from __future__ import annotations

from sqlglot import exp

from mediator.query.model import Top
from mediator.query.trees import plain


def top_of(order: exp.Order, limit: int) -> Top | None:
    """By which columns, and how many. None where a key is an expression, or NULLs do not come last."""
    keys: list[tuple[str, bool]] = []
    for item in order.expressions:
        column = plain(item.this)
        if column is None or item.args.get("nulls_first") or item.args.get("with_fill"):
            return None
        keys.append((column.name, bool(item.args.get("desc"))))
    return Top(tuple(keys), limit) if keys and limit > 0 else None
