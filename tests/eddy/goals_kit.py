"""Small federations, made by hand, and runs over them under a virtual clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from bench.papers.asked import Told, run
from bench.papers.federations import Federation, Join
from mediator.assembly import Settings
from mediator.catalog.model import AccessMethod, Catalog, Field, Mirror, Relation, Source
from mediator.eddy.goals.goal import Goal

AT = (Mirror("site", ""),)
SCAN = AccessMethod("scan", "scan", AT, None)


def by(*fields: str, batch_size: int = 1) -> AccessMethod:
    return AccessMethod(f"by_{'_'.join(fields)}", "index", AT, None, required=fields, batch_size=batch_size)


def federation(
    tables: Mapping[str, Mapping[str, Sequence[int]]],
    methods: Mapping[str, Sequence[AccessMethod]],
    *joins: str,
    limits: Mapping[str, int] | None = None,
    constants: Mapping[str, int] | None = None,
) -> Federation:
    """Joins are said as `r.a = s.a`; the columns `id`, `f` and `c` are there by themselves."""
    filled = {}
    for name, columns in tables.items():
        size = len(next(iter(columns.values())))
        own = {"id": list(range(size)), "f": [0] * size, "c": [0] * size, **columns}
        filled[name] = pa.table({column: pa.array(values, pa.int64()) for column, values in own.items()})
    relations = {
        name: Relation(
            name, tuple(Field(c, pa.int64()) for c in table.column_names), tuple(methods[name]), ("id",)
        )
        for name, table in filled.items()
    }
    parted = [[side.split(".") for side in join.split(" = ")] for join in joins]
    made = tuple(Join(left[0], left[1], right[0], right[1]) for left, right in parted)
    catalog = Catalog(relations, {"site": Source("site")})
    return Federation(0, "by hand", filled, made, limits or {}, constants or {}, catalog)


def told(of: Federation, goal: Goal, **said: object) -> Told:
    return run(of, Settings(goal=goal, **said))  # type: ignore[arg-type]


def lookups(of: Federation, goal: Goal, **said: object) -> dict[str, int]:
    return told(of, goal, **said).by_table
