"""What is made of many rows: aggregates, and windows.

An average, and a sum of doubles, is rounded on its way, in either engine: the last digits may differ. All else is
exact.
"""

from __future__ import annotations

import re

from sqlglot import exp

from pipeline.sparksql.asked import type_of
from pipeline.sparksql.conditions import as_truth
from pipeline.sparksql.errors import NotAgreed
from pipeline.sparksql.kinds import (
    FLOATS,
    INTEGERS,
    Piece,
    as_decimal,
    coerced,
    decimal,
    spark_name,
)
from pipeline.sparksql.rules import AGGREGATES, Writer, aggregate, check, rule, what

_SUMMED = 28  # digits of a sum's terms, so that Spark adds with all that it has
_FUNCTIONS: dict[type[exp.Expr], str] = {exp.Sum: "sum", exp.Avg: "avg", exp.Min: "min", exp.Max: "max"}
# Of which row of a window it is; Spark has them in other types.
_RANKS: dict[type[exp.Expr], str] = {
    exp.RowNumber: "ROW_NUMBER()",
    exp.Rank: "RANK()",
    exp.DenseRank: "DENSE_RANK()",
    exp.PercentRank: "PERCENT_RANK()",
    exp.CumeDist: "CUME_DIST()",
}
_PLACES: dict[type[exp.Expr], str] = {
    exp.Lag: "LAG",
    exp.Lead: "LEAD",
    exp.FirstValue: "FIRST_VALUE",
    exp.LastValue: "LAST_VALUE",
}
_EDGES = ("UNBOUNDED", "CURRENT ROW")


def _argument(writer: Writer, node: exp.Expr) -> tuple[str, Piece]:
    """DISTINCT, and what it is of."""
    inner = node.this
    if not isinstance(inner, exp.Distinct):
        return "", writer.piece(inner)
    check(inner, frozenset({"expressions"}))
    if len(inner.expressions) != 1:
        raise NotAgreed(f"{what(node)} of several columns")
    return "DISTINCT ", writer.piece(inner.expressions[0])


def _typed(node: exp.Expr, piece: Piece) -> str:
    return type_of(f"{_FUNCTIONS[type(node)]}({piece.shown})")


@aggregate(exp.Count, "this")
def _count(writer: Writer, node: exp.Count, tail: str) -> Piece:
    if node.this is None or isinstance(node.this, exp.Star):
        return Piece(f"COUNT(*){tail}", "BIGINT")
    distinct, piece = _argument(writer, node)
    return Piece(f"COUNT({distinct}{piece.spark}){tail}", "BIGINT")


@aggregate(exp.CountIf, "this")
def _count_if(writer: Writer, node: exp.CountIf, tail: str) -> Piece:
    """Of nothing but NULLs it is NULL in DuckDB, and 0 in Spark: so it is added up."""
    piece = writer.piece(node.this)
    type_ = type_of(f"count_if({piece.shown})")
    return Piece(f"CAST({_added(as_truth(piece))}{tail} AS {spark_name(type_)})", type_)


def _added(condition: str) -> str:
    return f"SUM(CAST({condition} AS BIGINT))"


@aggregate(exp.Sum, "this")
def _sum(writer: Writer, node: exp.Sum, tail: str) -> Piece:
    distinct, piece = _argument(writer, node)
    type_ = _typed(node, piece)
    return Piece(f"CAST({summed(piece, type_, distinct, tail)} AS {spark_name(type_)})", type_)


def summed(piece: Piece, type_: str, distinct: str, tail: str) -> str:
    """In a type with room for all rows: DuckDB adds integers in 128 bits."""
    digits = as_decimal(piece.type)
    if type_ == "DOUBLE" and piece.type in FLOATS:
        term = coerced(piece, "DOUBLE")
    elif piece.type in INTEGERS[:-1]:
        term = coerced(piece, "BIGINT")
    elif digits and (type_ == "HUGEINT" or decimal(type_)):
        term = f"CAST({piece.spark} AS DECIMAL({max(_SUMMED, digits[0])},{digits[1]}))"
    else:
        raise NotAgreed(f"sum(...) of {piece.type}")
    return f"SUM({distinct}{term}){tail}"


@aggregate(exp.Avg, "this")
def _average(writer: Writer, node: exp.Avg, tail: str) -> Piece:
    distinct, piece = _argument(writer, node)
    if _typed(node, piece) != "DOUBLE":
        raise NotAgreed(f"avg(...) of {piece.type}")
    sum_type = type_of(f"sum({piece.shown})")
    total = f"CAST({summed(piece, sum_type, distinct, tail)} AS DOUBLE)"
    return Piece(f"TRY_DIVIDE({total}, COUNT({distinct}{piece.spark}){tail})", "DOUBLE")


@aggregate(exp.Min, "this")
@aggregate(exp.Max, "this")
def _extreme(writer: Writer, node: exp.Func, tail: str) -> Piece:
    distinct, piece = _argument(writer, node)
    type_ = _typed(node, piece)
    function = _FUNCTIONS[type(node)].upper()
    return Piece(f"{function}({distinct}{coerced(piece, type_)}){tail}", type_)


@aggregate(exp.LogicalAnd, "this")
@aggregate(exp.LogicalOr, "this")
def _together(writer: Writer, node: exp.Func, tail: str) -> Piece:
    function = "BOOL_AND" if isinstance(node, exp.LogicalAnd) else "BOOL_OR"
    return Piece(f"{function}({as_truth(writer.piece(node.this))}){tail}", "BOOLEAN")


def aggregated(writer: Writer, node: exp.Expr, tail: str = "") -> Piece:
    found = AGGREGATES.get(type(node))
    if found is None:
        raise NotAgreed(f"{what(node)} over rows")
    check(node, found[0])
    return found[1](writer, node, tail)


@rule(exp.Filter, "this", "expression")
def _filtered(writer: Writer, node: exp.Filter) -> Piece:
    condition = as_truth(writer.piece(node.expression.this))
    return aggregated(writer, node.this, f" FILTER (WHERE {condition})")


@rule(exp.Window, "this", "partition_by", "order", "spec", "alias")
def _window(writer: Writer, node: exp.Window) -> Piece:
    over = node
    if node.args.get("alias") is not None:
        if any(node.args.get(name) for name in ("partition_by", "order", "spec")):
            raise NotAgreed("a window that goes on from another")
        over = writer.window(node.args["alias"].name)
        check(over, frozenset({"this", "partition_by", "order", "spec"}))
    function, order, spec = node.this, over.args.get("order"), over.args.get("spec")
    placed = type(function) in _RANKS or type(function) in _PLACES or isinstance(function, exp.Ntile)
    if placed and order is None:
        raise NotAgreed(f"{what(function)} over rows in no order")
    if placed and spec is not None and not isinstance(function, (exp.FirstValue, exp.LastValue)):
        raise NotAgreed(f"{what(function)} with a frame")
    parts = []
    if over.args.get("partition_by"):
        parts.append("PARTITION BY " + ", ".join(writer.piece(e).spark for e in over.args["partition_by"]))
    if order is not None:
        parts.append(
            "ORDER BY " + ", ".join(ordered(writer.piece(e.this).spark, e) for e in order.expressions)
        )
    if spec is not None:
        parts.append(_frame(spec))
    tail = f" OVER ({' '.join(parts)})"
    return _placed(writer, function, tail) if placed else _running(writer, function, tail)


def _running(writer: Writer, function: exp.Expr, tail: str) -> Piece:
    if isinstance(function.this, exp.Distinct):
        raise NotAgreed(f"DISTINCT in a window's {what(function)}")
    return aggregated(writer, function, tail)


def _placed(writer: Writer, function: exp.Expr, tail: str) -> Piece:
    if type(function) in _RANKS:
        check(function, frozenset())
        call = _RANKS[type(function)]
        type_ = "DOUBLE" if isinstance(function, (exp.PercentRank, exp.CumeDist)) else "BIGINT"
        return Piece(f"CAST({call}{tail} AS {type_})", type_)
    if isinstance(function, exp.Ntile):
        check(function, frozenset({"this"}))
        return Piece(f"CAST(NTILE({_number(function.this)}){tail} AS BIGINT)", "BIGINT")
    check(function, frozenset({"this", "offset"}))
    piece = writer.piece(function.this)
    spark_name(piece.type)
    offset = function.args.get("offset")
    more = "" if offset is None else f", {_number(offset)}"
    return Piece(f"{_PLACES[type(function)]}({piece.spark}{more}){tail}", piece.type)


def _frame(spec: exp.WindowSpec) -> str:
    check(spec, frozenset({"kind", "start", "start_side", "end", "end_side"}))
    kind = str(spec.args["kind"]).upper()
    start = _edge(kind, spec.args.get("start"), spec.args.get("start_side"))
    end = _edge(kind, spec.args.get("end") or "CURRENT ROW", spec.args.get("end_side"))
    return f"{kind} BETWEEN {start} AND {end}"


def _edge(kind: str, edge: object, side: object) -> str:
    word = str(edge).upper() if isinstance(edge, str) else ""
    if word in _EDGES and kind in ("ROWS", "RANGE"):
        return f"{word} {str(side or '').upper()}".strip()
    if kind == "ROWS" and isinstance(edge, exp.Expr):
        return f"{_number(edge)} {str(side).upper()}"
    raise NotAgreed(f"a frame in {kind}")


def ordered(spark: str, node: exp.Ordered) -> str:
    """Both say where NULLs go, and sqlglot what DuckDB does where nothing is said."""
    check(node, frozenset({"this", "desc", "nulls_first"}))
    way = "DESC" if node.args.get("desc") else "ASC"
    return f"{spark} {way} NULLS {'FIRST' if node.args.get('nulls_first') else 'LAST'}"


def _number(node: exp.Expr) -> str:
    sql = node.sql("duckdb")
    if not re.fullmatch(r"\d+", sql):
        raise NotAgreed(f"{sql}, where a plain number was expected")
    return sql
