"""Conditions on one column of a table: less than, at most, starts with, as the engine compares and not as the database.

Each lets every row through that the engine's own comparison does; it is tested again on those that come, so a few more
do no harm. One that a NULL meets there is none.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from decimal import Context, Decimal

import pyarrow as pa
import pyarrow.types as pt

from mediator.catalog.bindfields import STARTS
from wrappers.sql.dialect import Dialect

# Puts a value among the parameters and gives its place in the text.
Place = Callable[[object], str]

_WHOLE = frozenset({"int2", "int4", "int8", "numeric"})
# SQLite takes such a text for a number, where its column looks as if there were numbers in it. Rather too many.
_NUMBER = re.compile(r"\s*[+-]?[\d.]+([eE][+-]?\d*)?\s*(\0.*)?", re.DOTALL)
_WILD_LIKE, _WILD_GLOB = re.compile(r"[%_\\]"), re.compile(r"[*?[]")
_LONGEST = 1_000  # characters of a start that are looked for: SQLite takes no pattern without an end
_DIGITS = Context(prec=40)


@dataclass(frozen=True, slots=True)
class Limit:
    """What a column is compared with, and how."""

    column: str  # as it stands in the statement
    operator: str
    type: pa.DataType
    value: object


def text_of(dialect: Dialect, limit: Limit, place: Place) -> str:
    """The condition, whose values go into places."""
    if dialect.name == "SQLite":
        return _sqlite(limit, place)
    return _postgresql(limit, place)


def alike(dialect: Dialect, type_: pa.DataType, kind: str) -> bool:
    """Whether a column of this kind is compared as the engine compares values of the declared type.

    For SQLite, where each value has a kind of its own, it is the encoding of all texts.
    """
    if dialect.name == "SQLite":
        return pt.is_integer(type_) or pt.is_floating(type_) or kind == "UTF-8"
    if pt.is_integer(type_):
        return kind in _WHOLE
    if pt.is_floating(type_):
        return kind in _WHOLE | {"float4", "float8"}
    if pt.is_date(type_):
        return kind == "date"
    if pt.is_timestamp(type_):
        return kind in {"date", "timestamp", "timestamptz"}
    return kind in {"text", "varchar"}


def _postgresql(limit: Limit, place: Place) -> str:
    column, operator, value = limit.column, limit.operator, limit.value
    if isinstance(value, str):
        # A cast that texts do without. Other types have to get past it, to be told apart by what they are.
        column = f'CAST({column} AS text) COLLATE "C"'
        value, cut = _without_nul(value)
        if operator == STARTS:
            pattern = _WILD_LIKE.sub(r"\\\g<0>", value) + "%"
            return f"{column} LIKE {place(pattern)}"
        return f"{column} {operator[0] + '=' if cut else operator} {place(value)}"
    texts = [f"{column} {operator} {place(value)}"]
    if isinstance(value, float) and math.isfinite(value):
        # A column of decimals is found by an index only if it is compared with one.
        texts.append(f"{column} {operator[0]}= {place(_beyond(value, operator))}")
    return " AND ".join(texts)


def _sqlite(limit: Limit, place: Place) -> str:
    column, operator, value = limit.column, limit.operator, limit.value
    if pt.is_timestamp(limit.type) and isinstance(value, date):
        return _day(column, operator, value, place)
    if isinstance(value, date):
        return f"{column} COLLATE BINARY {operator} {place(value)}"
    if not isinstance(value, str):
        # With a kind of its own, it is a number also to a column of texts.
        return f"{column} {operator} CAST({place(value)} AS NUMERIC)"
    if operator == STARTS:
        start = _without_nul(value)[0][:_LONGEST]
        pattern = _WILD_GLOB.sub(r"[\g<0>]", start) + "*"
        return f"{column} GLOB {place(pattern)}"
    if _NUMBER.fullmatch(value):
        column = f"CAST({column} AS TEXT)"
    return f"{column} COLLATE BINARY {operator} {place(value)}"


def _day(column: str, operator: str, value: date, place: Place) -> str:
    """SQLite writes times in several ways, which all begin with the day, in a zone that may be another."""
    day = value.toordinal()
    if operator[0] == ">":
        bound = date.fromordinal(max(1, day - 1)).isoformat()
        return f"{column} COLLATE BINARY >= {place(bound)}"
    after = date.fromordinal(day + 2).isoformat() if day + 2 <= date.max.toordinal() else ":"
    return f"{column} COLLATE BINARY < {place(after)}"


def _without_nul(value: str) -> tuple[str, bool]:
    """Its beginning, where there is a NUL in it: no text of PostgreSQL has one, and a pattern of SQLite ends there."""
    start, nul, _ = value.partition("\0")
    return start, bool(nul)


def _beyond(value: float, operator: str) -> Decimal:
    """No decimal that becomes this float is on the other side of it."""
    exact = Decimal(value)
    away = max(abs(exact) * Decimal(2**-50), Decimal("1e-300"))
    return _DIGITS.add(exact, away) if operator[0] == "<" else _DIGITS.subtract(exact, away)
