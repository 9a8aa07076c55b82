"""Bind-fields as they are spelt: `year` is bound to a value, `year>=` to the least that it may be.

What stands in a bind set is a field and how its value is compared. So a lookup by `city` and `price<=` is another way
of asking than one by `city`, with entries of its own in the coverage. What one says of the other is found out here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from mediator.errors import CatalogError

EQUAL = "="
STARTS = "^="  # begins with
RANGES = ("<", "<=", ">", ">=")
OPERATORS = (*RANGES, STARTS)

_SPELT = re.compile(r"(.*?)\s*(\^=|<=|>=|<|>|)", re.DOTALL)
_HOLDS = {
    EQUAL: pc.equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}

Facts = Mapping[tuple[str, str], Any]


@cache
def parted(name: str) -> tuple[str, str]:
    """The field of a bind-field, and its operator."""
    spelt = _SPELT.fullmatch(name)
    assert spelt is not None
    return spelt[1], spelt[2] or EQUAL


def field_of(name: str) -> str:
    return parted(name)[0]


def operator_of(name: str) -> str:
    return parted(name)[1]


def shown(name: str, value: str = "...") -> str:
    """A bind-field with what it is bound to, for people: `price <= 10`."""
    field, operator = parted(name)
    return f"{field} {'starts with' if operator == STARTS else operator} {value}"


def subschema(schema: pa.Schema, bind_set: Iterable[str]) -> pa.Schema:
    """A column for each bind-field, of its field's type."""
    return pa.schema([pa.field(name, schema.field(field_of(name)).type) for name in bind_set])


def facts(bind_set: Iterable[str], binding: Iterable[object]) -> Facts:
    """What a lookup asks for, by field and operator."""
    return {parted(name): value for name, value in zip(bind_set, binding, strict=True)}


def follows(name: str, bound: Any, known: Facts) -> bool:
    """Whether every row of which all this is known meets a bound as well: what is at most 8 is at most 10."""
    field, operator = parted(name)
    about = [(how, value) for (other, how), value in known.items() if other == field]
    if any(_follows(operator, bound, how, value) for how, value in about):
        return True
    return operator == STARTS and _start_alike(bound, about)


def holds(name: str, values: pa.Array, bound: pa.Scalar | pa.Array) -> pa.Array:
    """Which values meet a bound, or each one of its own, as SQL compares them; NULL where it cannot be said."""
    operator = operator_of(name)
    if operator != STARTS:
        return _HOLDS[operator](values, bound)
    if isinstance(bound, pa.Scalar):
        return pc.starts_with(values, bound.as_py())
    pairs = zip(values.to_pylist(), bound.to_pylist(), strict=True)
    return pa.array(
        [None if value is None else value.startswith(start) for value, start in pairs], pa.bool_()
    )


def check_operator(name: str, kind: pa.DataType) -> None:
    """Raises `CatalogError` for an operator that values of this type do not have."""
    operator, text = operator_of(name), pa.types.is_string(kind) or pa.types.is_large_string(kind)
    if operator == STARTS and not text:
        raise CatalogError(f"only a text starts with another: {name!r} is bound to a {kind}")
    if operator in RANGES and pa.types.is_boolean(kind):
        raise CatalogError(f"truth values have no order: {name!r} takes none of {', '.join(RANGES)}")


def _follows(operator: str, bound: Any, how: str, value: Any) -> bool:
    """Whether `x operator bound` follows from `x how value`."""
    match operator, how:
        case ("=", "="):
            return bool(value == bound)
        case ("<=", "=" | "<=" | "<") | ("<", "<"):
            return bool(value <= bound)
        case ("<", "=" | "<="):
            return bool(value < bound)
        case (">=", "=" | ">=" | ">") | (">", ">"):
            return bool(value >= bound)
        case (">", "=" | ">="):
            return bool(value > bound)
        case ("^=", "=" | "^="):
            return str(value).startswith(bound)
    return False


def _start_alike(start: str, about: Sequence[tuple[str, Any]]) -> bool:
    """Whether there are a least and a greatest value that start so: all between them does, too."""
    ends = {how[0] for how, value in about if how in RANGES and str(value).startswith(start)}
    return ends == {"<", ">"}
