"""Whole statements. Every column and every table gets a name of its own, so that Spark has none to look for."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count

from sqlglot import exp

from mediator.query.trees import has_subquery, is_constant
from pipeline.sparksql import conditions, gathering, numbers, texts  # what they list
from pipeline.sparksql.asked import type_of
from pipeline.sparksql.errors import NotAgreed
from pipeline.sparksql.gathering import aggregated, ordered
from pipeline.sparksql.kinds import Piece, coerced, constant, spark_name
from pipeline.sparksql.rules import AGGREGATES, CALLS, RULES, check, what
from pipeline.sparksql.scopes import Scope, Table

LISTS = (conditions, gathering, numbers, texts)
_SELECT = frozenset({
    "expressions", "from_", "joins", "where", "group", "having", "qualify", "windows", "distinct", "order", "limit",
    "offset", "with_",
})  # fmt: skip
_SET = frozenset({"this", "expression", "distinct", "order", "limit", "offset", "with_"})
_SETS = {exp.Union: "UNION", exp.Intersect: "INTERSECT", exp.Except: "EXCEPT"}
_MANY = (exp.Explode, exp.Unnest, exp.Posexplode, exp.Inline)  # which may give no row, or many
_KINDS = {"": "", "INNER": "", "OUTER": "", "CROSS": "CROSS", "SEMI": "SEMI", "ANTI": "ANTI"}


class Selects:
    """Writes one statement over these tables, by their names in small letters."""

    def __init__(self, tables: Mapping[str, Table]) -> None:
        self._tables = dict(tables)
        self._once: dict[Table, bool] = {}  # WITH entries that may be read once, and whether they have been
        self._numbers = count()

    def fresh(self) -> str:
        return f"t{next(self._numbers)}"

    def query(self, node: exp.Expr, outer: Scope | None = None) -> Table:
        """A query as a table: its text is a SELECT, with the columns c0, c1, ..."""
        if isinstance(node, exp.Subquery):
            check(node, frozenset({"this"}))
            return self.query(node.this, outer)
        before = dict(self._tables)
        try:
            self._with(node)
            if isinstance(node, exp.Select):
                return _Select(self, node, outer).written()
            if type(node) in _SETS and isinstance(node, exp.SetOperation):
                return self._set(node, outer)
        finally:
            self._tables = before
        raise NotAgreed(what(node))

    def table(self, name: str) -> Table:
        found = self._tables.get(name.lower())
        if found is None:
            raise NotAgreed(f"the table {name}")
        if self._once.get(found):
            # It is written out wherever it is read, and done anew: which rows LIMIT leaves may differ then.
            raise NotAgreed("a WITH entry that is read twice, and may be something else the second time")
        if found in self._once:
            self._once[found] = True
        return found

    def _with(self, node: exp.Expr) -> None:
        clause = node.args.get("with_")
        if clause is None:
            return
        check(clause, frozenset({"expressions"}))
        for cte in clause.expressions:
            check(cte, frozenset({"this", "alias", "materialized"}))
            read = sum(self._once.values())
            found = self.query(cte.this).renamed([c.name for c in cte.args["alias"].columns])
            made = self._tables[cte.alias.lower()] = Table(f"({found.spark})", found.columns)
            if sum(self._once.values()) > read or cte.this.find(exp.Limit, exp.Offset, exp.Window):
                self._once[made] = False

    def _set(self, node: exp.SetOperation, outer: Scope | None) -> Table:
        check(node, _SET)
        left, right = self.query(node.this, outer), self.query(node.expression, outer)
        if len(left.columns) != len(right.columns):
            raise NotAgreed("sets of unlike columns")
        types = [_common(a, b) for (_, a), (_, b) in zip(left.columns, right.columns, strict=True)]
        sides = [_taken(side, types) for side in (left, right)]
        word = _SETS[type(node)] + (" DISTINCT" if node.args.get("distinct") else " ALL")
        columns = tuple((name, type_) for (name, _), type_ in zip(left.columns, types, strict=True))
        names = {name.lower(): n for n, (name, _) in reversed([*enumerate(columns)])}
        keys = []
        for key in _order(node):
            if isinstance(key.this, exp.Literal) and not key.this.is_string:
                place = int(key.this.name) - 1
            elif isinstance(key.this, exp.Column) and not key.this.table and key.this.name.lower() in names:
                place = names[key.this.name.lower()]
            else:
                raise NotAgreed("sets in an order of more than their columns")
            keys.append(ordered(f"c{place}", key))
        body = f"SELECT * FROM (({sides[0]}) {word} ({sides[1]}))"
        return Table(self.ended(body, keys, node), columns)

    def ended(self, sql: str, keys: list[str], node: exp.Expr) -> str:
        """With ORDER BY, LIMIT and OFFSET."""
        parts = [sql]
        if keys:
            parts.append(f"ORDER BY {', '.join(keys)}")
        for name in ("limit", "offset"):
            clause = node.args.get(name)
            if clause is not None:
                check(clause, frozenset({"expression"}))
                number = clause.expression
                if not (isinstance(number, exp.Literal) and str(number.name).isdigit()):
                    raise NotAgreed(f"{name.upper()} of more than a number")
                if int(number.name) >= 1 << 31:
                    raise NotAgreed(f"{name.upper()} of so large a number")
                parts.append(f"{name.upper()} {number.name}")
        return " ".join(parts)


class _Select:
    """Writes one SELECT."""

    def __init__(self, selects: Selects, node: exp.Select, outer: Scope | None) -> None:
        check(node, _SELECT)
        self._selects, self._node = selects, node
        aliases = {e.alias.lower(): e.this for e in node.expressions if isinstance(e, exp.Alias)}
        windows = {w.name.lower(): w for w in node.args.get("windows") or []}
        self._scope = Scope(outer, aliases=aliases, windows=windows)
        self._inlined: set[str] = set()

    # What expressions ask for.

    def piece(self, node: exp.Expr) -> Piece:
        if isinstance(node, (exp.Paren, exp.Alias)):
            return self.piece(node.this)
        if isinstance(node, exp.Column):
            return self._column(node)
        if is_constant(node) and not node.find(*_MANY):
            return constant(node.sql("duckdb"))
        if isinstance(node, exp.Anonymous):
            return self._call(node)
        if type(node) in AGGREGATES:
            return aggregated(self, node)
        found = RULES.get(type(node))
        if found is None:
            raise NotAgreed(what(node))
        check(node, found[0])
        return found[1](self, node)

    def query(self, node: exp.Expr) -> tuple[str, tuple[str, ...]]:
        found = self._selects.query(node, self._scope)
        return found.spark, tuple(type_ for _, type_ in found.columns)

    def window(self, name: str) -> exp.Window:
        found = self._scope.windows.get(name.lower())
        if found is None:
            raise NotAgreed(f"the window {name}")
        return found

    def _call(self, node: exp.Anonymous) -> Piece:
        arguments, rule = CALLS.get(node.name.lower(), (-1, None))
        if rule is None or len(node.expressions) != arguments:
            raise NotAgreed(what(node))
        return rule(self, node)

    def _column(self, node: exp.Column) -> Piece:
        if node.table:
            return self._scope.column(node.table, node.name)
        name = node.name.lower()
        if name in self._inlined:
            raise NotAgreed(f"the name {node.name}, which means itself")
        self._inlined.add(name)
        try:
            found = self._scope.bare(name)
            return found if isinstance(found, Piece) else self.piece(found)
        finally:
            self._inlined.discard(name)

    # Its clauses.

    def written(self) -> Table:
        node = self._node
        source = self._from()
        items = [self.piece(e) for e in self._items()]
        names = [e.output_name or f"c{n}" for n, e in enumerate(self._items())]
        for item in items:
            spark_name(item.type)
        shown = [f"{item.spark} AS c{n}" for n, item in enumerate(items)]
        keys, more = self._keys(items)
        distinct = node.args.get("distinct")
        if distinct is not None:
            check(distinct, frozenset())
            if more:
                raise NotAgreed("DISTINCT in an order of more than its columns")
        condition = self._clause("qualify")
        if condition:
            more.append(f"{condition} AS q")
        if condition and distinct is not None:
            raise NotAgreed("DISTINCT with QUALIFY")
        sql = f"SELECT {'DISTINCT ' if distinct is not None else ''}{', '.join([*shown, *more])}"
        sql += f"{source}{self._where()}{self._group(items)}{self._having()}"
        if more or keys:
            columns = ", ".join(f"c{n}" for n in range(len(items)))
            sql = f"SELECT {columns} FROM ({sql}){' WHERE q' if condition else ''}"
        columns_ = tuple((name, item.type) for name, item in zip(names, items, strict=True))
        return Table(self._selects.ended(sql, keys, node), columns_)

    def _items(self) -> list[exp.Expr]:
        found: list[exp.Expr] = []
        for item in self._node.expressions:
            if not isinstance(item, exp.Star):
                found.append(item)
                continue
            check(item, frozenset())
            for name, (_, table) in self._scope.sources.items():
                found += [exp.column(column, table=name, quoted=True) for column, _ in table.columns]
        return found

    def _keys(self, items: list[Piece]) -> tuple[list[str], list[str]]:
        """What it is sorted by, and the columns that are needed for that."""
        keys: list[str] = []
        more: list[str] = []
        known = {item.spark: f"c{n}" for n, item in enumerate(items)}
        for node in _order(self._node):
            if isinstance(node.this, exp.Var) and node.this.name.upper() == "ALL":
                keys += [ordered(f"c{n}", node) for n in range(len(items))]
                continue
            if isinstance(node.this, exp.Literal) and not node.this.is_string:
                keys.append(ordered(f"c{int(node.this.name) - 1}", node))
                continue
            piece = self.piece(node.this)
            if piece.spark not in known:
                known[piece.spark] = f"s{len(more)}"
                more.append(f"{piece.spark} AS {known[piece.spark]}")
            keys.append(ordered(known[piece.spark], node))
        return keys, more

    def _clause(self, name: str) -> str:
        clause = self._node.args.get(name)
        return "" if clause is None else conditions.as_truth(self.piece(clause.this))

    def _where(self) -> str:
        condition = self._clause("where")
        return f" WHERE {condition}" if condition else ""

    def _having(self) -> str:
        condition = self._clause("having")
        if (
            condition
            and self._node.args.get("group") is None
            and not any(map(_aggregates, self._node.expressions))
        ):
            raise NotAgreed("HAVING without groups")
        return f" HAVING {condition}" if condition else ""

    def _group(self, items: list[Piece]) -> str:
        group = self._node.args.get("group")
        if group is None:
            return ""
        check(group, frozenset({"expressions", "all"}))
        if group.args.get("all"):
            keys = self._all_keys(items)
        else:
            keys = [self._key(e, items) for e in group.expressions]
        return f" GROUP BY {', '.join(dict.fromkeys(keys))}" if keys else ""

    def _key(self, node: exp.Expr, items: list[Piece]) -> str:
        if isinstance(node, exp.Literal) and not node.is_string:
            return items[int(node.name) - 1].spark
        if has_subquery(node):
            raise NotAgreed("groups by a sub-query")
        return self.piece(node).spark

    def _all_keys(self, items: list[Piece]) -> list[str]:
        keys = []
        for node, item in zip(self._items(), items, strict=True):
            if not _aggregates(node):
                keys.append(item.spark)
            elif node.find(exp.Window) or not _within(node):
                raise NotAgreed("GROUP BY ALL beside what is more than an aggregate")
        return keys

    def _from(self) -> str:
        clause = self._node.args.get("from_")
        if clause is None:
            return ""
        check(clause, frozenset({"this"}))
        return f" FROM {self._item(clause.this)}{self._joins(self._node.args.get('joins') or [])}"

    def _item(self, node: exp.Expr) -> str:
        joins: list[exp.Join] = []
        if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Table):
            check(node, frozenset({"this"}))
            return f"({self._item(node.this)})"
        if isinstance(node, exp.Subquery):
            check(node, frozenset({"this", "alias"}))
            # What is beside it in FROM it cannot see; what is round the whole SELECT it can.
            found = self._selects.query(node.this, self._scope.outer)
            table = Table(f"({found.spark})", found.columns)
        elif isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
            check(node, frozenset({"this", "alias", "joins"}))
            table, joins = self._selects.table(node.name), node.args.get("joins") or []
        else:
            raise NotAgreed(what(node))
        alias = node.args.get("alias")
        if alias is not None:
            check(alias, frozenset({"this", "columns"}))
            table = table.renamed([c.name for c in alias.columns])
        name, spark = node.alias_or_name, self._selects.fresh()
        self._scope.add(name, spark, table)
        return f"{table.spark} AS {spark}{self._joins(joins) if joins else ''}"

    def _joins(self, joins: list[exp.Join]) -> str:
        return "".join(self._join(join) for join in joins)

    def _join(self, node: exp.Join) -> str:
        check(node, frozenset({"this", "side", "kind", "on"}))
        before = set(self._scope.sources)
        side, kind = node.side.upper(), _KINDS.get(node.kind.upper())
        item = self._item(node.this)
        on = node.args.get("on")
        if kind is None or (kind in ("SEMI", "ANTI") and side):
            raise NotAgreed(f"{side} {node.kind} JOIN")
        if on is None and (side or kind in ("SEMI", "ANTI")):
            raise NotAgreed("a join without ON")
        condition = "" if on is None else f" ON {conditions.as_truth(self.piece(on))}"
        if kind in ("SEMI", "ANTI"):
            for name in set(self._scope.sources) - before:
                del self._scope.sources[name]  # nobody else sees it
            side = "LEFT"
        word = " ".join(part for part in (side, kind) if part) if on is not None else "CROSS"
        return f" {word or 'INNER'} JOIN {item}{condition}"


def _order(node: exp.Expr) -> list[exp.Ordered]:
    clause = node.args.get("order")
    if clause is None:
        return []
    check(clause, frozenset({"expressions"}))
    return list(clause.expressions)


def _aggregates(node: exp.Expr) -> bool:
    return any(type(n) in AGGREGATES or isinstance(n, exp.AggFunc) for n in node.walk())


def _within(node: exp.Expr) -> bool:
    """Whether all columns are inside of aggregates."""
    columns = node.find_all(exp.Column)
    return all(c.find_ancestor(exp.Filter, *AGGREGATES) is not None for c in columns)


def _common(left: str, right: str) -> str:
    if left == right:
        return left
    return type_of(f"CASE WHEN true THEN {Piece('', left).shown} ELSE {Piece('', right).shown} END")


def _taken(side: Table, types: list[str]) -> str:
    if [type_ for _, type_ in side.columns] == types:
        return side.spark
    for (_, given), wanted in zip(side.columns, types, strict=True):
        if "VARCHAR" in (given, wanted) and given not in (wanted, '"NULL"'):
            raise NotAgreed("sets of unlike columns")
    items = [
        f"{coerced(Piece(f'c{n}', given), type_)} AS c{n}"
        for n, ((_, given), type_) in enumerate(zip(side.columns, types, strict=True))
    ]
    return f"SELECT {', '.join(items)} FROM ({side.spark})"
