"""FROM clauses as everything else expects them, whichever way they were written: joins hang from their select, those in
brackets from the first item there, and VALUES are no table. Nor is a collation of two words a column of a table."""

from __future__ import annotations

from sqlglot import exp


def set_upright(statement: exp.Expr) -> None:
    """Changes the tree in place; what it means stays."""
    for table in list(statement.find_all(exp.Table)):
        if isinstance(table.this, exp.Values):
            _without_table(table)
    for collate in statement.find_all(exp.Collate):
        if isinstance(collate.expression, exp.Column):  # NOCASE.NOACCENT
            collate.set("expression", exp.Var(this=collate.expression.sql("duckdb")))
    for select in list(statement.find_all(exp.Select)):
        clause = select.args.get("from_")
        if clause is None:
            continue
        # FROM a JOIN b SELECT ...: there they hang from the first item.
        joins = [*_taken(clause.this), *(select.args.get("joins") or [])]
        select.set("joins", joins or None)
    for join in list(statement.find_all(exp.Join)):
        # a JOIN b JOIN c ON ... ON ...: what hangs from b is b's own.
        if join.this.args.get("joins"):
            item = join.this
            join.set("this", exp.Subquery(this=item))


def is_parenthesis(item: exp.Expr) -> bool:
    """Whether an item of a FROM clause is others in brackets, which keep their names, and not a query."""
    if not isinstance(item, exp.Subquery):
        return False
    inner = item.this
    if isinstance(inner, (exp.Subquery, exp.Values, exp.Unnest)):
        return bool(inner.args.get("alias") or inner.args.get("joins")) or is_parenthesis(inner)
    return isinstance(inner, exp.Table)


def _taken(item: exp.Expr) -> list[exp.Expr]:
    joins = item.args.get("joins") or []
    item.set("joins", None)
    return list(joins)


def _without_table(table: exp.Table) -> None:
    values = table.this
    for key in ("alias", "joins"):
        values.set(key, table.args.get(key))
    table.replace(values)
