"""SQL text in, the query model out: the whole way on one page."""

from __future__ import annotations

from sqlglot import exp

from mediator.catalog.model import Catalog
from mediator.errors import Unsupported
from mediator.query.check import check
from mediator.query.functions import bind, check_names
from mediator.query.model import Query
from mediator.query.names import Names
from mediator.query.parameters import Parameters
from mediator.query.parse import parse
from mediator.query.plan import Planner
from mediator.query.scope import unique
from mediator.query.steady import steady
from mediator.query.streams import finish
from mediator.query.trees import is_volatile, takes_any
from mediator.statements.patience import go_on


def understand(sql: str, catalog: Catalog, parameters: Parameters = ()) -> Query:
    """One SELECT as stages. Raises a `QueryError` that says what is wrong, and where, if it cannot be run."""
    try:
        return _understood(sql, catalog, parameters)
    except RecursionError:
        raise Unsupported("the statement is nested too deeply", sql=sql) from None


def _understood(sql: str, catalog: Catalog, parameters: Parameters) -> Query:
    statement = parse(sql, parameters)
    go_on()
    check_names(catalog.functions)
    columns = unique(check(statement, sql, catalog, parameters))
    functions = bind(statement, catalog.functions, sql)
    steady(statement)
    volatile = is_volatile(statement) or takes_any(statement)
    names = Names(catalog, sql)
    names.resolve(statement)
    statement = _unwrapped(statement)
    _label(statement, columns)
    planner = Planner(names)
    planner.query(statement)
    stages = finish(planner.stages, statement, columns)
    return Query(sql, tuple(stages), stages[-1].schema, functions, volatile, parameters or ())


def _unwrapped(statement: exp.Expr) -> exp.Expr:
    while isinstance(statement, exp.Subquery) and not any(
        statement.args.get(k) for k in ("order", "limit", "offset")
    ):
        statement = statement.this
    return statement


def _label(statement: exp.Expr, columns: list[str]) -> None:
    """The answer's columns by the names that DuckDB gave them."""
    if isinstance(statement, exp.Select) and len(statement.expressions) == len(columns):
        for item, column in zip(statement.expressions, columns, strict=True):
            item.set("alias", exp.to_identifier(column, quoted=True))
