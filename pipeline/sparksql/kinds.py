"""Types: what each of DuckDB's is in Spark, which become which without being asked, and how a cast is written.

A type goes by DuckDB's name. Those that are not here are not Spark's: unsigned 64 bits, intervals, times of day,
structs.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from pipeline.sparksql.asked import type_of, value_of
from pipeline.sparksql.errors import NotAgreed

INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")
_DIGITS = {"TINYINT": 3, "SMALLINT": 5, "INTEGER": 10, "BIGINT": 19, "HUGEINT": 38}
# Kept in the next wider type: enough to carry, to compare and to group, but not to reckon with.
UNSIGNED = {"UTINYINT": "SMALLINT", "USMALLINT": "INTEGER", "UINTEGER": "BIGINT"}
FLOATS = ("FLOAT", "DOUBLE")
# Without the sign's.
_BITS = {
    "TINYINT": 7,
    "UTINYINT": 8,
    "SMALLINT": 15,
    "USMALLINT": 16,
    "INTEGER": 31,
    "UINTEGER": 32,
    "BIGINT": 63,
}
NOTHING = '"NULL"'
ZONED = "TIMESTAMP WITH TIME ZONE"
_SPARK = {
    "BOOLEAN": "BOOLEAN",
    "TINYINT": "TINYINT",
    "SMALLINT": "SMALLINT",
    "INTEGER": "INT",
    "BIGINT": "BIGINT",
    "HUGEINT": "DECIMAL(38,0)",
    "FLOAT": "FLOAT",
    "DOUBLE": "DOUBLE",
    "VARCHAR": "STRING",
    "BLOB": "BINARY",
    "DATE": "DATE",
    "TIMESTAMP": "TIMESTAMP_NTZ",
    ZONED: "TIMESTAMP",
    NOTHING: "VOID",
    **{name: {"INTEGER": "INT"}.get(wider, wider) for name, wider in UNSIGNED.items()},
}
_DECIMAL = re.compile(r"DECIMAL\((\d+),(\d+)\)")
_EXACT = 15  # digits that a double holds, whatever way it is reckoned


@dataclass(frozen=True, slots=True)
class Piece:
    """An expression: Spark's text of it, and DuckDB's type; of a constant also DuckDB's text."""

    spark: str
    type: str
    constant: str = ""

    @property
    def shown(self) -> str:
        """What DuckDB can be shown in its place, when it is asked for the type of more: what is not constant must not
        look as if it were."""
        if self.constant:
            return f"({self.constant})"
        return "NULL" if self.type == NOTHING else f"(SELECT CAST(NULL AS {self.type}))"


def spark_name(type_: str) -> str:
    """Raises `NotAgreed` for a type that Spark has not."""
    name = type_ if decimal(type_) else _SPARK.get(type_)
    if name is None:
        raise NotAgreed(f"Spark has no type {type_}")
    return name


def decimal(type_: str) -> tuple[int, int] | None:
    """Its digits, and those after the point."""
    found = _DECIMAL.fullmatch(type_)
    return None if found is None else (int(found[1]), int(found[2]))


def as_decimal(type_: str) -> tuple[int, int] | None:
    """What digits a number without rounding can have."""
    return (_DIGITS[type_], 0) if type_ in _DIGITS else decimal(type_)


def is_exact(type_: str) -> bool:
    return as_decimal(type_) is not None


def constant(sql: str) -> Piece:
    """A constant's value is DuckDB's, whatever makes it."""
    type_ = type_of(sql)
    return Piece(_literal(sql, type_), type_, sql)


def coerced(piece: Piece, type_: str) -> str:
    """Spark's text of it, where DuckDB makes it a type by itself. Raises `NotAgreed`."""
    if piece.type == type_:
        return piece.spark
    if piece.constant:
        return _literal(f"CAST({piece.constant} AS {type_})", type_)
    if not _widens(piece.type, type_):
        raise NotAgreed(f"{piece.type} taken as {type_}")
    return f"CAST({piece.spark} AS {spark_name(type_)})"


def cast(piece: Piece, type_: str, verb: str = "CAST") -> str:
    """Where the statement says so; `verb` may be TRY_CAST."""
    if piece.type == type_:
        return piece.spark
    how = "{}" if _widens(piece.type, type_) else _how(piece.type, type_)
    if how is None:
        raise NotAgreed(f"{piece.type} cast to {type_}")
    return f"{verb}({how.format(piece.spark)} AS {spark_name(type_)})"


def _widens(given: str, wanted: str) -> bool:
    """Keeps its value, or says that it cannot."""
    if given == NOTHING:
        return True
    if given in _BITS and wanted in _BITS:
        return _BITS[given] < _BITS[wanted] and (given in UNSIGNED or wanted in INTEGERS)
    if is_exact(given) and ((wanted == "HUGEINT" and given in INTEGERS) or decimal(wanted)):
        return _scale(given) <= _scale(wanted)
    if wanted == "DOUBLE":
        digits = decimal(given)
        return given in (*_BITS, "HUGEINT", "FLOAT") or (digits is not None and digits[0] <= _EXACT)
    return (given, wanted) == ("DATE", "TIMESTAMP") or (given in INTEGERS and wanted == "FLOAT")


def _how(given: str, wanted: str) -> str | None:
    """What is cast in its place: DuckDB rounds where Spark cuts off."""
    if wanted in INTEGERS:
        if given in FLOATS:
            return "RINT(CAST({} AS DOUBLE))"
        if given in (*INTEGERS, "HUGEINT", "BOOLEAN"):
            return "{}"
        return "ROUND({}, 0)" if decimal(given) else None
    if decimal(wanted) and decimal(given):
        return "{}"
    if wanted == "BOOLEAN" and given in INTEGERS:
        return "{}"
    if wanted == "VARCHAR":
        if given == "DATE":
            # Other years are written otherwise.
            return "CASE WHEN YEAR({0}) NOT BETWEEN 1 AND 9999 THEN RAISE_ERROR('a year') ELSE {0} END"
        return "{}" if given in (*INTEGERS, "BOOLEAN") else None
    return "{}" if (given, wanted) == ("TIMESTAMP", "DATE") else None


def _scale(type_: str) -> int:
    found = as_decimal(type_)
    return found[1] if found else 0


def _literal(sql: str, type_: str) -> str:
    name = spark_name(type_)
    if type_ == NOTHING:
        return "NULL"
    if type_ == "BLOB":
        raise NotAgreed("a constant of type BLOB")
    shown = _SHOWN.get(type_, "{}")
    if shown != "{}" and value_of(f"isfinite({sql})") is False:
        raise NotAgreed(f"the constant {sql}")
    value = value_of(shown.format(f"({sql})"))
    if value is None:
        return f"CAST(NULL AS {name})"
    written = _WRITTEN.get(type_)
    return f"CAST({value} AS {name})" if written is None else written(value)


def text(value: object) -> str:
    """A string as Spark reads it."""
    return "'" + str(value).replace("\\", "\\\\").replace("'", "\\'") + "'"


# What DuckDB is asked for in place of a value that would lose something on its way here, ...
_SHOWN = {
    "DATE": "({0} - DATE '1970-01-01')::BIGINT",
    "TIMESTAMP": "epoch_us({0})",
    ZONED: "epoch_us({0})",
}
# ... and how values are written; others as the digits they are.
_WRITTEN: dict[str, Callable[[object], str]] = {
    "BOOLEAN": lambda value: "TRUE" if value else "FALSE",
    "VARCHAR": text,
    "FLOAT": lambda value: f"CAST('{value!r}' AS FLOAT)",
    "DOUBLE": lambda value: f"CAST('{value!r}' AS DOUBLE)",
    "DATE": lambda value: f"DATE_FROM_UNIX_DATE({value})",
    "TIMESTAMP": lambda value: f"CAST(TIMESTAMP_MICROS({value}) AS TIMESTAMP_NTZ)",
    ZONED: lambda value: f"TIMESTAMP_MICROS({value})",
}
