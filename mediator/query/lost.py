"""Types of DuckDB's that are lost where rows pass from one statement to the next, as Arrow has others in their place:
the sum of integers is a HUGEINT there and a DECIMAL here, and a half of it another number."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.types as pt

from mediator.query import duck
from mediator.query.types import family

_LOST = {"HUGEINT", "UHUGEINT", "UUID", "JSON"}
# What text there may be of such a type is made by one of these; to ask DuckDB costs more than to look.
_MADE = re.compile(r"uuid|json|->|variant", re.IGNORECASE)


def lost_types(sql: str, reads: Mapping[str, pa.Schema], rows: pa.Schema) -> dict[str, str]:
    """What DuckDB calls the types of those columns of a SELECT's rows that have another in Arrow."""
    texts = _MADE.search(sql) is not None
    if not any(_may_be_lost(field.type, texts) for field in rows):
        return {}
    asked = f"SELECT column_type FROM (DESCRIBE {sql})"
    tables = {name: schema.empty_table() for name, schema in reads.items()}
    told = duck.run(asked, tables, light=not duck.computes(sql))["column_type"].to_pylist()
    return {f.name: type_ for f, type_ in zip(rows, told, strict=True) if _is_lost(type_)}


def _is_lost(type_: str) -> bool:
    return type_ in _LOST or type_.startswith("ENUM(")


def _may_be_lost(kind: pa.DataType, texts: bool) -> bool:
    return pt.is_decimal(kind) or pt.is_dictionary(kind) or (texts and family(kind) == pa.string())
