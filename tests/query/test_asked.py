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
