"""Values for `?`, `$1` and `$name`, put into the tree as literals: text never becomes SQL.

Before parsing, `marked` gives every parameter a name of its own that is spelt as a quoted identifier,
because the parser neither remembers the order of `?` nor tells `$1,$2` from a dollar-quoted string.
"""

from __future__ import annotations

import datetime
import decimal
import math
import re
import uuid
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from mediator.errors import QueryError, Unsupported

Parameters = Mapping[str, object] | Sequence[object]

_PIECES = re.compile(
    r"""(?<!\w)[eE]'(?:[^'\\]|\\.|'')*' | '(?:[^']|'')*' | "(?:[^"]|"")*" | --[^\n]* | /\*.*?\*/
      | \$(?P<tag>[A-Za-z_]\w*)?\$.*?\$(?(tag)(?P=tag))\$
      | (?P<parameter> \? | \$\w+ )""",
    re.DOTALL | re.VERBOSE,
)
_MARK = "?parameter "


@dataclass(frozen=True, slots=True)
class Marked:
    """A statement whose parameters have marks in their place, and the way back to the user's text."""

    text: str
    names: tuple[str, ...]
    places: tuple[int, ...]  # of each parameter, in the user's text
    _starts: tuple[int, ...]  # of each mark, in this text
    _shifts: tuple[int, ...]  # how much longer this text is, up to and with each mark

    def original(self, position: int) -> int:
        """A position of this text, in the user's."""
        at = bisect_right(self._starts, position) - 1
        if at < 0:
            return position
        return max(self.places[at], position - self._shifts[at])


def marked(sql: str) -> Marked:
    """The statement, ready to be parsed."""
    parts: list[str] = []
    names: list[str] = []
    places: list[int] = []
    starts: list[int] = []
    shifts: list[int] = []
    last = length = shift = 0
    for match in _PIECES.finditer(sql):
        if match["parameter"] is None:
            continue
        names.append(match["parameter"][1:] or str(len(names) + 1))
        places.append(match.start())
        parts += [sql[last : match.start()], f'"{_MARK}{names[-1]}"']
        starts.append(length + len(parts[-2]))
        length = starts[-1] + len(parts[-1])
        last = match.end()
        shift += len(parts[-1]) - len(match[0])
        shifts.append(shift)
    parts.append(sql[last:])
    return Marked("".join(parts), tuple(names), tuple(places), tuple(starts), tuple(shifts))


def bind(statement: exp.Expr, parameters: Parameters, marks: Marked, sql: str) -> None:
    """Puts a literal in place of every parameter."""
    values = {n: _value(n, parameters, sql, p) for n, p in zip(marks.names, marks.places, strict=True)}
    for column in list(statement.find_all(exp.Column)):
        if column.name.startswith(_MARK) and column.name[len(_MARK) :] in values:
            column.replace(literal(values[column.name[len(_MARK) :]]))
    _no_surplus(parameters, set(values), sql)


def given(parameters: Parameters) -> object:
    """The same values in the form that DuckDB's own binder takes; none where there are none."""
    if not parameters:
        return None
    return dict(parameters) if isinstance(parameters, Mapping) else list(parameters)


def literal(value: object) -> exp.Expr:
    """A Python value as a SQL expression of the type that DuckDB would give it."""
    match value:
        case decimal.Decimal():
            return _decimal(value)
        case int() if 1 << 63 <= value < 1 << 64:
            return exp.cast(exp.Literal.number(value), "ubigint", dialect="duckdb")
        case None | bool() | int() | str():
            return exp.convert(value)
        case float():
            text = str(value) if math.isfinite(value) else str(value).replace("inf", "infinity")
            return exp.cast(exp.Literal.string(text), "double")
        case datetime.datetime():
            kind = "timestamptz" if value.tzinfo else "timestamp"
            return exp.cast(exp.Literal.string(value.isoformat(sep=" ")), kind, dialect="duckdb")
        case datetime.date():
            return exp.cast(exp.Literal.string(value.isoformat()), "date")
        case datetime.time():
            return exp.cast(exp.Literal.string(value.isoformat()), "time")
        case uuid.UUID():
            return exp.cast(exp.Literal.string(str(value)), "uuid")
        case bytes():
            return exp.Anonymous(this="unhex", expressions=[exp.Literal.string(value.hex())])
        case list() | tuple():
            return exp.Array(expressions=[literal(v) for v in value])
    raise Unsupported(f"a parameter cannot be a {type(value).__name__}")


def _decimal(value: decimal.Decimal) -> exp.Expr:
    text = format(value, "f")
    digits = sum(c.isdigit() for c in text)
    if not value.is_finite() or "." in text or digits > 38:
        return exp.convert(value)
    return exp.cast(exp.Literal.string(text), f"DECIMAL({digits}, 0)", dialect="duckdb")  # and no integer


def _value(name: str, parameters: Parameters, sql: str, place: int) -> object:
    if isinstance(parameters, Mapping):
        if name in parameters:
            return parameters[name]
    elif name.isdigit() and 0 < int(name) <= len(parameters):
        return parameters[int(name) - 1]
    raise QueryError(f"the parameter {name} has no value", sql=sql, position=place)


def _no_surplus(parameters: Parameters, used: set[str], sql: str) -> None:
    names = (
        list(parameters) if isinstance(parameters, Mapping) else [str(n + 1) for n in range(len(parameters))]
    )
    surplus = [n for n in names if n not in used]
    if surplus:
        raise QueryError(f"the statement has no parameter {', '.join(surplus)}", sql=sql)
