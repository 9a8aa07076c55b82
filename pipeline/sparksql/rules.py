"""The list of what is agreed on: a kind of node of sqlglot's, what may stand in it, and the function that writes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from sqlglot import exp

from pipeline.sparksql.errors import NotAgreed
from pipeline.sparksql.kinds import Piece


class Writer(Protocol):
    """Writes the expressions of one SELECT."""

    def piece(self, node: exp.Expr) -> Piece: ...

    def query(self, node: exp.Expr) -> tuple[str, tuple[str, ...]]:
        """Of a query within an expression: its text, with columns c0, c1, ..., and their types."""
        ...

    def window(self, name: str) -> exp.Window:
        """That was defined by this name."""
        ...


Rule = Callable[[Writer, Any], Piece]
AggregateRule = Callable[[Writer, Any, str], Piece]

RULES: dict[type[exp.Expr], tuple[frozenset[str], Rule]] = {}
# Functions that sqlglot has no kind for, by their names.
CALLS: dict[str, tuple[int, Rule]] = {}
# With what follows the call: FILTER, or OVER.
AGGREGATES: dict[type[exp.Expr], tuple[frozenset[str], AggregateRule]] = {}
# Said by the parser of a node, and of no consequence here.
_SAID = frozenset({"big_int", "safe", "typed", "coalesce", "ignore_nulls", "date_part_boundary", "over"})


def rule(kind: type[exp.Expr], *args: str) -> Callable[[Rule], Rule]:
    def add(function: Rule) -> Rule:
        RULES[kind] = frozenset(args), function
        return function

    return add


def aggregate(kind: type[exp.Expr], *args: str) -> Callable[[AggregateRule], AggregateRule]:
    def add(function: AggregateRule) -> AggregateRule:
        AGGREGATES[kind] = frozenset(args), function
        return function

    return add


def check(node: exp.Expr, allowed: frozenset[str]) -> None:
    """Nothing is overlooked that a statement says."""
    more = sorted(
        name
        for name, value in node.args.items()
        if value not in (None, False, []) and name not in allowed | _SAID
    )
    if more:
        raise NotAgreed(f"{what(node)} with {', '.join(more)}")


def what(node: exp.Expr) -> str:
    """For people."""
    if isinstance(node, exp.Anonymous):
        return f"{node.name.lower()}(...)"
    return f"{node.sql_name().lower()}(...)" if isinstance(node, exp.Func) else node.key.upper()
