"""Statements of all kinds over cells give what DuckDB gives, whatever is a stage of its own, and however it is cut.

`MEDIATOR_CELL_SEEDS=1000` searches further.
"""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import duckdb
import pyarrow as pa
import pytest

from mediator.errors import Unanswerable
from tests.pipeline.unstreamed import answered
from tests.query import drawing
from tests.query.naive import catalog_of, index, oracle, same

SEEDS = int(os.environ.get("MEDIATOR_CELL_SEEDS", "20"))
NAN = float("nan")
TABLES = {
    "r": pa.table({"a": [1, 1, 2, 3, None], "b": [10, 10, 20, 30, 40]}),
    "s": pa.table({"a": [1, 1, 1, 2, 2, 5], "c": ["x", "y", "z", "x", "y", "x"]}),
    "t": pa.table({"c": ["x", "y", "z", "x"], "d": [1, 1, 1, 2]}),
    "f": pa.table({"f": [0.0, NAN, 1.5, NAN], "g": [1, 2, 3, 4]}),
    "u": pa.table({"f": [0.0, 1.5], "h": [1, 2]}),
}
CATALOG = catalog_of(TABLES, s=(index("a"), index("c")), t=(index("c"),), u=(index("f"),))


@pytest.mark.parametrize(
    "sql",
    [
        # Rows that only the place tells apart that they have in the store of their cell.
        "SELECT r.b, s.a FROM r LEFT JOIN s ON s.a = r.a AND s.a = 1",
        "SELECT r.b, (SELECT count(*) FROM s, t WHERE s.a = r.a AND t.c = s.c) AS n FROM r",
        # Lists and intervals as the rows of a stage that a block reads, alone and dealt out.
        "WITH w AS (SELECT a, list(b) AS l, {'n': a} AS p FROM r GROUP BY a) SELECT a, p.n FROM w WHERE l[1] > 1",
        "WITH w AS (SELECT a, max(b * INTERVAL 1 DAY) AS i FROM r GROUP BY a) SELECT a, i FROM w WHERE a < 3",
        "SELECT b * INTERVAL 1 MONTH AS i, [b * INTERVAL 1 DAY] AS l FROM r",
        # What equals nothing in Python.
        "SELECT f.g, u.h FROM f JOIN u ON u.f = f.f",
    ],
)
def test_as_duckdb_has_it(sql: str, tmp_path: Path) -> None:
    for seed in range(4):
        found = answered(sql, CATALOG, TABLES, tmp_path / str(seed), Random(seed))
        same(found, oracle(sql, tables=TABLES), ordered=False)


def test_drawn(tmp_path: Path) -> None:
    tried = 0
    for seed in range(SEEDS):
        sql, tables = drawing.statement(seed), drawing.tables(seed)
        # An index brings equal rows of a relation once.
        tables |= {
            name: pa.table(tables[name].group_by(tables[name].schema.names).aggregate([])) for name in "st"
        }
        try:
            true = oracle(sql, tables=tables)
            found = answered(sql, drawing.CATALOG, tables, tmp_path / str(seed), Random(seed))
        except (duckdb.Error, Unanswerable):
            continue
        same(found, true, ordered="LIMIT" in sql)
        tried += 1
    assert tried > SEEDS / 4
