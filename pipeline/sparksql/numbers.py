"""What is reckoned, and dates."""

from __future__ import annotations

import re

from sqlglot import exp

from pipeline.sparksql.asked import type_of, value_of
from pipeline.sparksql.errors import NotAgreed
from pipeline.sparksql.kinds import FLOATS, INTEGERS, Piece, as_decimal, coerced, decimal, spark_name
from pipeline.sparksql.rules import CALLS, Writer, rule, what

_SIGNS = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*"}
_MOST_DIGITS = 38
_WHOLE = 1 << 52  # from there on every double is a whole number
_FINEST = 15  # digits after the point that a double is rounded to
_PARTS = {
    "year": "YEAR({})", "month": "MONTH({})", "day": "DAY({})", "quarter": "QUARTER({})", "doy": "DAYOFYEAR({})",
    "dayofyear": "DAYOFYEAR({})", "dow": "DAYOFWEEK({}) - 1", "dayofweek": "DAYOFWEEK({}) - 1",
    "week": "WEEKOFYEAR({})",
}  # fmt: skip
_UNITS = ("year", "quarter", "month", "week", "day")


@rule(exp.Add, "this", "expression")
@rule(exp.Sub, "this", "expression")
@rule(exp.Mul, "this", "expression")
def _reckon(writer: Writer, node: exp.Binary) -> Piece:
    left, right, sign = writer.piece(node.this), writer.piece(node.expression), _SIGNS[type(node)]
    type_ = type_of(f"{left.shown} {sign} {right.shown}")
    if "DATE" in (left.type, right.type):
        return _date(left, right, sign, type_)
    if type_ in (*INTEGERS, *FLOATS):
        return Piece(f"({coerced(left, type_)} {sign} {coerced(right, type_)})", type_)
    if type_ == "HUGEINT":
        return Piece(f"CAST({coerced(left, type_)} {sign} {coerced(right, type_)} AS DECIMAL(38,0))", type_)
    if decimal(type_):
        return _decimal(left, right, sign, type_)
    raise NotAgreed(f"{left.type} {sign} {right.type}")


def _decimal(left: Piece, right: Piece, sign: str, type_: str) -> Piece:
    """Where Spark needs no more digits than it has: else it would round."""
    digits, scale = decimal(type_) or (0, 0)
    if sign == "*":
        sides = [as_decimal(p.type) for p in (left, right)]
        if None in sides or sum(side[0] for side in sides if side) >= _MOST_DIGITS:
            raise NotAgreed(f"{left.type} * {right.type}")
        texts = [
            coerced(p, f"DECIMAL({side[0]},{side[1]})")
            for p, side in zip((left, right), sides, strict=True)
            if side
        ]
    else:
        if digits >= _MOST_DIGITS and scale:
            raise NotAgreed(f"{left.type} {sign} {right.type}")
        texts = [coerced(p, type_) for p in (left, right)]
    return Piece(f"CAST({texts[0]} {sign} {texts[1]} AS {type_})", type_)


def _date(left: Piece, right: Piece, sign: str, type_: str) -> Piece:
    if (left.type, right.type, sign) == ("DATE", "DATE", "-"):
        return Piece(f"CAST(DATEDIFF({left.spark}, {right.spark}) AS BIGINT)", type_)
    if left.type in INTEGERS and sign == "+":
        left, right = right, left
    if left.type != "DATE" or right.type not in INTEGERS[:3] or type_ != "DATE":
        raise NotAgreed(f"{left.type} {sign} {right.type}")
    days = coerced(right, "INTEGER")
    return Piece(
        f"DATE_ADD({left.spark}, {days})" if sign == "+" else f"DATE_SUB({left.spark}, {days})", type_
    )


@rule(exp.Neg, "this")
def _negative(writer: Writer, node: exp.Neg) -> Piece:
    return _alone(writer, node, "(- {})", "- {}")


@rule(exp.Abs, "this")
def _absolute(writer: Writer, node: exp.Abs) -> Piece:
    return _alone(writer, node, "ABS({})", "abs({})")


def _alone(writer: Writer, node: exp.Expr, how: str, asked: str) -> Piece:
    piece = writer.piece(node.this)
    type_ = type_of(asked.format(piece.shown))
    if type_ != piece.type or not (as_decimal(type_) or type_ in FLOATS):
        raise NotAgreed(f"{what(node)} of {piece.type}")
    return Piece(how.format(piece.spark), type_)


@rule(exp.Div, "this", "expression")
def _divide(writer: Writer, node: exp.Div) -> Piece:
    left, right = writer.piece(node.this), writer.piece(node.expression)
    type_ = type_of(f"{left.shown} / {right.shown}")
    if type_ != "DOUBLE":
        raise NotAgreed(f"{left.type} / {right.type}")
    return Piece(divided(left, right), type_)


def divided(left: Piece, right: Piece) -> str:
    """In Spark a division by zero is an error, in DuckDB it is what processors make of it."""
    above, below = coerced(left, "DOUBLE"), coerced(right, "DOUBLE")
    endless = "CAST('Infinity' AS DOUBLE)"
    if right.type in FLOATS:
        endless = f"(CASE WHEN CAST({below} AS STRING) = '-0.0' THEN CAST('-Infinity' AS DOUBLE) ELSE {endless} END)"
    return f"CASE WHEN {below} = 0 THEN {above} * {endless} ELSE TRY_DIVIDE({above}, {below}) END"


@rule(exp.IntDiv, "this", "expression")
def _whole(writer: Writer, node: exp.IntDiv) -> Piece:
    left, right, type_ = _of_integers(writer, node, "//")
    return Piece(_quotient(left, right, type_), type_)


@rule(exp.Mod, "this", "expression")
def _rest(writer: Writer, node: exp.Mod) -> Piece:
    left, right, type_ = _of_integers(writer, node, "%")
    return Piece(remainder(left, right, type_), type_)


def remainder(left: str, right: str, type_: str) -> str:
    """An error where the quotient is too large, as in DuckDB; to Spark's % that is no matter."""
    return f"({left} - {_quotient(left, right, type_)} * {right})"


def _quotient(left: str, right: str, type_: str) -> str:
    return f"CAST({left} DIV {right} AS {spark_name(type_)})"


def _of_integers(writer: Writer, node: exp.Binary, sign: str) -> tuple[str, str, str]:
    left, right = writer.piece(node.this), writer.piece(node.expression)
    type_ = type_of(f"{left.shown} {sign} {right.shown}")
    if type_ not in INTEGERS:
        raise NotAgreed(f"{left.type} {sign} {right.type}")
    return coerced(left, type_), coerced(right, type_), type_


@rule(exp.Ceil, "this")
def _ceiling(writer: Writer, node: exp.Ceil) -> Piece:
    return _to_whole(writer, node, "CEIL")


@rule(exp.Floor, "this")
def _floor(writer: Writer, node: exp.Floor) -> Piece:
    return _to_whole(writer, node, "FLOOR")


def _to_whole(writer: Writer, node: exp.Expr, function: str) -> Piece:
    piece = writer.piece(node.this)
    type_ = type_of(f"{function}({piece.shown})")
    if piece.type in INTEGERS:
        return Piece(coerced(piece, type_), type_)
    if decimal(piece.type) and decimal(type_):
        return Piece(f"CAST({function}({piece.spark}) AS {type_})", type_)
    if (piece.type, type_) != ("DOUBLE", "DOUBLE"):
        raise NotAgreed(f"{what(node)} of {piece.type}")
    return Piece(to_whole(piece.spark, function), type_)


def to_whole(value: str, function: str) -> str:
    """Spark makes an integer of it: but the largest are none, and no integer is the zero below zero."""
    zero = f"{value} <= 0 AND {value} > -1" if function == "CEIL" else f"{value} = 0"
    return (
        f"CASE WHEN {zero} THEN {value} * CAST(0 AS DOUBLE) "
        f"WHEN ABS({value}) < {_WHOLE} THEN CAST({function}({value}) AS DOUBLE) ELSE {value} END"
    )


@rule(exp.Round, "this", "decimals")
def _round(writer: Writer, node: exp.Round) -> Piece:
    piece, digits = writer.piece(node.this), 0
    if node.args.get("decimals") is not None:
        digits = _number(node.args["decimals"])
        type_ = type_of(f"round({piece.shown}, {digits})")
    else:
        type_ = type_of(f"round({piece.shown})")
    if not 0 <= digits <= _FINEST:
        raise NotAgreed(f"round(...) to {digits} digits")
    if piece.type in INTEGERS and type_ == piece.type:
        return piece
    if decimal(piece.type) and decimal(type_):
        return Piece(f"CAST(ROUND({piece.spark}, {digits}) AS {type_})", type_)
    if (piece.type, type_) != ("DOUBLE", "DOUBLE"):
        raise NotAgreed(f"round(...) of {piece.type}")
    return Piece(rounded(piece.spark, digits), type_)


def rounded(value: str, digits: int) -> str:
    """DuckDB rounds what it has multiplied; Spark would round the digits as they are written."""
    factor = f"CAST('1e{digits}' AS DOUBLE)"
    product = f"({value} * {factor})"
    return (
        f"CASE WHEN ABS({product}) < CAST(0.5 AS DOUBLE) THEN {value} * CAST(0 AS DOUBLE) "  # it may be below zero
        f"WHEN ABS({product}) < CAST('Infinity' AS DOUBLE) THEN ROUND({product}) / {factor} ELSE {value} END"
    )


@rule(exp.Year, "this")
@rule(exp.Month, "this")
@rule(exp.Day, "this")
@rule(exp.Quarter, "this")
@rule(exp.DayOfWeek, "this")
@rule(exp.DayOfYear, "this")
@rule(exp.Week, "this")
def _part(writer: Writer, node: exp.Func) -> Piece:
    return _part_of(writer.piece(node.this), type(node).__name__.lower())


@rule(exp.Extract, "this", "expression")
def _extract(writer: Writer, node: exp.Extract) -> Piece:
    return _part_of(writer.piece(node.expression), node.name.lower())


def _date_part(writer: Writer, node: exp.Anonymous) -> Piece:
    unit, value = node.expressions
    if not (isinstance(unit, exp.Literal) and unit.is_string):
        raise NotAgreed("date_part(...) of a part that is not a constant")
    return _part_of(writer.piece(value), unit.name.lower())


CALLS["date_part"] = 2, _date_part


def _part_of(piece: Piece, part: str) -> Piece:
    if piece.type not in ("DATE", "TIMESTAMP") or part not in _PARTS:
        raise NotAgreed(f"{part} of {piece.type}")
    type_ = type_of(f"EXTRACT({part} FROM {piece.shown})")
    return Piece(f"CAST({_PARTS[part].format(piece.spark)} AS {spark_name(type_)})", type_)


@rule(exp.TimestampTrunc, "this", "unit")
@rule(exp.DateTrunc, "this", "unit")
def _truncate(writer: Writer, node: exp.Func) -> Piece:
    piece, unit = writer.piece(node.this), str(node.args["unit"].name).lower()
    if piece.type not in ("DATE", "TIMESTAMP") or unit not in _UNITS:
        raise NotAgreed(f"date_trunc('{unit}', ...) of {piece.type}")
    type_ = type_of(f"date_trunc('{unit}', {piece.shown})")
    whole = f"DATE_TRUNC('{unit.upper()}', {coerced(piece, 'TIMESTAMP')})"
    return Piece(f"CAST({whole} AS {spark_name(type_)})", type_)


@rule(exp.DateDiff, "this", "expression", "unit")
def _days(writer: Writer, node: exp.DateDiff) -> Piece:
    later, earlier = writer.piece(node.this), writer.piece(node.expression)
    if (later.type, earlier.type) != ("DATE", "DATE") or node.args["unit"].name.lower() != "day":
        raise NotAgreed("date_diff(...) of more than the days between dates")
    return Piece(f"CAST(DATEDIFF({later.spark}, {earlier.spark}) AS BIGINT)", "BIGINT")


def _number(node: exp.Expr) -> int:
    sql = node.sql("duckdb")
    if not re.fullmatch(r"-?\d+", sql):
        raise NotAgreed(f"{sql}, where a number was expected")
    return int(str(value_of(sql)))
