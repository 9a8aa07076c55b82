"""Sub-queries as seen from outside: what they read of their surroundings, and which conditions may go
inside."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from sqlglot import exp

from mediator.query.conjuncts import split, together
from mediator.query.names import Names
from mediator.query.trees import (
    Name,
    has_subquery,
    is_aggregate,
    is_constant,
    is_volatile,
    name_of,
    names_in,
    plain,
    sources_in,
)
from mediator.query.types import family


def free_names(names: Names, query: exp.Expr) -> dict[Name, None]:
    """The columns that a query reads from outside of itself."""
    read = dict[Name, None]()
    inside = set[str]()
    for part in all_of(names, query):
        read.update((n, None) for n in names_in(part) if n[0] in names.sources)
        inside.update(t.name for t in part.find_all(exp.Table))
    return {n: None for n in read if n[0] not in inside}


def all_of(names: Names, query: exp.Expr) -> Iterator[exp.Expr]:
    """A query, and those behind the items of its FROM clauses, however deep."""
    seen: set[int] = set()
    due = [query]
    while due:
        part = due.pop()
        if id(part) in seen:  # a recursive WITH reads itself
            continue
        seen.add(id(part))
        yield part
        named = {t.name for t in part.find_all(exp.Table) if isinstance(t.this, exp.Identifier)}
        bodies = [names.sources[n].body for n in named if n in names.sources]
        due += [body for body in bodies if body is not None]


def pushed(conjunct: exp.Expr, values: dict[Name, exp.Expr]) -> exp.Expr:
    """A condition on a query's columns as one on what they are made of."""

    def replaced(node: exp.Expr) -> exp.Expr:
        value = values.get(name_of(node)) if isinstance(node, exp.Column) else None
        if value is None:
            return node
        return value.copy() if isinstance(value, exp.Column) else exp.Paren(this=value.copy())

    return conjunct.copy().transform(replaced)


def is_cut(query: exp.Expr) -> bool:
    """Whether LIMIT or OFFSET choose among a query's rows, so that taking some away would bring others in."""
    return any(query.args.get(k) for k in ("limit", "offset"))


def reachable(query: exp.Expr) -> list[exp.Expr | None]:
    """Per column of a query: the expression on which a condition may be put to its rows before all else is
    done, or none. Within groups that is what they are grouped by."""
    while isinstance(query, exp.Subquery) and not is_cut(query):
        query = query.this
    if not isinstance(query, exp.Select):
        return []
    values: list[exp.Expr] = [e.this if isinstance(e, exp.Alias) else e for e in query.expressions]
    distinct = query.args.get("distinct")
    blocked = any(query.args.get(k) for k in ("limit", "offset", "qualify"))
    if (
        blocked
        or (distinct is not None and distinct.args.get("on"))
        or any(v.find(exp.Window) for v in values)
    ):
        return [None] * len(values)
    group = query.args.get("group")
    if group is None and not query.args.get("having") and not any(is_aggregate(v) for v in values):
        return [v if _early(v) else None for v in values]
    keys = _keys(group, values)
    return [v if v in keys and _early(v) else None for v in values]


def _keys(group: exp.Group | None, values: list[exp.Expr]) -> list[exp.Expr]:
    if group is None or any(group.args.get(k) for k in ("grouping_sets", "cube", "rollup", "totals")):
        return []
    if group.args.get("all") or any(c.name.lower() == "all" for c in group.expressions):
        return [v for v in values if not is_aggregate(v)]
    keys = [e for e in group.expressions if not isinstance(e, exp.Literal)]
    if any(isinstance(e, (exp.GroupingSets, exp.Cube, exp.Rollup)) for e in keys):
        return []
    at = [int(e.this) for e in group.expressions if isinstance(e, exp.Literal) and str(e.this).isdigit()]
    return keys + [values[n - 1] for n in at if 0 < n <= len(values)]


def _early(value: exp.Expr) -> bool:
    return bool(names_in(value)) and not (has_subquery(value) or is_volatile(value) or value.find(exp.Unnest))


# Other conditions as IN


def as_in(names: Names, conjunct: exp.Expr) -> exp.Expr:
    """A conjunct of a WHERE as an IN with a sub-query, of which lookups can be made, if it can be said so; else what it
    was."""
    return equality_as_in(names, exists_as_in(names, conjunct))


def equality_as_in(names: Names, conjunct: exp.Expr) -> exp.Expr:
    """b.x = (SELECT max(x) FROM r), or b.x = ANY (SELECT x FROM r), as b.x IN (...). Not where a second row would be
    an error, or where the sub-query depends on its surroundings."""
    if not isinstance(conjunct, exp.EQ):
        return conjunct
    for outer, other in ((conjunct.left, conjunct.right), (conjunct.right, conjunct.left)):
        any_ = isinstance(other, exp.Any)
        query = other.this if any_ else other
        if (
            isinstance(query, exp.Subquery)
            and (any_ or _at_most_one_row(query))
            and not free_names(names, query)
        ):
            found = exp.In(this=outer, query=query)
            found.meta["equality"] = not any_
            return found
    return conjunct


def as_compared(conjunct: exp.Expr) -> exp.Expr:
    """The equality that an IN was made of, where no lookups came of it: = compares text with numbers, IN does not."""
    if not isinstance(conjunct, exp.In) or not conjunct.meta.get("equality"):
        return conjunct
    return exp.EQ(this=conjunct.this, expression=conjunct.args["query"])


def _at_most_one_row(query: exp.Expr) -> bool:
    while isinstance(query, exp.Subquery) and not is_cut(query):
        query = query.this
    if not isinstance(query, exp.Select):
        return False
    limit = query.args.get("limit")
    if isinstance(limit, exp.Limit) and limit.expression == exp.Literal.number(1):
        return True
    values = query.expressions
    return not query.args.get("group") and bool(values) and all(map(_aggregates, values))


def _aggregates(value: exp.Expr) -> bool:
    return is_aggregate(value) and not value.find(exp.Window, exp.Unnest, exp.Explode)


def exists_as_in(names: Names, conjunct: exp.Expr) -> exp.Expr:
    """EXISTS (SELECT ... FROM r WHERE r.x = b.x AND p) as b.x IN (SELECT r.x FROM r WHERE p); else what it
    was.

    Only for a conjunct of a WHERE: there UNKNOWN is as good as FALSE.
    """
    query = conjunct.this if isinstance(conjunct, exp.Exists) else None
    if not isinstance(query, exp.Select) or not _exists_rows(query):
        return conjunct
    inside = {t.name for t in query.args["from_"].find_all(exp.Table)}
    inside |= {t.name for j in query.args.get("joins") or [] for t in j.find_all(exp.Table)}
    rest: list[exp.Expr] = []
    pairs: list[tuple[exp.Expr, exp.Expr]] = []
    for part in split(query.args["where"].this):
        pair = _tie(part, inside)
        if pair is not None and _other_kinds(names, *pair):
            return conjunct
        if pair is not None:
            pairs.append(pair)
        elif any(n[0] not in inside for n in names_in(part)) and (
            not has_subquery(part) or _reads_outside(names, part, inside)
        ):
            return conjunct
        else:
            rest.append(part)
    return _membership(query, pairs, rest) if pairs else conjunct


def _exists_rows(query: exp.Select) -> bool:
    """Whether EXISTS asks for nothing but a joined row."""
    keys = ("group", "having", "qualify", "limit", "offset", "windows")
    if not query.args.get("from_") or not query.args.get("where") or any(query.args.get(k) for k in keys):
        return False
    joins = query.args.get("joins") or []
    simple = all(not j.side and j.kind not in ("SEMI", "ANTI") and not j.method for j in joins)
    # What is unnested may give no row, or many.
    return simple and not any(is_aggregate(e) or e.find(exp.Unnest, exp.Explode) for e in query.expressions)


def _tie(part: exp.Expr, inside: set[str]) -> tuple[exp.Expr, exp.Expr] | None:
    """outer = inner, in this order."""
    if not isinstance(part, exp.EQ) or has_subquery(part) or is_volatile(part):
        return None
    for outer, inner in ((part.left, part.right), (part.right, part.left)):
        there, here = sources_in(outer), sources_in(inner)
        if there and here and not (there & inside) and here <= inside and not is_constant(outer):
            return outer, inner
    return None


def _other_kinds(names: Names, *sides: exp.Expr) -> bool:
    """Whether one is text and the other is not: = compares such, IN does not."""
    kinds = [_kind(names, side) for side in sides]
    return None not in kinds and (kinds[0] == pa.string()) != (kinds[1] == pa.string())


def _kind(names: Names, side: exp.Expr) -> pa.DataType | None:
    """A plain column's type, where it is a relation's in the end."""
    column = plain(side)
    source = names.sources.get(column.table) if column is not None else None
    if column is None or source is None:
        return None
    if source.relation is not None:
        return family(source.relation.schema.field(column.name).type)
    body = source.body
    if not isinstance(body, exp.Select) or len(body.expressions) != len(source.columns):
        return None
    return _kind(names, body.expressions[source.columns.index(column.name)].unalias())


def _reads_outside(names: Names, part: exp.Expr, inside: set[str]) -> bool:
    return any(n[0] not in inside for n in free_names(names, part))


def _membership(query: exp.Select, pairs: list[tuple[exp.Expr, exp.Expr]], rest: list[exp.Expr]) -> exp.In:
    items: list[exp.Expr] = [
        exp.Alias(this=inner, alias=exp.to_identifier(f"v{n}", quoted=True))
        for n, (_, inner) in enumerate(pairs)
    ]
    query.set("expressions", items)
    query.set("distinct", None)
    query.set("order", None)
    query.set("where", exp.Where(this=together(rest)) if rest else None)
    outer = [o for o, _ in pairs]
    left = outer[0] if len(outer) == 1 else exp.Tuple(expressions=outer)
    return exp.In(this=left, query=exp.Subquery(this=query))
