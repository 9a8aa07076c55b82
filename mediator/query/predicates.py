"""Conditions compiled: over columns as Arrow arrays, for which positions is it TRUE?

Simple comparisons of integers, strings, booleans and dates run in pyarrow, all else in DuckDB; both give
what DuckDB gives, with SQL's three values. A compiled condition may be called from several threads at
once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray
from sqlglot import exp

from mediator.catalog.functions import Function
from mediator.errors import TypeMismatch
from mediator.query import duck
from mediator.query.constants import Constant, constant, each_by_itself
from mediator.query.functions import functions_in
from mediator.query.model import Column
from mediator.query.operands import Columns, Operand, TypeOf, Where, operand
from mediator.query.trees import Name, collates, is_constant, name_of, names_in, plain, text_of
from mediator.query.types import family

Test = Callable[[Columns], NDArray[np.bool_]]
# Three-valued: true, false or null for each position.
Truth = Callable[[Columns], pa.Array]

_COMPARE = {
    exp.EQ: pc.equal,
    exp.NEQ: pc.not_equal,
    exp.LT: pc.less,
    exp.LTE: pc.less_equal,
    exp.GT: pc.greater,
    exp.GTE: pc.greater_equal,
}


class Compiled(NamedTuple):
    """The columns that a condition reads, its test, which keeps the callers' functions alive that it calls, and whether
    that may take longer than its rows are many."""

    reads: tuple[Column, ...]
    test: Test
    computes: bool


def compiled(node: exp.Expr, where: Where, type_of: TypeOf) -> Compiled:
    reads = tuple(dict.fromkeys(where[name] for name in names_in(node)))
    truth = None if collates(node) else _truth(node, where, type_of)
    if truth is not None:
        return Compiled(reads, _only_true(truth), False)
    return Compiled(reads, _in_duckdb(node, where, reads), duck.computes(text_of(node)))


def evaluator(node: exp.Expr, order: list[Name]) -> Callable[[pa.RecordBatch], pa.Array]:
    """An expression over record batches whose columns are these names, in this order."""
    numbers = {name: n for n, name in enumerate(order)}
    sql = f"SELECT {_numbered(node, numbers)} AS v FROM t"
    text, functions = text_of(node), functions_in(node)

    def evaluate(batch: pa.RecordBatch, functions: tuple[Function, ...] = functions) -> pa.Array:
        columns = [f"c{n}" for n in range(batch.num_columns)]
        return _one_array(_ask(sql, pa.table(list(batch.columns), names=columns), text))

    return evaluate


def _only_true(truth: Truth) -> Test:
    def test(columns: Columns) -> NDArray[np.bool_]:
        found = truth(columns)
        flags: NDArray[np.bool_] = found.fill_null(False).to_numpy(zero_copy_only=False)
        return flags

    return test


def _in_duckdb(node: exp.Expr, where: Where, reads: tuple[Column, ...]) -> Test:
    position = {column: n for n, column in enumerate(reads)}
    numbers = {name: position[where[name]] for name in names_in(node)}
    sql = f"SELECT coalesce(CAST(({_numbered(node, numbers)}) AS BOOLEAN), false) AS v FROM t"
    text, functions = text_of(node), functions_in(node)

    def test(columns: Columns, functions: tuple[Function, ...] = functions) -> NDArray[np.bool_]:
        table = pa.table([columns[c] for c in reads], names=[f"c{n}" for n in range(len(reads))])
        flags: NDArray[np.bool_] = _one_array(_ask(sql, table, text)).to_numpy(zero_copy_only=False)
        return flags

    return test


def _numbered(node: exp.Expr, numbers: Mapping[Name, int]) -> str:
    """The expression's SQL over columns c0, c1, ..."""

    def renamed(part: exp.Expr) -> exp.Expr:
        if isinstance(part, exp.Column) and part.table:
            return exp.column(f"c{numbers[name_of(part)]}")
        return part

    return str(node.copy().transform(renamed).sql("duckdb"))


def _ask(sql: str, table: pa.Table, text: str) -> pa.Table:
    try:
        return duck.run(sql, {"t": table}, light=not duck.computes(text))
    except duckdb.Error as error:
        raise TypeMismatch(f"{text}: {duck.fault(error).message}") from None


def _one_array(table: pa.Table) -> pa.Array:
    column = table["v"]
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


# Conditions that pyarrow can test


def _truth(node: exp.Expr, where: Where, type_of: TypeOf) -> Truth | None:
    match node:
        case exp.Paren():
            return _truth(node.this, where, type_of)
        case exp.And():
            return _both(pc.and_kleene, node, where, type_of)
        case exp.Or():
            return _both(pc.or_kleene, node, where, type_of)
        case exp.Not():
            inner = _truth(node.this, where, type_of)
            return None if inner is None else lambda columns: pc.invert(inner(columns))
        case exp.Is():
            return _is_null(node, where)
        case exp.Between():
            return _between(node, where, type_of)
        case exp.In():
            return _one_of(node, where, type_of)
        case exp.Like():
            return _like(node, where, type_of)
        case exp.EQ() | exp.NEQ() | exp.LT() | exp.LTE() | exp.GT() | exp.GTE():
            return _comparison(node, where, type_of)
        case exp.Anonymous():
            return _answer(node, where, type_of)
    return None


def _both(
    combine: Callable[..., pa.Array], node: exp.Connector, where: Where, type_of: TypeOf
) -> Truth | None:
    left, right = _truth(node.left, where, type_of), _truth(node.right, where, type_of)
    if left is None or right is None:
        return None
    return lambda columns: combine(left(columns), right(columns))


def _answer(node: exp.Anonymous, where: Where, type_of: TypeOf) -> Truth | None:
    """A caller's function that says yes or no."""
    found = operand(node, where, type_of)
    return found.values if found is not None and pt.is_boolean(found.type) else None


def _is_null(node: exp.Is, where: Where) -> Truth | None:
    column = plain(node.this)
    if column is None or not isinstance(node.expression, exp.Null):
        return None
    at = where[name_of(column)]
    return lambda columns: pc.is_null(columns[at])


def _comparison(node: exp.Binary, where: Where, type_of: TypeOf) -> Truth | None:
    compare = _COMPARE[type(node)]
    left, right = operand(node.left, where, type_of), operand(node.right, where, type_of)
    if left is not None and right is not None:
        return _of_two(compare, node, left, right)
    one, other = (left, node.right) if left is not None else (right, node.left)
    if one is None or not is_constant(other):
        return None
    value = _scalar(other, one.type)
    if value is None or not _simple(one.type, type(node)):
        return None
    if left is not None:
        return lambda columns: compare(_widened(one.values(columns)), value)
    return lambda columns: compare(value, _widened(one.values(columns)))


def _of_two(compare: Callable[..., pa.Array], node: exp.Expr, left: Operand, right: Operand) -> Truth | None:
    if family(left.type) != family(right.type) or not _simple(left.type, type(node)):
        return None
    return lambda columns: compare(_widened(left.values(columns)), _widened(right.values(columns)))


def _between(node: exp.Between, where: Where, type_of: TypeOf) -> Truth | None:
    """A value that is worth being computed once, between two constants."""
    found = operand(node.this, where, type_of)
    low, high = node.args["low"], node.args["high"]
    if found is None or node.args.get("symmetric") or not (is_constant(low) and is_constant(high)):
        return None
    ends = _all_of([low, high], found.type)
    if ends is None or not _simple(found.type, exp.LTE):
        return None
    least, most = (pa.scalar(end.value, family(found.type)) for end in ends)

    def truth(columns: Columns) -> pa.Array:
        values = _widened(found.values(columns))
        return pc.and_kleene(pc.greater_equal(values, least), pc.less_equal(values, most))

    return truth


def _one_of(node: exp.In, where: Where, type_of: TypeOf) -> Truth | None:
    column = plain(node.this)
    if column is None or not node.expressions:
        return None
    at = where[name_of(column)]
    found = _all_of(node.expressions, type_of(at))
    if found is None or not _simple(type_of(at), exp.EQ):
        return None
    known = pa.array([c.value for c in found], family(type_of(at)))

    def test(columns: Columns) -> pa.Array:
        column = columns[at]
        return pc.if_else(pc.is_valid(column), pc.is_in(_widened(column), value_set=known), None)

    return test


def _like(node: exp.Like, where: Where, type_of: TypeOf) -> Truth | None:
    column, pattern = plain(node.this), node.expression
    # A backslash escapes in pyarrow's patterns, and does not in DuckDB's.
    simple = isinstance(pattern, exp.Literal) and pattern.is_string and "\\" not in pattern.this
    if column is None or not simple or family(type_of(where[name_of(column)])) != pa.string():
        return None
    at, negated = where[name_of(column)], bool(node.args.get("negate"))

    def test(columns: Columns) -> pa.Array:
        found = pc.match_like(_widened(columns[at]), pattern.this)
        return pc.invert(found) if negated else found

    return test


def _scalar(node: exp.Expr, kind: pa.DataType) -> pa.Scalar | None:
    """A constant that compares with this type as it is."""
    found = constant(node, kind)
    return pa.scalar(found.value, family(kind)) if found is not None and found.fits else None


def _all_of(nodes: Sequence[exp.Expr], kind: pa.DataType) -> list[Constant] | None:
    """Constants each of which compares with this type as it is, also beside the others."""
    if not all(is_constant(node) for node in nodes):
        return None
    found = [c for node in nodes if (c := constant(node, kind)) is not None and c.fits]
    return found if len(found) == len(nodes) and each_by_itself(found, kind) else None


def _simple(kind: pa.DataType, operator: type[exp.Expr]) -> bool:
    kind = family(kind)
    if pt.is_boolean(kind):
        return operator in (exp.EQ, exp.NEQ)
    return kind == pa.int64() or kind == pa.string() or bool(pt.is_date32(kind))


def _widened(column: pa.Array) -> pa.Array:
    kind = family(column.type)
    return column if column.type == kind else column.cast(kind)
