"""Spark's filters as conditions of the mediator's statement, so that they give bind-fields their values."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.types as pt
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    StringStartsWith,
)

from wrappers.sql.dialect import quoted

_COMPARED: Mapping[type[Filter], str] = {
    EqualTo: "=",
    LessThan: "<",
    LessThanOrEqual: "<=",
    GreaterThan: ">",
    GreaterThanOrEqual: ">=",
}


@dataclass(frozen=True, slots=True)
class Condition:
    """`column operator value`, where all but `IN` have one value, and `IS NOT NULL` has none."""

    column: str
    operator: str
    values: tuple[Any, ...] = ()

    def sql(self, names: Iterable[str]) -> str:
        """`names` are those of the parameters that hold the values."""
        column, given = quoted(self.column), [f"${name}" for name in names]
        if self.operator == "IN" and not given:
            return "FALSE"
        if self.operator == "IN":
            return f"{column} IN ({', '.join(given)})"
        if self.operator == "^=":
            return f"starts_with({column}, {given[0]})"
        return " ".join([column, self.operator, *given])


@dataclass(frozen=True, slots=True)
class Statement:
    """`SELECT ... FROM relation WHERE ...`, with its values apart."""

    relation: str
    schema: pa.Schema
    conditions: tuple[Condition, ...] = ()

    @property
    def sql(self) -> str:
        text = f"SELECT {', '.join(map(quoted, self.schema.names))} FROM {quoted(self.relation)}"
        conditions = [
            condition.sql(_names(number, condition)) for number, condition in enumerate(self.conditions)
        ]
        return f"{text} WHERE {' AND '.join(conditions)}" if conditions else text

    @property
    def parameters(self) -> dict[str, Any]:
        return {
            name: value
            for number, condition in enumerate(self.conditions)
            for name, value in zip(_names(number, condition), condition.values, strict=True)
        }

    def narrowed(self, number: int, values: tuple[Any, ...]) -> Statement:
        """The same with other values in one of its conditions."""
        conditions = list(self.conditions)
        conditions[number] = replace(conditions[number], values=values)
        return replace(self, conditions=tuple(conditions))


@dataclass(slots=True)
class Pushing:
    """Takes what it can of Spark's filters, and gives all of them back."""

    schema: pa.Schema
    conditions: list[Condition] = field(default_factory=list)

    def push(self, filters: Iterable[Filter]) -> Iterator[Filter]:
        for one in filters:
            condition = self._condition(one)
            if condition is not None:
                self.conditions.append(condition)
            # Spark tests all of them again: it may read with what another query pushed (see `pushed.py`).
            yield one

    def _condition(self, said: Filter) -> Condition | None:
        """None where the statement cannot say it, or not in the same sense."""
        column = self._column(said)
        if column is None:
            return None
        type_ = self.schema.field(column).type
        if isinstance(said, IsNotNull):
            return Condition(column, "IS NOT NULL")
        if isinstance(said, In):
            values = [_value(value, type_) for value in said.value if value is not None]
            return None if None in values else Condition(column, "IN", tuple(dict.fromkeys(values)))
        if isinstance(said, StringStartsWith):
            return Condition(column, "^=", (said.value,)) if _is_text(type_) else None
        operator = _COMPARED.get(type(said))
        value = _value(getattr(said, "value", None), type_)
        return None if operator is None or value is None else Condition(column, operator, (value,))

    def _column(self, said: Filter) -> str | None:
        path: tuple[str, ...] = getattr(said, "attribute", ())
        return path[0] if len(path) == 1 and path[0] in self.schema.names else None


def _names(number: int, condition: Condition) -> list[str]:
    return [f"c{number}_{place}" for place in range(len(condition.values))]


def _value(value: Any, type_: pa.DataType) -> Any:
    """What the statement is given for it; None where its sense would not be the column's."""
    if pt.is_boolean(type_):
        return value if isinstance(value, bool) else None
    if pt.is_integer(type_):
        # One without a sign is a wider type in Spark, and its values may be decimals there.
        whole = (
            isinstance(value, int | decimal.Decimal) and not isinstance(value, bool) and value == int(value)
        )
        return int(value) if whole else None
    if pt.is_floating(type_):
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
    if pt.is_decimal(type_):
        return value if isinstance(value, decimal.Decimal | int) and not isinstance(value, bool) else None
    if _is_text(type_):
        return value if isinstance(value, str) else None
    if pt.is_date(type_):
        return value if type(value) is datetime.date else None
    if pt.is_timestamp(type_):
        fits = isinstance(value, datetime.datetime) and (value.tzinfo is None) == (type_.tz is None)
        return value if fits and type_.unit == "us" else None
    return None


def _is_text(type_: pa.DataType) -> bool:
    return bool(pt.is_string(type_) or pt.is_large_string(type_) or pt.is_string_view(type_))
