"""Small questions about an expression's tree. Nothing here changes one."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from mediator.query import vocabulary
from mediator.query.functions import functions_in, shown

# A column of the FROM clause: the id of the source, the name of the field.
Name = tuple[str, str]

_VOLATILE = {"random", "uuid", "uuidv4", "uuidv7", "gen_random_uuid", "setseed", "now_volatile", "rand"}
_FAILING = {"strptime", "error", "json_extract", "make_date", "make_timestamp", "chr"}
# Worth a module of their own: a call costs far more than a comparison.
_COSTLY = {
    "levenshtein",
    "editdist3",
    "damerau_levenshtein",
    "jaccard",
    "jaro_similarity",
    "jaro_winkler_similarity",
    "regexp_matches",
    "regexp_full_match",
    "regexp_extract",
    "regexp_replace",
}


def name_of(column: exp.Column) -> Name:
    return column.table, column.name


def names_in(node: exp.Expr) -> dict[Name, None]:
    """The resolved columns that a tree reads, sub-queries included, in the order of the text."""
    return {name_of(c): None for c in node.find_all(exp.Column) if c.table}


def sources_in(node: exp.Expr) -> set[str]:
    return {source for source, _ in names_in(node)}


def subqueries(node: exp.Expr) -> Iterator[exp.Query]:
    """The outermost queries inside a tree (not the tree itself)."""
    for child in node.iter_expressions():
        if isinstance(child, (exp.Select, exp.SetOperation)):
            yield child
        else:
            yield from subqueries(child)


def has_subquery(node: exp.Expr) -> bool:
    return isinstance(node, exp.Query) or next(subqueries(node), None) is not None


def function_name(node: exp.Expr) -> str:
    """What a call is called, in DuckDB's dialect; empty for what is not a call."""
    if isinstance(node, exp.Anonymous):
        return str(node.name).lower()
    if isinstance(node, exp.Func):
        return str(node.sql_name()).lower()
    return ""


def is_volatile(node: exp.Expr) -> bool:
    return any(
        isinstance(n, (exp.Rand, exp.Uuid)) or function_name(n) in _VOLATILE for n in node.find_all(exp.Func)
    ) or any(not f.steady for f in functions_in(node))


def takes_any(statement: exp.Expr) -> bool:
    """Whether some query within it has a LIMIT and no order, and so takes whichever rows come first."""
    return any(
        query is not statement
        and (query.args.get("limit") or query.args.get("offset"))
        and not query.args.get("order")
        for query in statement.find_all(exp.Query)
    )


def why_costly(node: exp.Expr) -> str:
    """Why a condition is worth a module of its own, for people; empty for one that is not."""
    for part in node.find_all(exp.Func, exp.RegexpILike):
        if isinstance(part, (exp.RegexpLike, exp.RegexpILike)) or function_name(part) in _COSTLY:
            name = "a regular expression" if _is_regular(part) else function_name(part)
            return f"{name} costs far more than a comparison"
    for function in functions_in(node):
        if function.is_costly:
            return function.why_costly
    return "its value may change from call to call" if is_volatile(node) else ""


def _is_regular(node: exp.Expr) -> bool:
    return isinstance(node, (exp.RegexpLike, exp.RegexpILike)) or function_name(node).startswith("regexp")


def may_fail(node: exp.Expr) -> bool:
    """Whether a value can make it fail: a cast of text that is no number, say, or a division by zero."""
    if any(n.expression.find(exp.Column) is not None for n in node.find_all(exp.IntDiv, exp.Mod)):
        return True
    casts = (n for n in node.find_all(exp.Cast) if not isinstance(n, exp.TryCast))
    return any(n.this.find(exp.Column) is not None for n in casts) or any(
        isinstance(n, exp.StrToTime) or function_name(n) in _FAILING for n in node.find_all(exp.Func)
    )


def is_aggregate(node: exp.Expr) -> bool:
    """Whether a tree has an aggregate or a window of its own, not counting those in sub-queries."""
    if isinstance(node, exp.Query):
        return False
    if aggregates(node) or isinstance(node, exp.Window):
        return True
    return any(is_aggregate(child) for child in node.iter_expressions())


def aggregates(node: exp.Expr) -> bool:
    """Whether a node is a call of an aggregate itself."""
    return isinstance(node, exp.AggFunc) or function_name(node) in vocabulary.aggregates()


def is_constant(node: exp.Expr) -> bool:
    """No columns, no sub-queries, and the same value each time."""
    return (
        node.find(exp.Column) is None
        and not has_subquery(node)
        and not is_aggregate(node)
        and not is_volatile(node)
    )


def collates(node: exp.Expr) -> bool:
    """Whether text in it is compared by a collation, or would be where it is read. What is but ordered is not."""
    return any(not _is_ordered(part, node) for part in node.find_all(exp.Collate))


def _is_ordered(part: exp.Expr, top: exp.Expr) -> bool:
    at: exp.Expr | None = part
    while at is not None and at is not top:
        if isinstance(at, exp.Ordered):
            return True
        at = at.parent
    return False


def plain(node: exp.Expr) -> exp.Column | None:
    """The column that an expression is, brackets aside."""
    inner = node.unnest() if isinstance(node, exp.Paren) else node
    return inner if isinstance(inner, exp.Column) and inner.table else None


def position_of(node: exp.Expr) -> int | None:
    """Where in the statement a tree begins, as far as its names remember."""
    starts = [n.meta["start"] for n in node.walk() if "start" in n.meta]
    return min(starts) if starts else None


def text_of(node: exp.Expr) -> str:
    """An expression for people: names are quoted only where they must be."""
    written = node.copy()
    for identifier in written.find_all(exp.Identifier):
        if str(identifier.this).isidentifier() and str(identifier.this).islower():
            identifier.set("quoted", False)
    return shown(written.sql("duckdb"))
