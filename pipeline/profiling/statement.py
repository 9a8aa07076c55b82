"""The one statement that makes a profile: each row is one finding, of a kind, as JSON.

Every value that a column has is counted once (`cells`), and all else is made of these counts: how many values there
are, which are heavy, and how the values of two columns meet.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import pyarrow as pa

from pipeline.profiling.inputs import Harvested, kind_of

HEAVY = 16  # values of one column that are told, at most
HEAVY_SHARE = 0.01  # of the rows that a heavy value has, at least
SAMPLE = 400  # rows of one relation
PAIRED = 6  # columns of one relation whose pairs are counted, at most

CELLS, MEASURED, TRACES = "cells", "measured", "traces"


def view_of(number: int) -> str:
    """The name by which the statement reads a harvest."""
    return f"harvest_{number}"


def statement(harvests: Sequence[Harvested], measured: bool, traced: bool) -> str:
    """Spark's SQL. Reads `harvest_N` and `cells` of them, and where they are there `measured` and `traces`."""
    parts: list[str] = []
    findings = [_COLUMNS, _HEAVY, _JOINS, _TOGETHER] if any(h.counted for h in harvests) else []
    findings += [_sample(number, harvest) for number, harvest in enumerate(harvests)]
    if measured:
        findings.append(_MEASURED)
    if traced:
        parts += _TRACED
        findings.append(_RUNS)
    return f"{'WITH ' if parts else ''}{', '.join(parts)} {_union(findings)}"


def cells(harvests: Sequence[Harvested]) -> str:
    """Each value of each column, and in how many rows it is: one pass over each harvest, and one shuffle for all. Pairs
    of columns are columns here, too; of their values it matters only which are equal."""
    values = [
        f"SELECT {_text(h.relation.name)} AS relation, cell.* FROM {view_of(number)} "
        f"LATERAL VIEW inline(array({', '.join([*_singles(h), *_pairs(h)])})) cell"
        for number, h in enumerate(harvests)
        if h.counted
    ]
    return (
        f"SELECT relation, column, other, kind, value, count(*) AS n FROM ({_union(values)}) WHERE value IS NOT NULL "
        "GROUP BY relation, column, other, kind, value"
    )


def _singles(harvest: Harvested) -> Iterator[str]:
    for f in harvest.counted:
        yield (
            f"named_struct('column', {_text(f.name)}, 'other', '', 'kind', {_text(kind_of(f.type))}, "
            f"'value', CAST({_name(f.name)} AS STRING))"
        )


def _pairs(harvest: Harvested) -> Iterator[str]:
    for one, other in combinations([f.name for f in harvest.counted][:PAIRED], 2):
        yield (
            f"named_struct('column', {_text(one)}, 'other', {_text(other)}, 'kind', 'pair', 'value', "
            f"CASE WHEN {_name(one)} IS NOT NULL AND {_name(other)} IS NOT NULL "
            f"THEN CAST(xxhash64({_name(one)}, {_name(other)}) AS STRING) END)"
        )


_COLUMNS = """
SELECT 'column' AS what, to_json(named_struct('relation', relation, 'column', column, 'filled', sum(n),
    'distinct', count(*), 'most', max(n))) AS said
FROM cells WHERE kind <> 'pair' GROUP BY relation, column"""

_TOGETHER = """
SELECT 'together' AS what, to_json(named_struct('relation', relation, 'columns', array(column, other),
    'distinct', count(*))) AS said
FROM cells WHERE kind = 'pair' GROUP BY relation, column, other"""

_HEAVY = f"""
SELECT 'heavy' AS what, to_json(named_struct('relation', relation, 'column', column, 'value', value, 'n', n)) AS said
FROM (SELECT *, row_number() OVER (PARTITION BY relation, column ORDER BY n DESC, value) AS place,
             sum(n) OVER (PARTITION BY relation, column) AS filled FROM cells
      WHERE kind <> 'pair')
WHERE place <= {HEAVY} AND n > 1 AND n >= {HEAVY_SHARE} * filled"""

_JOINS = """
SELECT 'join' AS what, to_json(named_struct('left', a.relation, 'left_column', a.column, 'right', b.relation,
    'right_column', b.column, 'pairs', sum(CAST(a.n AS DOUBLE) * b.n), 'values', count(*))) AS said
FROM cells a JOIN cells b ON a.kind = b.kind AND a.value = b.value AND a.kind <> 'pair' AND b.kind <> 'pair'
    AND (a.relation < b.relation OR (a.relation = b.relation AND a.column <= b.column))
GROUP BY a.relation, a.column, b.relation, b.column"""

_MEASURED = """
SELECT 'measured' AS what, to_json(named_struct('relation', relation, 'method', method, 'source', source, 'what', what,
    'name', name, 'weight', sum(weight))) AS said
FROM measured GROUP BY relation, method, source, what, name"""

# An ask and what became of it, in one file of a run.
_TRACED = [
    """asks AS (SELECT file, ask AS number, relation, method, at FROM traces WHERE ask IS NOT NULL)""",
    """came AS (SELECT file, arrived AS number, sum(rows) AS rows FROM traces
        WHERE arrived IS NOT NULL GROUP BY file, arrived)""",
    """ends AS (SELECT file, ended AS number, how, cause, sum(bindings) AS bindings, max(at) AS at FROM traces
        WHERE ended IS NOT NULL GROUP BY file, ended, how, cause)""",
]
_RUNS = """
SELECT 'run' AS what, to_json(named_struct('relation', asks.relation, 'method', asks.method, 'how', ends.how,
    'cause', coalesce(ends.cause, ''), 'lookups', sum(ends.bindings), 'rows', sum(coalesce(came.rows, 0)),
    'seconds', percentile(ends.at - asks.at, array(0.05, 0.5, 0.95)))) AS said
FROM asks JOIN ends ON ends.file = asks.file AND ends.number = asks.number
    LEFT JOIN came ON came.file = asks.file AND came.number = asks.number
GROUP BY asks.relation, asks.method, ends.how, ends.cause"""


def _sample(number: int, harvest: Harvested) -> str:
    """Rows by the order of their hashes: the same whenever it is asked."""
    names = [f.name for f in harvest.relation.schema]
    texts = ", ".join(_as_text(f) for f in harvest.relation.schema)
    return (
        f"SELECT 'sample' AS what, to_json(named_struct('relation', {_text(harvest.relation.name)}, 'row', "
        f"array({texts})), map('ignoreNullFields', 'false')) AS said FROM (SELECT * FROM {view_of(number)} "
        f"ORDER BY xxhash64({', '.join(map(_name, names))}) LIMIT {SAMPLE})"
    )


def _as_text(field: pa.Field) -> str:
    if pa.types.is_binary(field.type) or pa.types.is_large_binary(field.type):
        return f"CAST(NULL AS STRING) /* {field.name.replace('*/', '')} */"
    return f"CAST({_name(field.name)} AS STRING)"


def _union(statements: Sequence[str]) -> str:
    return " UNION ALL ".join(f"({one.strip()})" for one in statements)


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _name(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
