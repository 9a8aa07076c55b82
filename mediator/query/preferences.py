"""What the user prefers: conditions with weights, written over the aliases of a statement that is understood already.

A preference is read like any condition and is as strictly checked, by its names and by its types. But it decides
nothing: a value that it fails on, a cast that does not go, say, is one that does not satisfy it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.types as pt
from numpy.typing import NDArray
from sqlglot import exp

from mediator.errors import QueryError, TypeMismatch, UnknownColumn, Unparsable, Unsupported
from mediator.query import duck
from mediator.query.model import Alias, Block, BlockStage, Column, Preference, Query
from mediator.query.parse import parse
from mediator.query.predicates import Test, compiled
from mediator.query.scope import near_columns
from mediator.query.trees import (
    has_subquery,
    is_aggregate,
    is_volatile,
    name_of,
    position_of,
    text_of,
)

# By the name of a block's stage.
Preferences = Mapping[str, Sequence[Preference]]

# Of these alone hardly anything can be made that fails on a value; and they are tested without DuckDB, mostly.
_SURE = (
    exp.And, exp.Between, exp.Boolean, exp.Column, exp.EQ, exp.GT, exp.GTE, exp.Identifier, exp.In, exp.Is, exp.LT,
    exp.LTE, exp.Like, exp.Literal, exp.NEQ, exp.Not, exp.Null, exp.Or, exp.Paren,
)  # fmt: skip
_BEFORE = "SELECT 1 WHERE ("
_AFTER = "\n)"


def preferred(query: Query, prefer: Mapping[str, float]) -> Preferences:
    """The preferences for each block. Raises a `QueryError` for what cannot be one."""
    found: dict[str, list[Preference]] = {}
    blocks = {s.name: s.block for s in query.stages if isinstance(s, BlockStage)}
    for text, weight in prefer.items():
        _check_weight(text, weight)
        try:
            condition = _parsed(text)
            for name, block in _spoken_of(condition, text, blocks).items():
                found.setdefault(name, []).append(_preference(condition.copy(), text, float(weight), block))
        except RecursionError:
            raise Unsupported("the preference is nested too deeply", sql=text) from None
    return found


def _check_weight(text: str, weight: object) -> None:
    sound = isinstance(weight, int | float) and not isinstance(weight, bool)
    if not sound or not (math.isfinite(weight) and weight > 0):  # type: ignore[arg-type, operator]
        message = f"the weight of {text!r} is {weight!r}: it must be a number above 0, and 1 is what all else weighs"
        raise QueryError(message)


def _parsed(text: str) -> exp.Expr:
    if not text.strip():
        raise Unparsable("a preference is a condition, such as b.year > 2020; this one is empty", sql=text)
    try:
        statement = parse(f"{_BEFORE}{text}{_AFTER}")
    except QueryError as error:
        raise _moved(error, text) from None
    where = statement.args.get("where")
    alone = isinstance(statement, exp.Select) and not {k for k, v in statement.args.items() if v} - {
        "expressions",
        "where",
    }
    if where is None or not alone or not isinstance(where.this, exp.Paren):
        raise Unparsable("a preference is one condition, such as b.year > 2020", sql=text)
    condition: exp.Expr = where.this.this
    _refuse(condition, text)
    return condition


def _refuse(condition: exp.Expr, text: str) -> None:
    """What a row alone cannot answer."""
    where = _place(condition)
    if has_subquery(condition):
        raise Unsupported(
            "a preference has no sub-queries: it is looked at row by row", sql=text, position=where
        )
    if is_aggregate(condition):
        raise Unsupported(
            "a preference has no aggregates: it is looked at row by row", sql=text, position=where
        )
    if is_volatile(condition):
        raise Unsupported("a preference must say the same of a row each time", sql=text, position=where)
    if condition.find(exp.Column) is None:
        raise Unsupported(
            "a preference speaks of a column at least: else it is the same for all rows", sql=text
        )


def _moved(error: QueryError, text: str) -> QueryError:
    """An error in the text between the brackets, with its place there."""
    place = error.position
    if place is not None:
        place = min(max(place - len(_BEFORE), 0), len(text))
    return type(error)(error.message, sql=text, position=place, hint=error.hint)


def _place(node: exp.Expr) -> int | None:
    place = position_of(node)
    return None if place is None else max(place - len(_BEFORE), 0)


# Names


def _spoken_of(condition: exp.Expr, text: str, blocks: Mapping[str, Block]) -> dict[str, Block]:
    """The blocks that have all the columns that the condition speaks of."""
    columns = list(condition.find_all(exp.Column))
    having = {name: block for name, block in blocks.items() if all(_meant(c, text, block) for c in columns)}
    if having:
        return having
    for column in columns:
        if not any(_meant(column, text, block) for block in blocks.values()):
            raise _unknown(column, text, blocks)
    raise Unsupported(
        "a preference can only speak of what is joined in one place, and these columns are fetched apart from one "
        "another; write a preference for each",
        sql=text,
        position=_place(condition),
    )


def _meant(column: exp.Column, text: str, block: Block) -> Column | None:
    """Which column of the block a name means; none where it has none of that name."""
    parts = [part.name for part in column.parts]
    if len(parts) > 2:
        raise Unsupported(f"{'.'.join(parts)}: write alias.column", sql=text, position=_place(column))
    among = [a for a in _named(block) if len(parts) == 1 or a.name.lower() == parts[0].lower()]
    found = [Column(a.number, field) for a in among if (field := _field(a, parts[-1])) is not None]
    if len(found) > 1 and not any(set(found) <= set(group.columns) for group in block.classes):
        ways = " or ".join(f"{block.aliases[c.alias].name}.{c.field}" for c in found)
        raise UnknownColumn(f"{parts[-1]!r} may be {ways}", sql=text, position=_place(column))
    return found[0] if found else None


def _named(block: Block) -> list[Alias]:
    """Those that the statement names: not the engine's own, of the values of a list."""
    return [a for a in block.aliases if a.relation.literal is None]


def _field(alias: Alias, name: str) -> str | None:
    names = [f.name for f in alias.relation.fields]
    return name if name in names else next((n for n in names if n.lower() == name.lower()), None)


def _unknown(column: exp.Column, text: str, blocks: Mapping[str, Block]) -> UnknownColumn:
    parts = [part.name for part in column.parts]
    aliases = [a for block in blocks.values() for a in _named(block)]
    fields = [f.name for a in aliases for f in a.relation.fields]
    names = ", ".join(dict.fromkeys(a.name for a in aliases))
    hint = near_columns(parts[-1], fields) if len(parts) == 1 else f"the query's aliases are {names}"
    own = next((a for a in aliases if len(parts) == 2 and a.name.lower() == parts[0].lower()), None)
    if own is not None:
        hint = near_columns(parts[-1], [f.name for f in own.relation.fields])
    message = f"there is no column {'.'.join(parts)!r} in the query"
    return UnknownColumn(message, sql=text, position=_place(column), hint=hint)


# Types, and the test


def _preference(condition: exp.Expr, text: str, weight: float, block: Block) -> Preference:
    where = {}
    for column in list(condition.find_all(exp.Column)):
        meant = _meant(column, text, block)
        assert meant is not None
        name = block.aliases[meant.alias].name
        resolved = exp.column(
            exp.to_identifier(meant.field, quoted=True), exp.to_identifier(name, quoted=True)
        )
        where[name_of(resolved)] = meant
        if column is condition:
            condition = resolved
        else:
            column.replace(resolved)
    _check_types(condition, text, block, [meant.alias for meant in where.values()])
    sure = all(isinstance(node, _SURE) for node in condition.walk())
    tried = compiled(exp.Anonymous(this="TRY", expressions=[condition.copy()]), where, block.type_of)
    tests = [compiled(condition, where, block.type_of), tried] if sure else [tried]
    return Preference(text, weight, tried.reads, _lenient([t.test for t in tests]), tests[0].computes)


def _lenient(tests: Sequence[Test]) -> Test:
    """The first that does not fail on these values; where even TRY gives up, no row meets it."""

    def tried(columns: Mapping[Column, pa.Array]) -> NDArray[np.bool_]:
        for test in tests:
            try:
                return test(columns)
            except (TypeMismatch, pa.ArrowException):
                continue
        return np.zeros(len(next(iter(columns.values()))), np.bool_)

    return tried


def _check_types(condition: exp.Expr, text: str, block: Block, aliases: Sequence[int]) -> None:
    schemas = {block.aliases[a].name: block.aliases[a].relation.schema for a in dict.fromkeys(aliases)}
    names = ", ".join(exp.to_identifier(name, quoted=True).sql("duckdb") for name in schemas)
    try:
        kind = duck.shape(f"SELECT ({condition.sql('duckdb')}) AS v FROM {names}", schemas).field(0).type
    except duckdb.Error as error:
        message = duck.fault(error).message.split("\n")[0]
        raise TypeMismatch(f"{text_of(condition)}: {message}", sql=text) from None
    if not pt.is_boolean(kind):
        message = f"a preference is true or false of a row; this is of type {duck.type_name(kind)}"
        raise TypeMismatch(message, sql=text, position=0)
