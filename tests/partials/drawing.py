"""Cases in which one relation feeds several others: what waits at one of them could be asked at the rest."""

from __future__ import annotations

from random import Random

import pyarrow as pa

from mediator.catalog.model import AccessMethod, Catalog, Field, Mirror, Relation, Source
from tests.any_route.drawing import Case

_MIRROR = Mirror("site", "")
_FIELDS = (Field("i0", pa.int64()), Field("i1", pa.int64()))
_SCAN = AccessMethod("scan", "scan", (_MIRROR,), None)
_INDEX = AccessMethod("index", "index", (_MIRROR,), None, required=("i0",))
_STATEMENTS = (
    "SELECT a.i1, b.i1 AS b, c.i1 AS c FROM t0 a, t1 b, t2 c WHERE a.i0 = b.i0 AND a.i0 = c.i0",
    "SELECT a.i1, b.i1 AS b, c.i1 AS c FROM t0 a, t1 b, t2 c WHERE a.i0 = b.i0 AND a.i1 = c.i0",
    "SELECT a.i1, b.i1 AS b, c.i1 AS c FROM t0 a, t1 b, t2 c WHERE a.i0 = b.i0 AND a.i1 = c.i0 AND b.i1 = c.i1",
    "SELECT a.i1, b.i1 AS b, c.i1 AS c FROM t0 a, t1 b, t1 c WHERE a.i0 = b.i0 AND b.i1 = c.i0 AND a.i1 <= c.i1",
    "SELECT a.i1, b.i1 AS b, c.i1 AS c, d.i1 AS d FROM t0 a, t1 b, t2 c, t3 d"
    " WHERE a.i0 = b.i0 AND a.i1 = c.i0 AND c.i1 = d.i0",
    "SELECT a.i1, b.i1 AS b, d.i1 AS d FROM t3 a, t1 b, t3 d WHERE a.i0 = b.i0 AND b.i1 = d.i0 AND a.i1 = d.i1",
)


def draw_fed(seed: int) -> Case:
    random = Random(seed)
    domain = random.choice((2, 3, 5))
    relations, tables = {}, {}
    for name, methods in (
        ("t0", (_SCAN,)),
        ("t1", (_INDEX,)),
        ("t2", random.choice(((_INDEX,), (_SCAN, _INDEX)))),
        ("t3", (_SCAN,)),
    ):
        relations[name] = relation = Relation(name, _FIELDS, methods)
        size = random.choice((2, 5, 9))
        rows = [(random.randrange(domain), random.randrange(domain)) for _ in range(size)]
        if relation.repeats:
            rows = list(dict.fromkeys(rows))
        columns = [pa.array(c, pa.int64()) for c in zip(*rows, strict=True)]
        tables[name] = pa.Table.from_arrays(columns, schema=relation.schema)
    statements = tuple(random.choice(_STATEMENTS) for _ in range(random.choice((1, 1, 2))))
    failing = random.choice((0.0, 0.0, 0.0, 0.3))
    catalog = Catalog(relations, {"site": Source("site")})
    leaving = random.choice((0.0, 0.0, 0.02))
    return Case(seed, catalog, tables, statements, failing, frozenset(), leaving, "fed")
