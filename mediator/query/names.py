"""Names resolved: every item of every FROM clause gets an id that is its own in the whole statement, and
every column says by that id whose it is. Stars are spelt out, and every column of a select list gets
its name.

DuckDB has already found the statement sound (`check.py`), so what is left to decide here is only *which*
column a name means. Rules as in DuckDB: a column of the FROM clause, else an alias of the select list,
else a column of an enclosing query.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from mediator.catalog.model import Catalog
from mediator.errors import UnknownColumn, UnknownRelation, Unsupported
from mediator.query import vocabulary
from mediator.query.functions import shown
from mediator.query.scope import Cte, Scope, Source, named, near_columns, renamed, unique
from mediator.query.sources import resolve_from
from mediator.query.trees import aggregates, has_subquery, is_volatile, position_of
from mediator.statements.patience import go_on

_QUERIES = (exp.Select, exp.SetOperation, exp.Subquery)


class Names:
    """Resolves one statement; keeps every source under its id."""

    def __init__(self, catalog: Catalog, sql: str) -> None:
        self.catalog = catalog
        self.sql = sql
        self.sources: dict[str, Source] = {}
        self._taken: set[str] = set()
        self._numbers: dict[str, int] = {}  # by a wish, up to which one all are taken

    def fresh(self, wish: str) -> str:
        """A name that nothing else in the statement has."""
        # Without dots, so that an id and a field can be put together in one way only.
        wish = wish.replace(".", "_")
        number = self._numbers.get(wish.lower(), 1)
        while (name := wish if number == 1 else f"{wish}_{number}").lower() in self._taken:
            number += 1
        self._numbers[wish.lower()] = number
        self._taken.add(name.lower())
        return name

    def release(self, names: set[str]) -> None:
        """Gives names back that came to nothing."""
        self._taken -= {n.lower() for n in names}
        self._numbers.clear()

    def resolve(
        self, node: exp.Expr, parent: Scope | None = None, ctes: dict[str, Cte] | None = None
    ) -> list[str]:
        """Resolves a query in place; returns the names of its columns, as they were written."""
        go_on()
        ctes = self._with(node, parent, dict(ctes or {}))
        if isinstance(node, exp.Select):
            return self._select(node, Scope(parent, ctes))
        if isinstance(node, exp.SetOperation):
            return self._set_operation(node, parent, ctes)
        if isinstance(node, exp.Subquery):
            columns = self.resolve(node.this, parent, ctes)
            self._outer_clauses(node, Scope(parent, ctes), columns)
            return columns
        if isinstance(node, exp.Values):
            self.expression(node, Scope(parent, ctes), "select")
            return [f"col{n}" for n in range(len(node.expressions[0].expressions))]
        raise Unsupported(f"{node.key.upper()} is not supported", sql=self.sql, position=position_of(node))

    def expression(self, node: exp.Expr, scope: Scope, clause: str, only: str = "") -> None:
        """Resolves the names below a node, its sub-queries included."""
        go_on()
        for child in list(node.iter_expressions()):
            if not only or child.arg_key == only:
                self._visit(child, scope, clause)

    # WITH

    def _with(self, node: exp.Expr, parent: Scope | None, ctes: dict[str, Cte]) -> dict[str, Cte]:
        clause = node.args.get("with_")
        if clause is None:
            return ctes
        for entry in clause.expressions:
            cte = self._cte(entry, bool(clause.args.get("recursive")), parent, ctes)
            ctes[cte.name.lower()] = cte
        node.set("with_", None)
        return ctes

    def _cte(self, entry: exp.CTE, recursive: bool, parent: Scope | None, ctes: dict[str, Cte]) -> Cte:
        body, name = entry.this, entry.alias
        renames = [c.name for c in entry.args["alias"].args.get("columns") or ()]
        loops = recursive and any(t.name.lower() == name.lower() for t in body.find_all(exp.Table))
        if not loops:
            columns = renamed(unique(self.resolve(body, parent, ctes)), renames)
            return Cte(name, body, columns, bool(entry.args.get("materialized")))
        if not isinstance(body, exp.SetOperation):
            raise Unsupported("a recursive WITH must be a UNION", sql=self.sql, position=position_of(entry))
        columns = renamed(unique(self.resolve(body.left, parent, ctes)), renames)
        itself = Cte(name, body, columns, recursive=True)
        self.resolve(body.right, parent, {**ctes, name.lower(): itself})
        return itself

    # Queries

    def _set_operation(self, node: exp.SetOperation, parent: Scope | None, ctes: dict[str, Cte]) -> list[str]:
        left = self.resolve(node.left, parent, ctes)
        right = self.resolve(node.right, parent, ctes)
        if node.args.get("by_name"):
            have = {c.lower() for c in left}
            left = left + [c for c in right if c.lower() not in have]
        self._outer_clauses(node, Scope(parent, ctes), left)
        return left

    def _outer_clauses(self, node: exp.Expr, scope: Scope, columns: list[str]) -> None:
        """ORDER BY and LIMIT of a set operation or of a query in brackets know its columns by name only."""
        scope.aliases = {c.lower(): exp.null() for c in columns}
        for key in ("order", "limit", "offset"):
            if node.args.get(key) is not None:
                self.expression(node.args[key], scope, "order")

    def _select(self, node: exp.Select, scope: Scope) -> list[str]:
        _name_keys(node)
        resolve_from(self, node, scope)
        items = [e for item in node.expressions for e in self._starless(item, scope)]
        scope.aliases = {e.alias.lower(): e.this.copy() for e in items if isinstance(e, exp.Alias)}
        scope.distinct = bool(node.args.get("distinct"))
        columns = _labels(items)
        node.set(
            "expressions", [self._item(e, c, scope) for e, c in zip(items, unique(columns), strict=True)]
        )
        if node.args.get("group") is not None:
            self._visit(node.args["group"], scope, "group")
            scope.keys = _grouped(node)
        for key, child in list(node.args.items()):
            if key not in ("expressions", "from_", "joins", "with_", "laterals", "group"):
                for part in child if isinstance(child, list) else [child]:
                    if isinstance(part, exp.Expr):
                        self._visit(part, scope, key)
        return columns

    def _item(self, item: exp.Expr, column: str, scope: Scope) -> exp.Alias:
        holder = named(item.this if isinstance(item, exp.Alias) else item, column)
        self.expression(holder, scope, "select", only="this")
        return holder

    # Stars

    def _starless(self, item: exp.Expr, scope: Scope) -> list[exp.Expr]:
        if isinstance(item, exp.Columns):
            raise Unsupported("COLUMNS(...) is not supported: name the columns", sql=self.sql)
        star = item.this if isinstance(item, exp.Column) else item
        if not isinstance(star, exp.Star):
            return [item]
        table = item.table if isinstance(item, exp.Column) else ""
        columns = scope.star_of(table) if table else scope.star()
        if not columns:
            position = position_of(item)
            raise UnknownRelation(f"{table or '*'} has no columns here", sql=self.sql, position=position)
        for name in star.args.get("except_") or ():
            source = scope.source(name.table) if name.table else None
            if source is not None and scope.is_merged(source, name.name):
                message = f"{name.table}.{name.name} is one with another's: leave the table's name out"
                raise Unsupported(message, sql=self.sql, position=position_of(name))
        return _edited(star, columns, scope)

    # Expressions

    def _visit(self, node: exp.Expr, scope: Scope, clause: str) -> None:
        if isinstance(node, _QUERIES):
            self.resolve(node, scope, scope.ctes)
        elif isinstance(node, exp.Column):
            self._column(node, scope, clause)
        elif isinstance(node, (exp.PropertyEQ, exp.Kwarg)):
            self.expression(node, scope, clause, only="expression")
        elif isinstance(node, exp.Comprehension):
            _bind_variable(node)
            self.expression(node, scope, clause)
        else:
            for child in list(node.iter_expressions()):
                self._visit(child, scope, _within(node, child, clause))

    def _column(self, node: exp.Column, scope: Scope, clause: str) -> None:
        if isinstance(node.this, exp.Star) or "resolved" in node.meta:
            return
        found = self._meaning(node, scope, clause)
        if found is None:
            return
        where = position_of(node)
        for column in found.find_all(exp.Column):
            if where is not None:
                column.this.meta["start"] = where
        node.replace(found)

    def _meaning(self, node: exp.Column, scope: Scope, clause: str) -> exp.Expr | None:
        """What a name stands for; none where it is an alias that DuckDB will find by itself."""
        parts = [p.name for p in node.parts]
        alone = parts[0].lower() if len(parts) == 1 else ""
        if clause == "order item" and (alone in scope.aliases or alone == "all"):
            return None
        if clause == "group" and alone == "all":
            return None
        if clause == "having" and alone in scope.aliases and scope.meaning(parts) not in scope.keys:
            return None if _stays(scope, alone, clause) else self._spelt_out(alone, scope)
        here: Scope | None = scope
        while here is not None:
            found = here.meaning(parts)
            if found is not None:
                return found
            if alone in here.aliases:
                stays = here is scope and _stays(scope, alone, clause)
                return None if stays else self._spelt_out(alone, here)
            here = here.parent
        raise UnknownColumn(
            f"there is no column {'.'.join(parts)!r} here",
            sql=self.sql,
            position=position_of(node),
            hint=near_columns(parts[-1], scope.columns()),
        )

    def _spelt_out(self, alias: str, scope: Scope) -> exp.Expr:
        holder = exp.Paren(this=scope.aliases[alias].copy())
        self.expression(holder, scope, "where")
        return holder.this if isinstance(holder.this, (exp.Column, exp.Literal)) else holder


def _bind_variable(node: exp.Comprehension) -> None:
    """In [x + 1 FOR x IN list] the name x is nobody's column."""
    variable = node.expression.name.lower()
    for key in ("this", "expression", "condition"):
        part = node.args.get(key)
        for column in list(part.find_all(exp.Column)) if part is not None else []:
            if not column.table and column.name.lower() == variable:
                column.replace(exp.to_identifier(column.name))


def _stays(scope: Scope, alias: str, clause: str) -> bool:
    """Whether an alias is left for DuckDB to find: where it is more than a name for what is computed. Elsewhere it is
    spelt out, as columns that were hidden here may stand in the FROM clause in the end."""
    if clause in ("where", "on"):
        return False
    value = scope.aliases[alias]
    if value.find(exp.Column) is None or (clause == "order" and scope.distinct):
        return True
    return has_subquery(value) or is_volatile(value) or value.find(exp.Unnest, exp.Explode) is not None


def _within(node: exp.Expr, child: exp.Expr, clause: str) -> str:
    """What a node's clause is for what stands in it. In ORDER BY an alias comes before a column only where it is alone;
    in HAVING not within an aggregate."""
    if clause == "order":
        return "order item" if isinstance(node, exp.Ordered) and child.arg_key == "this" else clause
    if clause == "order item":
        alone = isinstance(node, (exp.Paren, exp.Collate)) and child.arg_key == "this"
        return clause if alone else "order"
    return "aggregate" if clause == "having" and aggregates(node) else clause


def _grouped(select: exp.Select) -> list[exp.Expr]:
    """What a resolved select is grouped by, where it is named by alias or place as well."""
    values = {item.alias.lower(): item.this for item in select.expressions}
    found: list[exp.Expr] = []
    for key in _keys_of(select.args["group"]):
        if isinstance(key, exp.Literal) and str(key.this).isdigit() and 0 < int(key.this) <= len(values):
            found.append(select.expressions[int(key.this) - 1].this)
        columns = key.find_all(exp.Column)
        found += [c if c.table else values.get(c.name.lower(), c) for c in columns]
    return found


def _keys_of(group: exp.Group) -> list[exp.Expr]:
    """Those of ROLLUP and CUBE included."""
    lists = [group.expressions, *(r.expressions for r in group.find_all(exp.Rollup, exp.Cube))]
    return [key for keys in lists for key in keys]


def _name_keys(select: exp.Select) -> None:
    """GROUP BY with a sub-query that stands in the select list as well: by its place there, so that both stay one."""
    group = select.args.get("group")
    if group is None or not any(has_subquery(e) for e in group.expressions):
        return
    values = [e.this if isinstance(e, exp.Alias) else e for e in select.expressions]
    if any(v.is_star for v in values):
        return
    for key in _keys_of(group):
        plain = key.unnest()
        at = next((n for n, v in enumerate(values) if has_subquery(v) and v.unnest() == plain), None)
        if at is not None:
            key.replace(exp.Literal.number(at + 1))


def _labels(items: Sequence[exp.Expr]) -> list[str]:
    """What DuckDB calls the columns of a select list."""
    nameless = [n for n, item in enumerate(items) if not isinstance(item, (exp.Alias, exp.Column))]
    told = vocabulary.labels([items[n].sql("duckdb") for n in nameless])
    made = {n: shown(text) for n, text in zip(nameless, told, strict=True)}
    return [made[n] if n in made else str(item.alias_or_name) for n, item in enumerate(items)]


def _is_of(column: exp.Expr, source: Source | None, name: str) -> bool:
    if column.alias.lower() != name:
        return False
    return source is None or any(c.table == source.id for c in column.find_all(exp.Column))


def _edited(star: exp.Star, columns: list[exp.Expr], scope: Scope) -> list[exp.Expr]:
    """EXCLUDE, REPLACE and RENAME of a star; what is excluded may say of which source."""
    excluded = [(scope.source(e.table), e.name.lower()) for e in star.args.get("except_") or ()]
    replaced = {e.alias.lower(): e.this for e in star.args.get("replace") or ()}
    renames = {e.this.name.lower(): e.alias for e in star.args.get("rename") or ()}
    kept = [c for c in columns if not any(_is_of(c, source, name) for source, name in excluded)]
    return [named(replaced.get(c.alias.lower(), c.this), renames.get(c.alias.lower(), c.alias)) for c in kept]
