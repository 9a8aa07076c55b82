"""Types of DuckDB's that are lost where rows pass from one statement to the next, as Arrow has others in their place:
the sum of integers is a HUGEINT there and a DECIMAL here, and a half of it another number. So is a column's
collation."""

from __future__ import annotations

import re
from collections.abc import Mapping

import duckdb
import pyarrow as pa
import pyarrow.types as pt

from mediator.query import duck
from mediator.query.types import family

_LOST = {"HUGEINT", "UHUGEINT", "UUID", "JSON"}
# What text there may be of such a type is made by one of these; to ask DuckDB costs more than to look.
_MADE = re.compile(r"uuid|json|->|variant", re.IGNORECASE)
_COLLATE = re.compile(r"""\bCOLLATE\s+([\w."]+)""", re.IGNORECASE)
_ANY_TWO = ("NOCASE", "NOACCENT")  # of these no text has both


def lost_types(sql: str, reads: Mapping[str, pa.Schema], rows: pa.Schema) -> dict[str, str]:
    """What DuckDB calls the types of those columns of a SELECT's rows that have another in Arrow."""
    texts = _MADE.search(sql) is not None
    if not any(_may_be_lost(field.type, texts) for field in rows):
        return {}
    asked = f"SELECT column_type FROM (DESCRIBE {sql})"
    tables = {name: schema.empty_table() for name, schema in reads.items()}
    told = duck.run(asked, tables, light=not duck.computes(sql))["column_type"].to_pylist()
    return {f.name: type_ for f, type_ in zip(rows, told, strict=True) if _is_lost(type_)}


def collations(sql: str, reads: Mapping[str, pa.Schema], rows: pa.Schema) -> dict[str, str]:
    """By which collations those columns of a SELECT's rows are compared that have one."""
    names = dict.fromkeys(_COLLATE.findall(sql))
    texts = [field.name for field in rows if family(field.type) == pa.string()]
    if not names:
        return {}
    tables = {name: schema.empty_table() for name, schema in reads.items()}
    found: dict[str, str] = {}
    for text in texts:
        # No function tells a column's collation. But no text of one collation is compared with text of another.
        by = {name for name in (*_ANY_TWO, *names) if _compares(sql, text, name, tables)}
        if not by.issuperset(_ANY_TWO):
            found[text] = next(name for name in names if name in by)
    return found


def _compares(sql: str, column: str, collation: str, tables: Mapping[str, pa.Table]) -> bool:
    quoted = column.replace('"', '""')
    asked = f"""SELECT "{quoted}" = ('' COLLATE {collation}) FROM ({sql}) LIMIT 0"""
    try:
        duck.run(asked, tables, light=not duck.computes(sql))
    except duckdb.BinderException:
        return False
    return True


def _is_lost(type_: str) -> bool:
    return type_ in _LOST or type_.startswith("ENUM(")


def _may_be_lost(kind: pa.DataType, texts: bool) -> bool:
    return pt.is_decimal(kind) or pt.is_dictionary(kind) or (texts and family(kind) == pa.string())
