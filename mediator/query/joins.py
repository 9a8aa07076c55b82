"""A FROM clause as a tree, and the tree as steps.

Every tree comes down to a run of inner joins, each of whose conditions is a filter, and outer joins in
between that only widen what is there:

- a RIGHT JOIN b is b LEFT JOIN a.
- a JOIN (b LEFT JOIN c ON p) ON q is (a JOIN b) LEFT JOIN c ON p, filtered by q.
- a SEMI JOIN b ON p is a, filtered by EXISTS (b filtered by p).
- a FULL JOIN b needs both sides whole: nothing from outside may filter them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from mediator.errors import Unsupported
from mediator.query.conjuncts import split, together
from mediator.query.sources import is_comma
from mediator.query.trees import position_of


@dataclass(frozen=True, eq=False, slots=True)
class Leaf:
    source: str


@dataclass(frozen=True, eq=False, slots=True)
class Inner:
    left: Tree
    right: Tree
    on: list[exp.Expr]


@dataclass(frozen=True, eq=False, slots=True)
class Left:
    left: Tree
    right: Tree
    on: list[exp.Expr]


@dataclass(frozen=True, eq=False, slots=True)
class Full:
    left: Tree
    right: Tree
    on: list[exp.Expr]


Tree = Leaf | Inner | Left | Full


@dataclass(frozen=True, eq=False, slots=True)
class Widen:
    """LEFT JOIN of what is there with a tree of its own."""

    tree: Tree
    on: list[exp.Expr]


@dataclass(slots=True)
class Steps:
    """Inner items and widenings in the order of the text, and the filters that inner joins stand for."""

    items: list[Leaf | Full | Widen] = field(default_factory=list)
    filters: list[exp.Expr] = field(default_factory=list)


def tree_of(select: exp.Select, sql: str) -> Tree:
    """The tree of a FROM clause. The filters that SEMI and ANTI JOIN stand for go to the select's WHERE."""
    clause = select.args["from_"]
    filters: list[exp.Expr] = []
    tree = _tree(clause.this, select.args.get("joins") or [], filters, sql)
    if filters:
        where = select.args.get("where")
        everything = together([*split(where.this if where else None), *filters])
        select.set("where", exp.Where(this=everything))
    return tree


def steps_of(tree: Tree) -> Steps:
    """A tree as steps: all the inner items of its spine, and the outer joins where they stand."""
    steps = Steps()
    _linear(tree, steps)
    return steps


def sources_of(tree: Tree) -> set[str]:
    if isinstance(tree, Leaf):
        return {tree.source}
    return sources_of(tree.left) | sources_of(tree.right)


def _linear(tree: Tree, steps: Steps) -> None:
    match tree:
        case Leaf() | Full():
            steps.items.append(tree)
        case Inner():
            _linear(tree.left, steps)
            _linear(tree.right, steps)
            steps.filters += tree.on
        case Left():
            _linear(tree.left, steps)
            steps.items.append(Widen(tree.right, tree.on))


def _tree(first: exp.Expr, joins: list[exp.Join], filters: list[exp.Expr], sql: str) -> Tree:
    """Commas part a FROM clause before joins do."""
    done: Tree | None = None
    here = _item(first, filters, sql)
    for join in joins:
        right = _item(join.this, filters, sql)
        if is_comma(join):
            done = here if done is None else Inner(done, here, [])
            here = right
        else:
            here = _joined(here, right, join, filters, sql)
    return here if done is None else Inner(done, here, [])


def _item(item: exp.Expr, filters: list[exp.Expr], sql: str) -> Tree:
    if isinstance(item, exp.Subquery):
        inner: list[exp.Expr] = []
        tree = _tree(item.this, item.this.args.get("joins") or [], inner, sql)
        if inner:
            raise Unsupported("SEMI and ANTI JOIN in brackets are not supported", sql=sql)
        return tree
    return Leaf(item.name)


def _joined(left: Tree, right: Tree, join: exp.Join, filters: list[exp.Expr], sql: str) -> Tree:
    if join.method:
        raise Unsupported(f"{join.method} JOIN is not supported", sql=sql, position=position_of(join))
    on = split(join.args.get("on"))
    if join.kind in ("SEMI", "ANTI"):
        exists = _exists(join)
        filters.append(exists if join.kind == "SEMI" else exp.Not(this=exists))
        return left
    match join.side:
        case "LEFT":
            return Left(left, right, on)
        case "RIGHT" | "FULL" if filters:
            raise Unsupported(f"a {join.side} JOIN after a SEMI or ANTI JOIN is not supported", sql=sql)
        case "RIGHT":
            return Left(right, left, on)
        case "FULL":
            return Full(left, right, on)
    return Inner(left, right, on)


def _exists(join: exp.Join) -> exp.Exists:
    one = exp.Alias(this=exp.Literal.number(1), alias=exp.to_identifier("one", quoted=True))
    query = exp.Select(expressions=[one], from_=exp.From(this=join.this))
    if join.args.get("on") is not None:
        query.set("where", exp.Where(this=join.args["on"]))
    return exp.Exists(this=query)
