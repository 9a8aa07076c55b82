"""What is true or not: comparisons, LIKE, IN, and what chooses between values."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from pipeline.sparksql.asked import type_of, value_of
from pipeline.sparksql.errors import NotAgreed
from pipeline.sparksql.kinds import NOTHING, Piece, cast, coerced, spark_name, text
from pipeline.sparksql.rules import Writer, rule

_OPERATORS = {
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
}  # fmt: skip


def truth(spark: str) -> Piece:
    return Piece(f"({spark})", "BOOLEAN")


def common(pieces: Sequence[Piece], function: str = "") -> str:
    """The type that DuckDB takes all of them as, where one is chosen, or compared with another."""
    if function:
        return type_of(f"{function}({', '.join(p.shown for p in pieces)})")
    first, *others = (p.shown for p in pieces)
    whens = " ".join(f"WHEN true THEN {other}" for other in others)
    return type_of(f"CASE {whens} ELSE {first} END" if whens else first)


def compared(left: Piece, right: Piece, operator: str) -> Piece:
    type_ = common((left, right))
    mixed = "VARCHAR" in (left.type, right.type) and left.type != right.type
    if mixed and NOTHING not in (left.type, right.type):
        # Text is taken as what it is compared with, which CASE does not say for columns.
        columns = [p for p in (left, right) if not p.constant]
        if len(columns) != 1 or columns[0].type != type_:
            raise NotAgreed(f"{left.type} compared with {right.type}")
    return truth(f"{coerced(left, type_)} {operator} {coerced(right, type_)}")


def as_truth(piece: Piece) -> str:
    return coerced(piece, "BOOLEAN")


@rule(exp.EQ, "this", "expression")
@rule(exp.NEQ, "this", "expression")
@rule(exp.LT, "this", "expression")
@rule(exp.LTE, "this", "expression")
@rule(exp.GT, "this", "expression")
@rule(exp.GTE, "this", "expression")
@rule(exp.NullSafeEQ, "this", "expression")
def _compare(writer: Writer, node: exp.Binary) -> Piece:
    return compared(writer.piece(node.this), writer.piece(node.expression), _OPERATORS[type(node)])


@rule(exp.NullSafeNEQ, "this", "expression")
def _differ(writer: Writer, node: exp.NullSafeNEQ) -> Piece:
    same = compared(writer.piece(node.this), writer.piece(node.expression), "<=>")
    return truth(f"NOT {same.spark}")


@rule(exp.Between, "this", "low", "high")
def _between(writer: Writer, node: exp.Between) -> Piece:
    pieces = [writer.piece(node.args[name]) for name in ("this", "low", "high")]
    _same_family(pieces)
    value, low, high = (coerced(p, common(pieces)) for p in pieces)
    return truth(f"{value} >= {low} AND {value} <= {high}")


@rule(exp.And, "this", "expression")
def _and(writer: Writer, node: exp.And) -> Piece:
    return truth(f"{as_truth(writer.piece(node.this))} AND {as_truth(writer.piece(node.expression))}")


@rule(exp.Or, "this", "expression")
def _or(writer: Writer, node: exp.Or) -> Piece:
    return truth(f"{as_truth(writer.piece(node.this))} OR {as_truth(writer.piece(node.expression))}")


@rule(exp.Not, "this")
def _not(writer: Writer, node: exp.Not) -> Piece:
    return truth(f"NOT {as_truth(writer.piece(node.this))}")


@rule(exp.Is, "this", "expression")
def _is(writer: Writer, node: exp.Is) -> Piece:
    piece = writer.piece(node.this)
    if isinstance(node.expression, exp.Null):
        return truth(f"{piece.spark} IS NULL")
    if isinstance(node.expression, exp.Boolean):
        return truth(f"{as_truth(piece)} IS {'TRUE' if node.expression.this else 'FALSE'}")
    raise NotAgreed("IS with more than NULL, TRUE, FALSE")


@rule(exp.In, "this", "expressions", "query")
def _in(writer: Writer, node: exp.In) -> Piece:
    value = writer.piece(node.this)
    if node.args.get("query") is not None:
        if not _is_condition(node):
            raise NotAgreed("IN (SELECT ...) where it may be NULL")
        sql, types = writer.query(node.args["query"])
        column = Piece("c0", types[0])
        _same_family((value, column))
        type_ = common((value, column))
        return truth(f"{coerced(value, type_)} IN (SELECT {coerced(column, type_)} FROM ({sql}))")
    pieces = [value, *(writer.piece(e) for e in node.expressions)]
    _same_family(pieces)
    type_ = common(pieces)
    listed = ", ".join(coerced(p, type_) for p in pieces[1:])
    return truth(f"{coerced(value, type_)} IN ({listed})")


def _is_condition(node: exp.In) -> bool:
    """Whether a clause keeps rows by it, to which NULL is as good as false. Anywhere else Spark makes false of NULL."""
    around = _out_of_brackets(node)
    if isinstance(around, exp.Not):
        around = _out_of_brackets(around)
    while isinstance(around, exp.And | exp.Or):
        around = _out_of_brackets(around)
    return isinstance(around, exp.Where | exp.Having) and around.find_ancestor(exp.Filter) is None


def _out_of_brackets(node: exp.Expr) -> exp.Expr | None:
    parent = node.parent
    while isinstance(parent, exp.Paren):
        parent = parent.parent
    return parent


@rule(exp.Exists, "this")
def _exists(writer: Writer, node: exp.Exists) -> Piece:
    return truth(f"EXISTS (SELECT 1 FROM ({writer.query(node.this)[0]}))")


@rule(exp.Subquery, "this")
def _scalar(writer: Writer, node: exp.Subquery) -> Piece:
    sql, types = writer.query(node)
    if len(types) != 1:
        raise NotAgreed("a row as a value")
    return Piece(f"({sql})", types[0])


@rule(exp.Like, "this", "expression", "negate")
def _like(writer: Writer, node: exp.Like) -> Piece:
    return _alike(writer, node, "")


@rule(exp.Escape, "this", "expression")
def _escape(writer: Writer, node: exp.Escape) -> Piece:
    if not isinstance(node.this, exp.Like):
        raise NotAgreed("ESCAPE of another kind of LIKE")
    return _alike(writer, node.this, str(value_of(node.expression.sql("duckdb"))))


def _alike(writer: Writer, node: exp.Like, escape: str) -> Piece:
    value, pattern = writer.piece(node.this), writer.piece(node.expression)
    if (value.type, pattern.type) != ("VARCHAR", "VARCHAR") or not pattern.constant or len(escape) > 1:
        raise NotAgreed("LIKE with a pattern that is not a constant text")
    wanted = value_of(pattern.constant)
    if wanted is None:
        return truth("CAST(NULL AS BOOLEAN)")
    like = f"{value.spark} LIKE {text(backslashed(str(wanted), escape))}"
    return truth(f"NOT ({like})" if node.args.get("negate") else like)


def backslashed(pattern: str, escape: str) -> str:
    """DuckDB has no escape character unless one is named; Spark has the backslash."""
    written, at = [], 0
    while at < len(pattern):
        char = pattern[at]
        if escape and char == escape:
            at += 1
            if at == len(pattern):
                raise NotAgreed("a pattern that ends with its escape character")
            char = pattern[at]
            written.append("\\" + char if char in "%_\\" else char)
        else:
            written.append("\\\\" if char == "\\" else char)
        at += 1
    return "".join(written)


@rule(exp.Case, "this", "ifs", "default")
def _case(writer: Writer, node: exp.Case) -> Piece:
    subject = None if node.this is None else writer.piece(node.this)
    tests = [writer.piece(branch.this) for branch in node.args["ifs"]]
    if subject is not None:
        tests = [compared(subject, test, "=") for test in tests]
    values = [writer.piece(branch.args["true"]) for branch in node.args["ifs"]]
    default = node.args.get("default")
    values.append(Piece("NULL", NOTHING, "NULL") if default is None else writer.piece(default))
    type_ = common(values)
    whens = " ".join(
        f"WHEN {as_truth(test)} THEN {coerced(value, type_)}"
        for test, value in zip(tests, values, strict=False)
    )
    return Piece(f"CASE {whens} ELSE {coerced(values[-1], type_)} END", type_)


@rule(exp.If, "this", "true", "false")
def _if(writer: Writer, node: exp.If) -> Piece:
    return _case(
        writer, exp.Case(ifs=[exp.If(this=node.this, true=node.args["true"])], default=node.args.get("false"))
    )


@rule(exp.Coalesce, "this", "expressions")
def _coalesce(writer: Writer, node: exp.Coalesce) -> Piece:
    return _chosen(writer, node, "coalesce")


@rule(exp.Greatest, "this", "expressions")
def _greatest(writer: Writer, node: exp.Greatest) -> Piece:
    return _chosen(writer, node, "greatest")


@rule(exp.Least, "this", "expressions")
def _least(writer: Writer, node: exp.Least) -> Piece:
    return _chosen(writer, node, "least")


def _chosen(writer: Writer, node: exp.Func, function: str) -> Piece:
    pieces = [writer.piece(node.this), *(writer.piece(e) for e in node.expressions)]
    type_ = common(pieces, function)
    if len(pieces) == 1:
        return Piece(coerced(pieces[0], type_), type_)
    return Piece(f"{function.upper()}({', '.join(coerced(p, type_) for p in pieces)})", type_)


@rule(exp.Nullif, "this", "expression")
def _nullif(writer: Writer, node: exp.Nullif) -> Piece:
    value, other = writer.piece(node.this), writer.piece(node.expression)
    type_ = common((value, other), "nullif")
    same = compared(value, other, "=")
    return Piece(f"CASE WHEN {same.spark} THEN NULL ELSE {coerced(value, type_)} END", type_)


@rule(exp.Cast, "this", "to")
def _cast(writer: Writer, node: exp.Cast) -> Piece:
    return _converted(writer, node, "CAST")


@rule(exp.TryCast, "this", "to")
def _try_cast(writer: Writer, node: exp.TryCast) -> Piece:
    return _converted(writer, node, "TRY_CAST")


def _converted(writer: Writer, node: exp.Cast, verb: str) -> Piece:
    piece = writer.piece(node.this)
    type_ = type_of(f"{verb}({piece.shown} AS {node.args['to'].sql('duckdb')})")
    spark_name(type_)
    return Piece(cast(piece, type_, verb), type_)


def _same_family(pieces: Sequence[Piece]) -> None:
    """Text beside anything else is another's business, unless it is all constants on one side."""
    texts = {p.type == "VARCHAR" for p in pieces if not p.constant and p.type != NOTHING}
    if len(texts) > 1:
        raise NotAgreed("text compared with what is none")
    if texts == {True} and any(p.constant and p.type not in ("VARCHAR", NOTHING) for p in pieces):
        raise NotAgreed("text compared with what is none")
