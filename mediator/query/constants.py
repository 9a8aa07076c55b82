"""Constant expressions as values: what `DATE '2026-01-31' + 1` is, and what it is as a field's own type."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.types as pt
from sqlglot import exp

from mediator.errors import TypeMismatch
from mediator.query import duck
from mediator.query.types import family

_EXACT = {"DOUBLE": 2.0**53, "FLOAT": 2.0**24}  # below that no two integers are the same float


_WHOLE = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"}
TEXT = "text"  # written as such, which has the type of whatever it is compared with


class Constant(NamedTuple):
    """A value in a field's type; `fits` is false for one that no value of that type equals."""

    value: object
    fits: bool
    kind: str = TEXT  # what DuckDB calls the type of the expression


def constant(node: exp.Expr, type: pa.DataType) -> Constant | None:
    """The expression's value as this type, if comparing in this type is what DuckDB means by `field =
    expression`.

    None where it is not, or where the value cannot be told before the query runs. Raises `TypeMismatch`
    for text that spells no value of the type.
    """
    known = _at_sight(node, type)
    if known is not None:
        return known
    text, target = node.sql("duckdb"), duck.type_name(type)
    literal = isinstance(node, exp.Literal) and node.is_string
    light = not duck.computes(text)
    try:
        asked = f"SELECT v, TRY_CAST(v AS {target}) AS c, typeof(v) AS t FROM (SELECT {text} AS v)"
        row = duck.run(asked, {}, light=light)
        kind = str(row["t"][0].as_py())
        if not literal and (kind == "VARCHAR") != (target == "VARCHAR"):
            return Constant(None, False, kind) if row["v"][0].as_py() is None else None
        if _coarser(kind, row["v"][0].as_py(), type):
            return None
        equal = f"SELECT TRY_CAST({text} AS {target}) = {text} AS s"
        same = literal or duck.run(equal, {}, light=light)["s"][0].as_py()
        value = row["c"].cast(type)[0].as_py()
    except (duckdb.Error, OverflowError):  # Python knows no infinite date
        return None
    if value is None and row["v"][0].as_py() is not None and not literal:
        _check_comparable(kind, target)
    if isinstance(value, float) and math.isnan(value):  # which Python finds unequal to itself
        return None
    if literal and value is None:
        raise TypeMismatch(f"{text} is not a value of type {target}")
    return Constant(value, value is not None and bool(same), TEXT if literal else kind)


def each_by_itself(found: Sequence[Constant], type: pa.DataType) -> bool:
    """Whether a list of these means the same if a field of this type is compared with one after the other: DuckDB has
    one type for the whole list and the field."""
    others = {c.kind for c in found} - {duck.type_name(type), '"NULL"'}
    kinds = {_sort(kind) for kind in others}
    exact = [_EXACT[kind] for kind in kinds if kind in _EXACT]
    if exact and len(found) > 1 and pt.is_integer(type):
        # As floats, but as long as they are small each whole number is one of its own.
        small = all(
            isinstance(c.value, int) and abs(c.value) < min(exact) for c in found if c.value is not None
        )
        return small and not kinds - {"whole", "decimal", *_EXACT}
    if kinds == {"whole", TEXT}:
        return not pt.is_boolean(type)
    return len(kinds) < 2 or kinds == {"whole", "decimal"}


def _sort(kind: str) -> str:
    """All whole numbers go together, and so do all decimals, whatever their width."""
    return "whole" if kind in _WHOLE else "decimal" if kind.startswith("DECIMAL") else kind


def _check_comparable(one: str, other: str) -> None:
    """Told apart from a value that the other type has no room for: of some types none is ever equal to another's."""
    try:
        duck.run(f"SELECT CASE WHEN true THEN NULL::{one} ELSE NULL::{other} END", {}, light=True)
    except duckdb.Error:
        raise TypeMismatch(f"values of type {other} and {one} cannot be compared") from None


def _coarser(name: str, value: object, type: pa.DataType) -> bool:
    """Whether DuckDB, which compares as floats here, takes several values of the type to be the one."""
    if name not in _EXACT or not isinstance(value, float):
        return False
    return pt.is_decimal(type) or (pt.is_integer(type) and abs(value) >= _EXACT[name])


def _at_sight(node: exp.Expr, type: pa.DataType) -> Constant | None:
    """The literals that are read without asking DuckDB: a list may have thousands."""
    if not isinstance(node, exp.Literal):
        return None
    if node.is_string:
        return Constant(node.this, True, TEXT) if family(type) == pa.string() else None
    digits = str(node.this)
    if not (digits.isascii() and digits.isdigit()) or not pt.is_integer(type) or family(type) != pa.int64():
        return None
    return Constant(int(digits), True, "BIGINT") if int(digits) < 2 ** (_bits(type)) else None


def _bits(type: pa.DataType) -> int:
    """How many bits of a value there are besides its sign."""
    return int(type.bit_width) - (1 if pt.is_signed_integer(type) else 0)


def truth(node: exp.Expr, sql: str, position: int | None) -> bool:
    """Whether a condition without columns is TRUE."""
    try:
        text = node.sql("duckdb")
        asked = f"SELECT coalesce(({text})::BOOLEAN, false) AS t"
        return duck.run(asked, {}, light=not duck.computes(text))["t"][0].as_py() is True
    except duckdb.Error as error:
        raise TypeMismatch(duck.fault(error).message, sql=sql, position=position) from None
