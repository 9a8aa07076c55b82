"""Conditions taken apart: a WHERE as a list of conjuncts, each as simple as it can be made."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from mediator.query.trees import collates, is_constant, is_volatile, plain, why_costly


def split(condition: exp.Expr | None) -> list[exp.Expr]:
    """Conjuncts that are all TRUE exactly where the condition is."""
    if condition is None:
        return []
    for rule in RULES:
        parts = rule(condition)
        if parts is not None:
            return [c for part in parts for c in split(part)]
    return [condition]


def together(conjuncts: list[exp.Expr]) -> exp.Expr | None:
    return exp.and_(*conjuncts, copy=False) if conjuncts else None


def _conjunction(node: exp.Expr) -> list[exp.Expr] | None:
    if isinstance(node, exp.Paren):
        return [node.this]
    return [node.left, node.right] if isinstance(node, exp.And) else None


def _negation(node: exp.Expr) -> list[exp.Expr] | None:
    """NOT (a OR b) is NOT a AND NOT b; NOT NOT a is a."""
    if not isinstance(node, exp.Not):
        return None
    inner = node.this.unnest()
    if isinstance(inner, exp.Or):
        return [exp.Not(this=exp.Paren(this=inner.left)), exp.Not(this=exp.Paren(this=inner.right))]
    return None


def _between(node: exp.Expr) -> list[exp.Expr] | None:
    if not isinstance(node, exp.Between) or node.args.get("symmetric"):
        return None
    if is_volatile(node.this) or why_costly(node.this):  # to be called once
        return None
    if collates(node):  # one collation is for all three
        return None
    low = exp.GTE(this=node.this.copy(), expression=node.args["low"])
    return [low, exp.LTE(this=node.this.copy(), expression=node.args["high"])]


def _rows(node: exp.Expr) -> list[exp.Expr] | None:
    """(a, b) = (c, d) is a = c AND b = d, but that a NULL in a row equals a NULL."""
    if not isinstance(node, exp.EQ):
        return None
    left, right = node.left, node.right
    if not (isinstance(left, exp.Tuple) and isinstance(right, exp.Tuple)):
        return None
    if len(left.expressions) != len(right.expressions):
        return None
    pairs = zip(left.expressions, right.expressions, strict=True)
    return [
        (exp.EQ if _is_value(a) or _is_value(b) else exp.NullSafeEQ)(this=a, expression=b) for a, b in pairs
    ]


def _is_value(node: exp.Expr) -> bool:
    """Whether it is certainly not NULL."""
    while isinstance(node, (exp.Paren, exp.Neg)) or type(node) is exp.Cast:
        node = node.this
    return isinstance(node, (exp.Literal, exp.Boolean))


def _choices(node: exp.Expr) -> list[exp.Expr] | None:
    """x = 1 OR x = 2 OR x IN (3, 4) is x IN (1, 2, 3, 4)."""
    if not isinstance(node, exp.Or) or collates(node):
        return None
    found = [_choice(part) for part in node.flatten()]
    columns = {c[0] for c in found if c is not None}
    if None in found or len(columns) != 1:
        return None
    values = [v.copy() for c in found if c is not None for v in c[1]]
    first = next(c for c in found if c is not None)
    return [exp.In(this=first[0].copy(), expressions=values)]


def _choice(node: exp.Expr) -> tuple[exp.Column, list[exp.Expr]] | None:
    node = node.unnest()
    if isinstance(node, exp.In) and node.expressions:
        column = plain(node.this)
        constant = all(is_constant(e) for e in node.expressions)
        return (column, node.expressions) if column is not None and constant else None
    if not isinstance(node, exp.EQ):
        return None
    for side, other in ((node.left, node.right), (node.right, node.left)):
        column = plain(side)
        if column is not None and is_constant(other):
            return column, [other]
    return None


Rule = Callable[[exp.Expr], list[exp.Expr] | None]
RULES: tuple[Rule, ...] = (_conjunction, _negation, _between, _rows, _choices)
