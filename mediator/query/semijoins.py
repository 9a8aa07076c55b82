"""`x IN (SELECT ...)` as a join with the sub-query's distinct rows, so that what it finds can be looked up; and
`(x, y) IN ((1, 2), (3, 4))` with those that are listed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from mediator.query.blocks import engine_relation
from mediator.query.clones import cloned
from mediator.query.conjuncts import is_value, one_of
from mediator.query.drafts import Draft, Unit
from mediator.query.rowwise import settle
from mediator.query.scope import column_of
from mediator.query.standing import all_stand
from mediator.query.subqueries import free_names
from mediator.query.trees import (
    collates,
    has_subquery,
    is_volatile,
    name_of,
    names_in,
    plain,
    sources_in,
)
from mediator.query.types import family

if TYPE_CHECKING:
    from mediator.query.plan import Planner


def semi_join(planner: Planner, units: list[Unit], conjunct: exp.Expr) -> tuple[Unit, list[exp.Expr]] | None:
    """The unit to join with these and the equalities to join it under; none if the condition is not of
    this kind, or its sub-query needs more than itself."""
    query = (conjunct.args.get("query") or _listed(conjunct)) if isinstance(conjunct, exp.In) else None
    if query is None or free_names(planner.names, query) or not _can_join(units, conjunct.this):
        return None
    sides = sides_of(conjunct.this)
    mark = len(planner.stages.done)
    unit = _distinct_rows(planner, query)
    collated = planner.stages.collations(unit.relation.name)
    if all_stand(planner.stages.done[mark:]) and not collated and _same_types(planner, units, sides, unit):
        pairs = zip(sides, unit.columns, strict=True)
        return unit, [exp.EQ(this=s, expression=column_of(*n)) for s, n in pairs]
    planner.forget(mark)
    return None


def _listed(conjunct: exp.Expr) -> exp.Values | None:
    """The rows of constants that an IN lists, if it does. By a NULL in one nothing could be looked up."""
    sides, rows = one_of(conjunct) or (None, [])
    if not isinstance(sides, exp.Tuple) or not rows:
        return None
    for row in rows:
        if not isinstance(row, exp.Tuple) or len(row.expressions) != len(sides.expressions):
            return None
        if not all(is_value(value) for value in row.expressions):
            return None
    return exp.Values(expressions=[row.copy() for row in rows])


def sides_of(left: exp.Expr) -> list[exp.Expr]:
    """The expressions on the left of IN."""
    return list(left.expressions) if isinstance(left, exp.Tuple) else [left]


def _can_join(units: list[Unit], left: exp.Expr) -> bool:
    covered = {n[0] for u in units for n in u.columns}
    simple = not (has_subquery(left) or is_volatile(left) or collates(left))
    return simple and all(names_in(s) for s in sides_of(left)) and sources_in(left) <= covered


def _distinct_rows(planner: Planner, query: exp.Expr) -> Unit:
    """A sub-query's distinct rows, as a table to be joined with."""
    body = cloned(planner.names, query)
    planner.query(body)
    while isinstance(body, exp.Subquery) and not _chooses(body):
        body = body.this
    columns = [f"v{n}" for n in range(len(planner.stages.shape_of(body)))]
    if not isinstance(body, exp.Select) or _chooses(body):
        body = _wrapped(body, columns)
    for item, column in zip(body.expressions, columns, strict=True):
        item.set("alias", exp.to_identifier(column, quoted=True))
    body.set("distinct", exp.Distinct())
    name = settle(planner.stages, body, "found")
    schema = planner.stages.schema(name)
    return Unit(name, engine_relation(name, schema), {(name, c): c for c in columns})


def _wrapped(body: exp.Expr, columns: list[str]) -> exp.Select:
    """A query as a derived table, with all its columns selected."""
    alias = exp.TableAlias(
        this=exp.to_identifier("found", quoted=True),
        columns=[exp.to_identifier(c, quoted=True) for c in columns],
    )
    inner = body.this if isinstance(body, exp.Subquery) and not _chooses(body) else body
    items: list[exp.Expr] = [exp.alias_(exp.column(exp.to_identifier(c, quoted=True)), c) for c in columns]
    return exp.Select(expressions=items, from_=exp.From(this=exp.Subquery(this=inner, alias=alias)))


def _same_types(planner: Planner, units: list[Unit], sides: list[exp.Expr], found: Unit) -> bool:
    """Only then are distinct values still distinct where they are compared."""
    draft = Draft(list(units), planner.names.sql)
    for side, column in zip(sides, found.relation.schema, strict=True):
        aliases = draft.aliases_in(side)
        whole = plain(side)
        if whole is not None:
            kind = draft.type_of(draft.where[name_of(whole)])
        elif len(aliases) == 1:
            kind = draft.type_of_expression(side, aliases.pop())
        else:
            return False
        if family(kind) != family(column.type):
            return False
    return True


def _chooses(query: exp.Expr) -> bool:
    """Whether its rows are chosen in a way that DISTINCT in the same place would change."""
    distinct = query.args.get("distinct")
    some = distinct is not None and distinct.args.get("on") is not None
    return some or any(query.args.get(k) for k in ("order", "limit", "offset"))
