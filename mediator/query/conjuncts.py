"""Conditions taken apart: a WHERE as a list of conjuncts, each as simple as it can be made."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from mediator.query.trees import collates, is_constant, is_volatile, plain, why_costly

_ROW = "row"
_FLOATS = {"DOUBLE", "FLOAT"}
_FEW = 7


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
    # A sub-query that is a condition by itself is none to the parser.
    parts = [exp.Paren(this=c) if isinstance(c, exp.Query) else c for c in conjuncts]
    return exp.and_(*parts, copy=False) if parts else None


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
    if collates(node) or _mixed_ends(node):  # all three have one collation, and one type
        return None
    low = exp.GTE(this=node.this.copy(), expression=node.args["low"])
    return [low, exp.LTE(this=node.this.copy(), expression=node.args["high"])]


def _mixed_ends(node: exp.Between) -> bool:
    """Whether something in it has the type of what it is not compared with itself: text, or a number beside a float."""
    ends = [node.args["low"], node.args["high"]]
    texts = [is_text(end) for end in ends]
    if any(texts) != all(texts) or is_text(node.this):
        return True
    return any(_sort(end) in _FLOATS for end in ends) and not _of_one_sort(ends)


def is_text(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and node.is_string


def _rows(node: exp.Expr) -> list[exp.Expr] | None:
    """(a, b) = (c, d) is a = c AND b = d, but that a NULL in a row equals a NULL, and that text in it stays text."""
    if not isinstance(node, exp.EQ):
        return None
    left, right = node.left, node.right
    if not (isinstance(left, exp.Tuple) and isinstance(right, exp.Tuple)):
        return None
    if len(left.expressions) != len(right.expressions):
        return None
    pairs = zip(left.expressions, right.expressions, strict=True)
    return [_pair(a, b) for a, b in pairs]


def _pair(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    if is_text(left) != is_text(right):
        one, text = (right, left) if is_text(left) else (left, right)
        return exp.EQ(this=_row(one), expression=_row(text))
    one_is_known = is_value(left) or is_value(right)
    return (exp.EQ if one_is_known else exp.NullSafeEQ)(this=left, expression=right)


def _row(value: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=_ROW, expressions=[value])


def in_row(node: exp.Expr) -> exp.Expr | None:
    """What is alone in a row."""
    alone = isinstance(node, exp.Anonymous) and node.name.lower() == _ROW and len(node.expressions) == 1
    return node.expressions[0] if alone else None


def is_value(node: exp.Expr) -> bool:
    """Whether it is certainly not NULL."""
    while isinstance(node, (exp.Paren, exp.Neg)) or type(node) is exp.Cast:
        node = node.this
    return isinstance(node, (exp.Literal, exp.Boolean))


def one_of(node: exp.Expr) -> tuple[exp.Expr, list[exp.Expr]] | None:
    """What is compared with each expression of a list, and the list, in whichever way this is written: x IN (1, 2),
    x IN [1, 2], x IN (VALUES (1), (2)), x = ANY ([1, 2]), list_contains([1, 2], x)."""
    if isinstance(node, exp.ArrayContains):
        return _in_list(node.expression, node.this)
    if isinstance(node, exp.EQ) and isinstance(node.expression, exp.Any):
        return _in_list(node.left, node.expression.this)
    if not isinstance(node, exp.In):
        return None
    # A list in brackets is one value, and what is compared with it a list too.
    alone = node.expressions[0] if len(node.expressions) == 1 else None
    among = alone if isinstance(alone, exp.Values) else node.args.get("field")
    return _in_list(node.this, among) or (node.this, node.expressions)


def _in_list(value: exp.Expr, among: exp.Expr | None) -> tuple[exp.Expr, list[exp.Expr]] | None:
    # With LIMIT or the like it is another list.
    while isinstance(among, (exp.Paren, exp.Subquery)) and not any(
        v for k, v in among.args.items() if k != "this"
    ):
        among = among.this
    if isinstance(among, exp.Array):
        return value, among.expressions
    if not isinstance(among, exp.Values):
        return None
    rows = among.expressions
    if not all(isinstance(row, exp.Tuple) for row in rows):
        return None
    single = not isinstance(value, exp.Tuple)
    if single and any(len(row.expressions) != 1 for row in rows):
        return None
    return value, [row.expressions[0] if single else row for row in rows]


def _choices(node: exp.Expr) -> list[exp.Expr] | None:
    """x = 1 OR x = 2 OR x IN (3, 4) is x IN (1, 2, 3, 4)."""
    if not isinstance(node, exp.Or) or collates(node):
        return None
    found = [_choice(part) for part in node.flatten()]
    columns = {c[0] for c in found if c is not None}
    if None in found or len(columns) != 1:
        return None
    values = [v.copy() for c in found if c is not None for v in c[1]]
    if not _of_one_sort(values):  # each has a type of its own, and a list has one
        return None
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


def _of_one_sort(values: list[exp.Expr]) -> bool:
    """Whether no type of one of them is forced upon another, as far as can be seen."""
    sorts = {_sort(value) for value in values} - {"", "null"}
    if sorts - {"number", *_FLOATS} or not sorts & _FLOATS:
        return len(sorts) < 2
    # Whole numbers with as few digits are each a float of its own.
    return all(len(str(v.this)) <= _FEW for v in values if isinstance(v, exp.Literal))


def _sort(value: exp.Expr) -> str:
    """Empty where there is nothing to be seen."""
    inner = value.this if isinstance(value, exp.Neg) else value
    if isinstance(inner, exp.Literal):
        if not inner.is_string and "e" in str(inner.this).lower():
            return "DOUBLE"
        return "text" if inner.is_string else "number"
    if isinstance(value, exp.Cast):
        return str(value.to.sql("duckdb"))
    return "null" if isinstance(value, exp.Null) else ""


Rule = Callable[[exp.Expr], list[exp.Expr] | None]
RULES: tuple[Rule, ...] = (_conjunction, _negation, _between, _rows, _choices)
