"""From a database's values to Arrow columns of the declared types."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from mediator.catalog.model import Field
from wrappers.columns import from_json
from wrappers.sql.dialect import Dialect


def from_database(dialect: Dialect, relation: str, field: Field, values: Sequence[Any]) -> pa.Array:
    """Raises `SchemaChanged` for a value of another type than the declared one.

    A column of exact decimals may be declared as numbers of either kind, as long as its values are such. SQLite
    has neither dates nor truth values: it keeps them as ISO texts and as 0 and 1.
    """
    kinds = set(map(type, values))
    if pa.types.is_temporal(field.type):
        values = [_moment(value) for value in values]
    elif Decimal in kinds and pa.types.is_floating(field.type):
        values = [float(v) if isinstance(v, Decimal) else v for v in values]
    elif Decimal in kinds and pa.types.is_integer(field.type):
        values = [_whole(value) for value in values]
    elif int in kinds and pa.types.is_boolean(field.type) and not dialect.typed:
        values = [bool(v) if v in (0, 1) and type(v) is int else v for v in values]
    return from_json(relation, field, values)


def _moment(value: object) -> object:
    """As an ISO text; what has a time zone is told in UTC, like everything that has none."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        value = value.astimezone(UTC).replace(tzinfo=None)
    return value.isoformat() if isinstance(value, date | datetime) else value


def _whole(value: object) -> object:
    if isinstance(value, Decimal) and value.is_finite() and value == value.to_integral_value():
        return int(value)
    return value
