"""FROM clauses resolved: every item becomes a table named by its source's id, USING and NATURAL become ON.

Called by `names.py`, which it calls back for queries and expressions inside.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from mediator.catalog.model import Relation
from mediator.errors import UnknownColumn, Unsupported
from mediator.query.scope import (
    Scope,
    Source,
    column_of,
    find_relation,
    named,
    renamed,
    unique,
    unknown_relation,
)
from mediator.query.trees import Name, position_of
from mediator.query.upright import is_parenthesis

if TYPE_CHECKING:
    from mediator.query.names import Names


def resolve_from(names: Names, select: exp.Select, scope: Scope) -> None:
    clause = select.args.get("from_")
    if clause is None:
        return
    joins = select.args.get("joins") or []
    clause.set("this", _joined(names, clause.this, joins, scope))


def is_comma(join: exp.Join) -> bool:
    """`FROM a, b`: binds less than JOIN does."""
    return not any(join.args.get(k) for k in ("on", "using", "side", "kind", "method"))


def _joined(names: Names, first: exp.Expr, joins: list[exp.Join], scope: Scope) -> exp.Expr:
    """Resolves a list of joins; what comes back stands for the first item."""
    start = len(scope.sources)
    put = _item(names, first, scope)
    for join in joins:
        middle = len(scope.sources)
        join.set("this", _item(names, join.this, scope))
        if is_comma(join):
            start = middle
            continue
        _condition(names, join, scope, slice(start, middle), slice(middle, None))
        if join.kind in ("SEMI", "ANTI"):
            del scope.sources[middle:]
    return put


def _item(names: Names, item: exp.Expr, scope: Scope) -> exp.Expr:
    alias = item.args.get("alias")
    name = str(alias.name) if alias is not None else ""
    renames = [c.name for c in alias.args.get("columns") or ()] if alias is not None else []
    if is_parenthesis(item):
        return _parenthesis(names, item, name, scope)
    if isinstance(item, exp.Table) and isinstance(item.this, exp.Identifier):
        source = _named_source(names, item, name, renames, scope)
    else:
        source = _derived(names, item, name, renames, scope)
    names.sources[source.id] = source
    scope.sources.append(source)
    return exp.Table(this=exp.to_identifier(source.id, quoted=True))


def _parenthesis(names: Names, item: exp.Expr, name: str, scope: Scope) -> exp.Expr:
    inner = item.this
    joins = inner.args.get("joins") or []
    if name and (joins or inner.args.get("alias") or not _is_one(inner)):
        message = "an alias for a parenthesised join is not supported"
        raise Unsupported(message, sql=names.sql, position=position_of(item))
    if name:
        inner.set("alias", exp.TableAlias(this=exp.to_identifier(name)))
    inner.set("joins", None)
    holder = Scope(scope.parent, scope.ctes)
    table = _joined(names, inner, joins, holder)
    table.set("joins", joins)
    scope.sources += holder.sources
    scope.hidden |= holder.hidden
    scope.merged.update(holder.merged)
    scope.stands.update(holder.stands)
    return exp.Subquery(this=table)


def _is_one(item: exp.Expr) -> bool:
    """Whether brackets, if there are any, hold a single item."""
    return not is_parenthesis(item) or (not item.this.args.get("joins") and _is_one(item.this))


def _named_source(names: Names, item: exp.Table, name: str, renames: list[str], scope: Scope) -> Source:
    position = position_of(item.this)
    cte = None if item.db else scope.ctes.get(item.name.lower())
    if cte is not None:
        columns = renamed(cte.columns, renames)
        return Source(names.fresh(name or item.name), name or item.name, columns, cte=cte, position=position)
    relation = None if item.db else find_relation(names.catalog, item.name)
    if relation is None:
        raise unknown_relation(names.catalog, item.sql("duckdb", comments=False), names.sql, position)
    if renames:
        return _renamed_relation(names, relation, name, renames, position)
    columns = tuple(f.name for f in relation.fields)
    wish = name or relation.name
    return Source(names.fresh(wish), wish, columns, relation=relation, position=position)


def _renamed_relation(
    names: Names, relation: Relation, name: str, renames: list[str], position: int | None
) -> Source:
    """`books AS b(x, y)`: a derived table that renames."""
    fields = [f.name for f in relation.fields]
    source = Source(names.fresh(name), name, tuple(fields), relation=relation, position=position)
    names.sources[source.id] = source
    columns = renamed(fields, renames)
    items: list[exp.Expr] = [named(source.read(f), c) for f, c in zip(fields, columns, strict=True)]
    table = exp.Table(this=exp.to_identifier(source.id, quoted=True))
    query = exp.Select(expressions=items, from_=exp.From(this=table))
    return Source(names.fresh(name), name, columns, query=query, position=position)


def _derived(names: Names, item: exp.Expr, name: str, renames: list[str], scope: Scope) -> Source:
    """A sub-query, VALUES or a table function; it may read the items before it (LATERAL)."""
    position = position_of(item)
    body = item.this if isinstance(item, (exp.Subquery, exp.Lateral)) else item
    if isinstance(item, exp.Subquery) and item.args.get("with_"):
        body.set("with_", item.args["with_"])
    around = Scope(scope.parent, scope.ctes, list(scope.sources), scope.merged, scope.stands, scope.hidden)
    if isinstance(body, (exp.Select, exp.SetOperation, exp.Subquery, exp.Values)):
        body.set("alias", None)
        columns = names.resolve(body, around, scope.ctes)
    else:
        body, columns = _table_function(names, body, renames, around)
    wish = name or "derived"
    return Source(names.fresh(wish), wish, renamed(unique(columns), renames), query=body, position=position)


def _table_function(
    names: Names, call: exp.Expr, renames: list[str], scope: Scope
) -> tuple[exp.Expr, list[str]]:
    """`range(...)` and `unnest(...)` as a query over themselves."""
    if call.args.get("offset"):
        message = "WITH ORDINALITY is not supported: unnest a list of {'n': ..., 'value': ...} instead"
        raise Unsupported(message, sql=names.sql, position=position_of(call))
    call.set("alias", None)
    names.expression(call, scope, "select")
    inner = call.this if isinstance(call, exp.Table) else call
    label = "unnest" if isinstance(inner, exp.Unnest) else "range"
    if isinstance(inner, exp.GenerateSeries) and not inner.args.get("is_end_exclusive"):
        label = "generate_series"
    call.set("alias", exp.TableAlias(this=exp.to_identifier("t"), columns=[exp.to_identifier("v")]))
    item = named(exp.column("v"), label)
    return exp.Select(expressions=[item], from_=exp.From(this=call)), [label]


def _condition(names: Names, join: exp.Join, scope: Scope, left: slice, right: slice) -> None:
    """ON resolved, or made from the columns that both sides share."""
    shared = [i.name for i in join.args.get("using") or ()]
    if join.method == "NATURAL":
        shared = _in_both(scope, left, right)
        join.set("method", None)
    join.set("using", None)
    if shared:
        equalities = [_merged(names, join, name, scope, left, right) for name in shared]
        join.set("on", exp.and_(*equalities, copy=False, wrap=False))
    elif join.args.get("on") is not None:
        names.expression(join, scope, "where", only="on")


def _in_both(scope: Scope, left: slice, right: slice) -> list[str]:
    have = {c.lower() for s in scope.sources[left] for c in s.columns}
    return [c for s in scope.sources[right] for c in s.columns if c.lower() in have]


def _merged(names: Names, join: exp.Join, name: str, scope: Scope, left: slice, right: slice) -> exp.Expr:
    """The equality that a USING column stands for. From here on the plain name means both columns at once."""
    place, there = (_place(names, name, scope, scope.sources[side]) for side in (left, right))
    mine, theirs = (scope.stands.get(p) or column_of(*p) for p in (place, there))
    if join.kind in ("SEMI", "ANTI"):
        return exp.EQ(this=mine.copy(), expression=theirs.copy())
    scope.hidden |= {(s.id, c) for s in scope.sources[right] for c in s.columns if c.lower() == name.lower()}
    value = mine
    if join.side == "RIGHT":
        value = theirs
    elif join.side == "FULL":
        value = exp.Coalesce(this=mine.copy(), expressions=[theirs.copy()])
    scope.merged[name.lower()] = scope.stands[place] = value
    return exp.EQ(this=mine.copy(), expression=theirs.copy())


def _place(names: Names, name: str, scope: Scope, side: list[Source]) -> Name:
    """The column that a USING name means on one side; what it stands for may be others' values as well."""
    for source in side:
        column = source.column(name)
        if column is not None and (source.id, column) not in scope.hidden:
            return source.id, column
    raise UnknownColumn(f"USING needs {name!r} on both sides", sql=names.sql)
