"""What an alias's rows are selected by, apart from what it is joined with."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from mediator.query.model import Block


def selections(block: Block, alias: int) -> set[str]:
    """The fields, or the texts of conditions on more than one."""
    fields = {
        column.field
        for equal in block.classes
        if equal.constant is not None
        for column in equal.columns
        if column.alias == alias
    }
    for predicate in block.predicates:
        if predicate.aliases == 1 << alias:
            read = {column.field for column in predicate.reads}
            fields.add(read.pop() if len(read) == 1 else predicate.text)
    return fields


def selected(block: Block, alias: int, rows: pa.Table) -> pa.Table | None:
    """The rows that pass; None where that cannot be tried on these columns."""
    names = set(rows.column_names)
    keep = np.ones(rows.num_rows, np.bool_)
    for equal in block.classes:
        for column in equal.columns:
            if column.alias == alias and equal.constant is not None:
                if column.field not in names:
                    return None
                values = rows.column(column.field).to_pylist()
                keep &= np.fromiter((v == equal.constant for v in values), np.bool_, len(values))
    for predicate in block.predicates:
        if predicate.aliases == 1 << alias:
            if not all(column.field in names for column in predicate.reads):
                return None
            keep &= predicate.test({c: rows.column(c.field).combine_chunks() for c in predicate.reads})
    return rows.filter(pa.array(keep))
