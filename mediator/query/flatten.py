"""Derived tables and WITH entries that only select, project and join are merged into the query that reads
them, so that bindings reach through them and their rows stream.

    SELECT q.x FROM (SELECT a + 1 AS x FROM r WHERE b > 0) AS q
becomes
    SELECT r.a + 1 FROM r WHERE r.b > 0
"""

from __future__ import annotations

from sqlglot import exp

from mediator.query.clones import cloned
from mediator.query.conjuncts import split, together
from mediator.query.functions import functions_in
from mediator.query.names import Names
from mediator.query.scope import Source
from mediator.query.subqueries import all_of
from mediator.query.trees import Name, has_subquery, is_aggregate, is_volatile, name_of, plain

_KEEPS = (
    "group",
    "having",
    "qualify",
    "distinct",
    "limit",
    "offset",
    "with_",
    "windows",
    "sample",
    "laterals",
)
_MOST = 60  # relations in one block: a batch's signature is a bit mask


def flatten(names: Names, select: exp.Select) -> None:
    """Merges what can be merged, in place, until nothing more can."""
    while len(_placeholders(select)) < _MOST and any(
        _merged(names, select, t) for t in _placeholders(select)
    ):
        pass


def _placeholders(select: exp.Select) -> list[exp.Table]:
    """The items of the FROM clause itself, brackets not looked into."""
    clause = select.args.get("from_")
    if clause is None:
        return []
    items = [clause.this, *(j.this for j in select.args.get("joins") or [])]
    items += [t for i in items if isinstance(i, exp.Subquery) for t in i.find_all(exp.Table)]
    return [i for i in items if isinstance(i, exp.Table) and isinstance(i.this, exp.Identifier)]


def _merged(names: Names, select: exp.Select, table: exp.Table) -> bool:
    source = names.sources.get(table.name)
    place = _place(select, table)
    query = None if source is None or place is None else _body(source)
    if source is None or query is None or not _simple(query, nullable=place == "nullable"):
        return False
    if source.cte is not None:
        copy = cloned(names, query)
        assert isinstance(copy, exp.Select)
        query = copy
    values = _values(source, query)
    if _repeated(names, select, values):
        return False
    _substitute(names, select, values)
    conjuncts = split(query.args["where"].this) if query.args.get("where") else []
    _add(select, table, conjuncts)
    _put(table, query)
    return True


def _place(select: exp.Select, table: exp.Table) -> str | None:
    """How a FROM item is joined: `inner`, `nullable`, or none where it had better be left alone."""
    if _widens(select) or _widens(table):
        return None
    at: exp.Expr = table
    while isinstance(at.parent, (exp.Subquery, exp.Table, exp.Join)):
        at = at.parent
        if _widens(at):
            return None
        if isinstance(at, exp.Join) and at.kind in ("SEMI", "ANTI"):
            return None
        if isinstance(at, exp.Join) and at.side:
            return "nullable" if at.side == "LEFT" and at.parent is select and at.this is table else None
    top = at.parent.parent if isinstance(at.parent, exp.From) else at.parent
    return "inner" if top is select else None


def _widens(holder: exp.Expr) -> bool:
    """Whether joins that hang from this may add rows of NULLs for what stands before them."""
    return any(j.side in ("RIGHT", "FULL") for j in holder.args.get("joins") or [])


def _body(source: Source) -> exp.Select | None:
    if source.cte is not None:
        whole = not source.cte.materialized and not source.cte.recursive
        body = source.cte.body if whole else None
    else:
        body = source.query
    while isinstance(body, exp.Subquery) and not any(body.args.get(k) for k in ("order", "limit", "offset")):
        body = body.this
    return body if isinstance(body, exp.Select) else None


def _simple(query: exp.Select, nullable: bool) -> bool:
    clause = query.args.get("from_")
    if clause is None or any(query.args.get(k) for k in _KEEPS):
        return False
    items = [clause.this, *(j.this for j in query.args.get("joins") or [])]
    if not all(_known(item) for item in items):
        return False
    joins = query.args.get("joins") or []
    if any(j.side in ("RIGHT", "FULL") or j.kind in ("SEMI", "ANTI") or j.method for j in joins):
        return False
    if nullable and (joins or isinstance(clause.this, exp.Subquery)):
        return False
    return all(plain(e.this) if nullable else _moves(e.this) for e in query.expressions)


def _known(item: exp.Expr) -> bool:
    if isinstance(item, exp.Subquery):
        return True
    return isinstance(item, exp.Table) and isinstance(item.this, exp.Identifier)


def _moves(value: exp.Expr) -> bool:
    """Whether an expression means the same wherever its columns are. A constant would lose its type."""
    if value.find(exp.Column) is None or value.find(exp.Unnest, exp.Explode):
        return False
    return not (has_subquery(value) or is_volatile(value) or is_aggregate(value)) and not _has_bare(value)


def _has_bare(value: exp.Expr) -> bool:
    """An alias of the select list that was left for DuckDB to find."""
    return any(not c.table for c in value.find_all(exp.Column))


def _values(source: Source, query: exp.Select) -> dict[Name, exp.Expr]:
    pairs = zip(source.columns, query.expressions, strict=True)
    return {(source.id, column): item.this for column, item in pairs}


def _repeated(names: Names, select: exp.Select, values: dict[Name, exp.Expr]) -> bool:
    """Whether a caller's function that is worth being called once would be called twice."""
    dear = {name for name, value in values.items() if any(f.is_costly for f in functions_in(value))}
    read = [name_of(column) for column in _columns(names, select) if name_of(column) in dear] if dear else []
    return len(read) > len(set(read))


def _substitute(names: Names, select: exp.Select, values: dict[Name, exp.Expr]) -> None:
    for column in _columns(names, select):
        value = values.get(name_of(column))
        if value is not None:
            copy = value.copy()
            column.replace(copy if isinstance(copy, exp.Column) else exp.Paren(this=copy))


def _columns(names: Names, select: exp.Select) -> list[exp.Column]:
    """Those that may read a derived table of a FROM clause: a sub-query's own derived tables among them."""
    return [column for part in all_of(names, select) for column in part.find_all(exp.Column)]


def _add(select: exp.Select, table: exp.Table, conjuncts: list[exp.Expr]) -> None:
    """The merged query's WHERE: into ours, or into the ON of the outer join that it was under. It comes first: what is
    made of its rows may fail for others."""
    if not conjuncts:
        return
    join = table.parent
    if isinstance(join, exp.Join) and join.side == "LEFT":
        join.set("on", together([*conjuncts, *split(join.args.get("on"))]))
        return
    where = select.args.get("where")
    select.set("where", exp.Where(this=together([*conjuncts, *split(where.this if where else None)])))


def _put(table: exp.Table, query: exp.Select) -> None:
    """The merged query's FROM in place of the table."""
    inner, joins = query.args["from_"].this, query.args.get("joins") or []
    if joins:
        inner.set("joins", joins)
        inner = exp.Subquery(this=inner)
    if table.args.get("joins"):
        inner.set("joins", table.args["joins"])
    table.replace(inner)
