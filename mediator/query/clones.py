"""Copies of resolved queries in which every source has a new id, so that one WITH entry can stand in
several places."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from mediator.query.names import Names


def cloned(names: Names, query: exp.Expr) -> exp.Expr:
    """The same query over sources of its own."""
    return _cloned(names, query, {})


def _cloned(names: Names, query: exp.Expr, ids: dict[str, str]) -> exp.Expr:
    copy = query.copy()
    for table in copy.find_all(exp.Table):
        if isinstance(table.this, exp.Identifier) and table.name in names.sources:
            table.set("this", exp.to_identifier(_source(names, table.name, ids), quoted=True))
    for column in copy.find_all(exp.Column):
        if column.table in ids:
            column.set("table", exp.to_identifier(ids[column.table], quoted=True))
    return copy


def _source(names: Names, id: str, ids: dict[str, str]) -> str:
    source = names.sources[id]
    ids[id] = names.fresh(source.name)
    query = None if source.query is None else _cloned(names, source.query, ids)
    names.sources[ids[id]] = replace(source, id=ids[id], query=query)
    return ids[id]
