"""Text to tree: one statement, its parameters bound, or an error that says where."""

from __future__ import annotations

import difflib
import re
from functools import lru_cache
from typing import NamedTuple

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, TokenError

from mediator.errors import Unparsable, Unsupported
from mediator.query.depth import check_depth
from mediator.query.parameters import Marked, Parameters, bind, marked
from mediator.query.refuse import refuse
from mediator.query.unended import unended
from mediator.query.upright import set_upright

_LONGEST = 1_000_000
_SHORT = 4_096  # characters: what is remembered is no longer
_REMEMBERED = 256  # statements
_FIRST_WORD = re.compile(r"(?:\s|--[^\n]*\n|/\*.*?\*/)*([A-Za-z]+)", re.DOTALL)
# Statements that are not queries. Told apart here, because the parser has its own thoughts about some of
# them.
_VERBS = {
    "ALTER", "ANALYZE", "ATTACH", "BEGIN", "CALL", "CHECKPOINT", "COMMENT", "COMMIT", "COPY", "CREATE",
    "DEALLOCATE", "DELETE", "DESC", "DESCRIBE", "DETACH", "DROP", "EXECUTE", "EXPLAIN", "EXPORT",
    "FORCE", "IMPORT", "INSERT", "INSTALL", "LOAD", "MERGE", "PIVOT", "PRAGMA", "PREPARE", "REINDEX",
    "RESET", "ROLLBACK", "SET", "SHOW", "START", "SUMMARIZE", "TRUNCATE", "UNPIVOT", "UPDATE", "USE",
    "VACUUM",
}  # fmt: skip
_OPENINGS = ("SELECT", "WITH", "FROM", "VALUES", "TABLE")


class _Parsed(NamedTuple):
    tree: exp.Expr
    marks: Marked


def parse(sql: str, parameters: Parameters = ()) -> exp.Expr:
    """The tree of the one statement in the text, which has nothing in it that may not be; positions in it are those of
    the text."""
    if len(sql) > _SHORT:
        parsed = _parsed(sql)
        tree = parsed.tree
    else:
        parsed = _remembered(sql)
        tree = parsed.tree.copy()  # whoever plans it changes it
    bind(tree, parameters, parsed.marks, sql)
    return tree


def _parsed(sql: str) -> _Parsed:
    _check_opening(sql)
    check_depth(sql)
    marks = marked(sql)
    try:
        statements = [s for s in sqlglot.parse(marks.text, dialect="duckdb") if s is not None]
    except ParseError as error:
        raise _unparsable(error, marks, sql) from None
    except TokenError as error:
        raise _unreadable(error, sql) from None
    except RecursionError:
        raise Unparsable("the statement is nested too deeply", sql=sql) from None
    if len(statements) != 1:
        raise Unsupported(f"one statement at a time, not {len(statements)}", sql=sql)
    for node in statements[0].walk():
        if "start" in node.meta:
            node.meta["start"] = marks.original(node.meta["start"])
    set_upright(statements[0])
    refuse(statements[0], sql)
    return _Parsed(statements[0], marks)


# The same statement comes again and again, with other parameters.
_remembered = lru_cache(_REMEMBERED)(_parsed)


def _check_opening(sql: str) -> None:
    if not sql.strip():
        raise Unparsable("there is no statement", sql=sql)
    if len(sql) > _LONGEST:
        raise Unparsable(f"the statement is longer than {_LONGEST} characters")
    verb = _FIRST_WORD.match(sql)
    if verb is not None and verb[1].upper() in _VERBS:
        message = f"only SELECT is run here, not {verb[1].upper()}"
        raise Unsupported(message, sql=sql, position=verb.start(1))
    if verb is not None and verb[1].upper() not in _OPENINGS:
        near = difflib.get_close_matches(verb[1].upper(), _OPENINGS, n=1)
        hint = f"did you mean {near[0]}?" if near else ""
        message = f"a query begins with SELECT or WITH, not with {verb[1]!r}"
        raise Unparsable(message, sql=sql, position=verb.start(1), hint=hint)


def _unreadable(error: TokenError, sql: str) -> Unparsable:
    found = unended(sql)
    if found is None:
        return Unparsable(f"the statement cannot be read: {_plain(str(error))}", sql=sql)
    position, what = found
    return Unparsable(f"{what} that begins here has no end", sql=sql, position=position)


def _unparsable(error: ParseError, marks: Marked, sql: str) -> Unparsable:
    told = error.errors[0] if error.errors else {}
    message = _plain(str(told.get("description") or error).split("\n")[0]).rstrip(".")
    near = told.get("highlight")
    message = _in_words(message, str(near or ""))
    place = _offset(marks.text, told.get("line"), told.get("col"), str(near or ""))
    hint = f" near {near!r}" if near else ""
    return Unparsable(f"{message}{hint}", sql=sql, position=None if place is None else marks.original(place))


def _in_words(message: str, near: str) -> str:
    """The parser's message without what it calls things inside."""
    message = re.sub(r"<class 'sqlglot[\w.]*\.(\w+)'>", r"\1", message)
    message = re.sub(r"<Token token_type: TokenType\.SENTINEL, .*?>$", "the end of the statement", message)
    message = re.sub(r"<Token token_type: \S+, text: (.*?), line: \d+, .*>$", r"\1", message)
    if re.match(r"Required keyword: '\w+' missing for ", message):
        return "something is missing" if near else "something is missing at the end of the statement"
    return message


def _offset(text: str, line: object, column: object, near: str) -> int | None:
    """A character offset from line and column; the column counts to the end of the token that is at fault."""
    if not isinstance(line, int) or not isinstance(column, int):
        return None
    start = sum(len(part) for part in text.splitlines(keepends=True)[: line - 1])
    return min(max(start + column - max(len(near), 1), 0), len(text))


def _plain(text: str) -> str:
    return re.sub(r"\x1b\[\d+m", "", text)
