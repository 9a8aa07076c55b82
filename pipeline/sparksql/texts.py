"""Text. Both engines count code points, and compare bytes."""

from __future__ import annotations

import re

from sqlglot import exp

from pipeline.sparksql.asked import letters, value_of
from pipeline.sparksql.errors import NotAgreed
from pipeline.sparksql.kinds import INTEGERS, Piece, text
from pipeline.sparksql.rules import CALLS, Writer, rule, what

# What DuckDB trims where nothing is said: the spaces of Unicode. Spark trims the one of ASCII.
_SPACES = " \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
_SIDES = {"": "BOTH", "BOTH": "BOTH", "LEADING": "LEADING", "TRAILING": "TRAILING"}
_INTEGER = re.compile(r"\d+")


def _texts(writer: Writer, node: exp.Expr, *parts: exp.Expr) -> list[str]:
    pieces = [writer.piece(part) for part in parts]
    for piece in pieces:
        if piece.type != "VARCHAR":
            raise NotAgreed(f"{what(node)} of {piece.type}")
    return [piece.spark for piece in pieces]


def _written(piece: Piece) -> str:
    """What is put between texts."""
    if piece.type == "VARCHAR":
        return piece.spark
    if piece.type in INTEGERS:
        return f"CAST({piece.spark} AS STRING)"
    raise NotAgreed(f"{piece.type} beside text")


@rule(exp.DPipe, "this", "expression")
def _beside(writer: Writer, node: exp.DPipe) -> Piece:
    left, right = (_written(writer.piece(part)) for part in (node.this, node.expression))
    return Piece(f"({left} || {right})", "VARCHAR")


@rule(exp.Concat, "expressions")
def _concat(writer: Writer, node: exp.Concat) -> Piece:
    parts = [_or_nothing(_written(writer.piece(e))) for e in node.expressions]
    return Piece(f"CONCAT({', '.join(parts)})", "VARCHAR")


def _or_nothing(value: str) -> str:
    return f"COALESCE({value}, '')"


@rule(exp.ConcatWs, "expressions")
def _concat_with(writer: Writer, node: exp.ConcatWs) -> Piece:
    parts = [_written(writer.piece(e)) for e in node.expressions]
    return Piece(f"CONCAT_WS({', '.join(parts)})", "VARCHAR")


@rule(exp.Upper, "this")
def _upper(writer: Writer, node: exp.Upper) -> Piece:
    return _spelt(writer, node, "upper")


@rule(exp.Lower, "this")
def _lower(writer: Writer, node: exp.Lower) -> Piece:
    return _spelt(writer, node, "lower")


def _spelt(writer: Writer, node: exp.Expr, function: str) -> Piece:
    """Letter by letter: Spark knows languages, in which one letter may become two."""
    (value,) = _texts(writer, node, node.this)
    before, after = letters(function)
    return Piece(f"TRANSLATE({value}, {text(before)}, {text(after)})", "VARCHAR")


@rule(exp.Length, "this")
def _length(writer: Writer, node: exp.Length) -> Piece:
    (value,) = _texts(writer, node, node.this)
    return Piece(f"CAST(CHAR_LENGTH({value}) AS BIGINT)", "BIGINT")


@rule(exp.Substring, "this", "start", "length")
def _substring(writer: Writer, node: exp.Substring) -> Piece:
    (value,) = _texts(writer, node, node.this)
    start = _count(node, "start")
    if start < 1:
        raise NotAgreed("substring(...) that begins before the first letter")
    length = "" if node.args.get("length") is None else f", {_count(node, 'length')}"
    return Piece(f"SUBSTRING({value}, {start}{length})", "VARCHAR")


@rule(exp.Left, "this", "expression")
def _left(writer: Writer, node: exp.Left) -> Piece:
    (value,) = _texts(writer, node, node.this)
    return Piece(f"LEFT({value}, {_count(node, 'expression')})", "VARCHAR")


@rule(exp.Right, "this", "expression")
def _right(writer: Writer, node: exp.Right) -> Piece:
    (value,) = _texts(writer, node, node.this)
    return Piece(f"RIGHT({value}, {_count(node, 'expression')})", "VARCHAR")


@rule(exp.Replace, "this", "expression", "replacement")
def _replace(writer: Writer, node: exp.Replace) -> Piece:
    parts = _texts(writer, node, node.this, node.expression, node.args["replacement"])
    return Piece(f"REPLACE({', '.join(parts)})", "VARCHAR")


@rule(exp.Trim, "this", "expression", "position")
def _trim(writer: Writer, node: exp.Trim) -> Piece:
    (value,) = _texts(writer, node, node.this)
    chars = _SPACES
    if node.args.get("expression") is not None:
        chars = (
            str(value_of(node.expression.sql("duckdb"))) if isinstance(node.expression, exp.Literal) else ""
        )
    side = _SIDES.get(str(node.args.get("position") or "").upper())
    if not chars or side is None:
        raise NotAgreed("trim(...) of letters that are not a constant")
    return Piece(f"TRIM({side} {text(chars)} FROM {value})", "VARCHAR")


@rule(exp.StrPosition, "this", "substr")
def _position(writer: Writer, node: exp.StrPosition) -> Piece:
    value, wanted = _texts(writer, node, node.this, node.args["substr"])
    return Piece(f"CAST(INSTR({value}, {wanted}) AS BIGINT)", "BIGINT")


@rule(exp.Contains, "this", "expression")
@rule(exp.StartsWith, "this", "expression")
@rule(exp.EndsWith, "this", "expression")
def _holds(writer: Writer, node: exp.Func) -> Piece:
    value, wanted = _texts(writer, node, node.this, node.expression)
    return Piece(f"{type(node).__name__.upper()}({value}, {wanted})", "BOOLEAN")


def _prefix(writer: Writer, node: exp.Anonymous) -> Piece:
    value, wanted = _texts(writer, node, *node.expressions)
    return Piece(f"STARTSWITH({value}, {wanted})", "BOOLEAN")


def _suffix(writer: Writer, node: exp.Anonymous) -> Piece:
    value, wanted = _texts(writer, node, *node.expressions)
    return Piece(f"ENDSWITH({value}, {wanted})", "BOOLEAN")


CALLS["prefix"] = 2, _prefix
CALLS["suffix"] = 2, _suffix


def _count(node: exp.Expr, name: str) -> int:
    sql = node.args[name].sql("duckdb")
    if not _INTEGER.fullmatch(sql):
        raise NotAgreed(f"{what(node)} with a {name} that is not a plain number")
    return int(sql)
