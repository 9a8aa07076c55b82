"""What is asked of sources that answer only when something is bound, and what comes of it."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.query.asked import Asking
from tests.query.naive import catalog_of, index, oracle, same


def _table(**columns: tuple[pa.DataType, list[object]]) -> pa.Table:
    return pa.table({name: pa.array(values, kind) for name, (kind, values) in columns.items()})


TABLES = {
    "r": _table(a=(pa.int64(), [1, 2, 300, -1, 2**40, None]), v=(pa.int64(), [1, 2, 3, 4, 5, 6])),
    "s": _table(k=(pa.int8(), [1, 2, -1, 44, None]), v=(pa.int64(), [1, 20, 4, 5, 6])),
    "u": _table(k=(pa.uint8(), [1, 2, 255, 44, None]), v=(pa.int64(), [1, 20, 4, 3, 6])),
}
CATALOG = catalog_of(TABLES, s=(index("k"),), u=(index("k", "v"),))

TOO_LARGE = """
SELECT r.a, s.v FROM r JOIN s ON s.k = r.a
SELECT r.a, s.v FROM r LEFT JOIN s ON s.k = r.a
SELECT r.a, u.v FROM r LEFT JOIN u ON u.k = r.a AND u.v = r.v
SELECT r.a FROM r WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.k = r.a)
SELECT s.k FROM s WHERE s.k IN (SELECT a * 1000 FROM r)
SELECT s.k FROM s WHERE s.k = (SELECT max(a) FROM r)
SELECT r.a, s.k FROM r, s WHERE r.a IN (1, 300) AND s.k = r.a
SELECT r.a, s.k FROM r, s WHERE r.a = 300 AND s.k = r.a
SELECT r.a, s.k FROM r LEFT JOIN s ON s.k = r.a WHERE r.a = 300
"""


@pytest.mark.parametrize("sql", TOO_LARGE.strip().splitlines())
def test_no_source_is_asked_for_a_number_that_its_field_has_no_room_for(sql: str) -> None:
    asking = Asking(sql, CATALOG, TABLES)
    same(asking.answer, oracle(sql, tables=TABLES), ordered=False)
    assert all(-128 <= k <= 127 for (k,) in asking.bindings("s") if isinstance(k, int))
    assert all(0 <= b[0] <= 255 for b in asking.bindings("u") if isinstance(b[0], int))


LISTED = {
    "k = ANY([1, 2])": "s (1) (2)",
    "k = ANY(VALUES (1), (2))": "s (1) (2)",
    "k = ANY(VALUES (1), (2) LIMIT 1)": "s (1)",
    "k = ANY((VALUES (1), (2)) LIMIT 1)": "s (1)",
    "k IN ((VALUES (1), (2)) LIMIT 1)": "s (1)",
    "list_contains([1, 2], k)": "s (1) (2)",
    "k IN (VALUES (1), (2), (NULL))": "s (1) (2)",
    "k IN (SELECT unnest([1, 2]))": "s (1) (2)",
    "k IS NOT DISTINCT FROM 1": "s (1)",
    "1 IS NOT DISTINCT FROM k": "s (1)",
    "k IN (VALUES (1), (300))": "s (1)",
    "(k, v) IN ((1, 1), (2, 20), (1, 1), (300, 1))": "s (1) (2)",
    "(v, k) IN ((1, 1), (20, 2))": "u (1, 1) (2, 20)",
    "(k, v) IN ((1, 1))": "u (1, 1)",
    "(k, v) IN (VALUES (1, 1), (-1, 7))": "u (1, 1)",
    "(k, v) IN ((1, 1), (2, 20)) AND v < 9": "u (1, 1) (2, 20)",
}


@pytest.mark.parametrize(("condition", "asked"), LISTED.items())
def test_what_is_listed_is_looked_up_however_it_is_written(condition: str, asked: str) -> None:
    relation, _, bindings = asked.partition(" ")
    sql = f"SELECT * FROM {relation} WHERE {condition}"
    asking = Asking(sql, CATALOG, TABLES)
    same(asking.answer, oracle(sql, tables=TABLES), ordered=False)
    found = {b if len(b) > 1 else f"({b[0]})" for b in asking.bindings(relation)}
    assert " ".join(sorted(map(str, found))) == bindings


NOT_LISTED = """
SELECT * FROM r WHERE (a, v) IN ((1, NULL), (2, 2))
SELECT * FROM r WHERE (a, v) IN ((1, 1.0), (2, 2.5))
SELECT * FROM r WHERE (a, v) NOT IN ((1, 1), (2, 2))
SELECT * FROM r WHERE (a, v) IN ((1, 1), (2, 2)) OR v = 6
SELECT * FROM r WHERE a IS NOT DISTINCT FROM NULL
SELECT * FROM r WHERE a IS NOT DISTINCT FROM 1.5 OR v = 6
SELECT * FROM r WHERE list_contains([1, NULL], a)
SELECT * FROM r WHERE a = ANY([1, 2.5])
SELECT * FROM (SELECT [a] AS l, v FROM r) WHERE l IN ([1])
SELECT * FROM (SELECT [a] AS l, v FROM r) WHERE l IN ([1], [2]) OR l = ANY([[300]])
SELECT * FROM r WHERE NOT list_contains([1, 2], a)
SELECT r.a, s.v FROM r LEFT JOIN s ON s.k = r.a AND (s.k, s.v) IN ((1, 1), (2, 2))
SELECT r.a, s.v FROM r LEFT JOIN s ON s.k = r.a WHERE (r.a, r.v) IN ((1, 1), (300, 3))
SELECT r.a, s.v FROM r LEFT JOIN s ON s.k = r.a WHERE (r.a, s.v) IN ((1, 1), (2, 2))
SELECT r.a, s.v FROM r LEFT JOIN s ON s.k = r.a WHERE s.k IS NOT DISTINCT FROM 1
SELECT r.a, s.v FROM r JOIN s ON s.k = r.a WHERE (r.v, s.v) IN ((1, 1), (2, 20), (2, 21))
SELECT r.a FROM r WHERE EXISTS (SELECT 1 FROM s WHERE s.k = r.a AND (s.k, s.v) IN ((1, 1), (2, 2)))
SELECT count(*) AS n, a = ANY([1, 2]) AS z FROM r GROUP BY a = ANY([1, 2])
"""


@pytest.mark.parametrize("sql", NOT_LISTED.strip().splitlines())
def test_what_is_listed_means_what_it_did(sql: str) -> None:
    asking = Asking(sql, CATALOG, TABLES)
    same(asking.answer, oracle(sql, tables=TABLES), ordered=False)
