"""Statements so simple that DuckDB need not be asked about them: fields of relations, compared with one another and
with numbers and texts. What asks for a row by its key is of that kind, and DuckDB's word about it would take as long as
all the rest of its planning.

Whoever is not sure says so: nothing that DuckDB would refuse, or name otherwise, is simple.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

import pyarrow as pa
import pyarrow.types as pt
from sqlglot import exp

from mediator.catalog.model import Catalog, Field, Relation
from mediator.query import duck
from mediator.query.types import family, keyable

_COMPARED = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
_CLAUSES = {"expressions", "from_", "joins", "where", "limit"}
_WRITTEN = re.compile(r"[\w\s.,=<>'\"$]*")  # nothing that two parsers might read in two ways
_WORDS = re.compile(r""""(?:[^"]|"")*"|'(?:[^']|'')*'|[\w$]+|[,.]|[=<>!]+""")
_JOINTS = frozenset({",", ".", "as"})
_SIGNS = frozenset("=<>!")
_BETWEEN = _JOINTS | {"", "select", "from", "where", "join", "inner", "on", "and", "limit"}
_JOIN = re.compile(r"\bjoin\b", re.IGNORECASE)
_DIGITS = 18  # of a number that fits into 64 bits, whatever they are

_Sources = dict[str, Relation]


class _NotSimple(Exception):
    pass


def column_names(statement: exp.Expr, sql: str, catalog: Catalog) -> list[str] | None:
    """The columns of a simple statement as DuckDB names them; None for any other."""
    if type(statement) is not exp.Select or not _WRITTEN.fullmatch(sql):
        return None
    try:
        return _names(statement, sql, catalog)
    except _NotSimple:
        return None


def _names(statement: exp.Select, sql: str, catalog: Catalog) -> list[str]:
    _only(statement, _CLAUSES)
    sources: _Sources = {}
    clause = statement.args.get("from_")
    if clause is None or not statement.expressions or not _as_written(sql):
        raise _NotSimple
    _add(sources, clause.this, catalog)
    joins = statement.args.get("joins") or ()
    if len(_JOIN.findall(sql)) != sum(join.args.get("on") is not None for join in joins):
        raise _NotSimple  # a condition is missing, and the tree looks like that of a comma
    for join in joins:
        _only(join, {"this", "on"})
        _add(sources, join.this, catalog)
        _check_condition(join.args.get("on"), sources)
    names = list(_items(statement.expressions, sources))
    where, limit = statement.args.get("where"), statement.args.get("limit")
    _check_condition(where.this if where is not None else None, sources)
    if limit is not None:
        _only(limit, {"expression"})
        _number(limit.expression)
    return names


def _as_written(sql: str) -> bool:
    """Whether nothing is out of its place: the parser takes more than DuckDB does, and the tree does not show it."""
    words = [word.lower() for word in _WORDS.findall(sql)]
    around = zip(["", *words], words, [*words[1:], ""], strict=False)
    return words[:1] == ["select"] and all(
        not (_BETWEEN & {before, after})
        if word in _JOINTS
        else not word.startswith("'") or before[:1] in _SIGNS or after[:1] in _SIGNS
        for before, word, after in around
    )


def _only(node: exp.Expr, allowed: set[str]) -> None:
    if any(value for key, value in node.args.items() if key not in allowed):
        raise _NotSimple


def _add(sources: _Sources, table: exp.Expr, catalog: Catalog) -> None:
    if type(table) is not exp.Table or not isinstance(table.this, exp.Identifier):
        raise _NotSimple
    _only(table, {"this", "alias"})
    alias = table.args.get("alias")
    if alias is not None:
        _only(alias, {"this"})
    relation = catalog.relations.get(_word(table.this))
    name = (_word(alias.this, alias=True) if alias is not None else table.name).lower()
    if relation is None or name in sources:
        raise _NotSimple
    sources[name] = relation


def _word(node: exp.Expr, alias: bool = False) -> str:
    """An identifier that is one wherever it stands; an alias also where no AS stands before it."""
    words = _keywords()
    if not isinstance(node, exp.Identifier):
        raise _NotSimple
    name = str(node.name)
    if not node.quoted and (
        name[:1].isdigit()
        or (name.lower() in words if alias else words.get(name.lower(), "unreserved") != "unreserved")
    ):
        raise _NotSimple
    return name


@lru_cache(maxsize=1)
def _keywords() -> dict[str, str]:
    """DuckDB's, and of what kind they are."""
    told = duck.run("SELECT keyword_name AS k, keyword_category AS c FROM duckdb_keywords()", {}, light=True)
    return dict(zip(told["k"].to_pylist(), told["c"].to_pylist(), strict=True))


def _items(items: Sequence[exp.Expr], sources: _Sources) -> Iterator[str]:
    fields = {f.name.lower() for relation in sources.values() for f in relation.fields}
    for item in items:
        if type(item) is not exp.Alias:
            yield _field(item, sources).name
            continue
        field, name = _field(item.this, sources), _word(item.args["alias"], alias=True)
        if name.lower() != field.name.lower() and name.lower() in fields | sources.keys():
            raise _NotSimple  # which of the two a condition means is DuckDB's to say
        yield name


def _field(node: exp.Expr, sources: _Sources) -> Field:
    if type(node) is not exp.Column:
        raise _NotSimple
    _only(node, {"this", "table"})
    name, table = _word(node.this), node.args.get("table")
    if table is not None and _word(table).lower() not in sources:
        raise _NotSimple
    among = sources.values() if table is None else [sources[table.name.lower()]]
    found = [f for relation in among for f in relation.fields if f.name.lower() == name.lower()]
    if len(found) != 1 or found[0].name != name or (table is None and name.lower() in sources):
        raise _NotSimple
    return found[0]


def _check_condition(node: exp.Expr | None, sources: _Sources) -> None:
    match node:
        case None:
            return
        case exp.And():
            _check_condition(node.this, sources)
            _check_condition(node.expression, sources)
        case _ if type(node) in _COMPARED:
            _check_comparison(node.this, node.expression, sources)
        case _:
            raise _NotSimple


def _check_comparison(left: exp.Expr, right: exp.Expr, sources: _Sources) -> None:
    if isinstance(left, exp.Literal):
        left, right = right, left
    kind = _field(left, sources).type
    if not keyable(kind):
        raise _NotSimple
    if not isinstance(right, exp.Literal):
        if _field(right, sources).type != kind:
            raise _NotSimple
    elif right.is_string:
        if family(kind) != pa.string():
            raise _NotSimple
    elif not pt.is_integer(kind):
        raise _NotSimple
    else:
        _number(right)


def _number(node: exp.Expr) -> None:
    text = str(node.this) if isinstance(node, exp.Literal) and not node.is_string else ""
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS):
        raise _NotSimple
