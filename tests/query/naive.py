"""A query's stages run the slow and obvious way, and the small book trade that they are run over.

A block is a cross product, filtered; every relation gives all its rows, whatever its access methods ask
for. What comes out must be what DuckDB makes of the SQL as it was written.
"""

from __future__ import annotations

import datetime
import itertools
import math
from collections.abc import Mapping

import duckdb
import numpy as np
import pyarrow as pa

from mediator.catalog.model import AccessMethod, Catalog, Field, Mirror, Relation, Source
from mediator.output import finisher
from mediator.query.model import ROW_ID, Block, BlockStage, Column, Query
from mediator.query.scope import unique

_MIRRORS = (Mirror("site", "/"),)


def scan() -> AccessMethod:
    return AccessMethod("scan", "scan", _MIRRORS, None)


def index(
    *required: str, any_of: tuple[str, ...] = (), optional: tuple[str, ...] = (), batch_size: int = 1
) -> AccessMethod:
    name = "by_" + "_".join(required or any_of)
    return AccessMethod(name, "index", _MIRRORS, None, required, any_of, optional, batch_size)


def relation(name: str, schema: pa.Schema, *methods: AccessMethod, key: tuple[str, ...] = ()) -> Relation:
    return Relation(name, tuple(Field(f.name, f.type) for f in schema), methods, key)


def catalog_of(tables: Mapping[str, pa.Table], **methods: tuple[AccessMethod, ...]) -> Catalog:
    """A scan for every table, unless it says otherwise."""
    relations = {n: relation(n, t.schema, *methods.get(n, (scan(),))) for n, t in tables.items()}
    return Catalog(relations, {"site": Source("site")})


def _table(columns: dict[str, tuple[pa.DataType, list[object]]]) -> pa.Table:
    return pa.table({name: pa.array(values, kind) for name, (kind, values) in columns.items()})


_DAY = datetime.date(2024, 1, 1)

TABLES: dict[str, pa.Table] = {
    "books": _table(
        {
            "isbn": (pa.string(), ["i1", "i2", "i3", "i4", "i5", "i6", None, "i8"]),
            "title": (pa.string(), ["Emma", "Dune", "Ulysses", "dune", None, "It's 100%", "Void", "Emma"]),
            "author_id": (pa.int64(), [1, 2, 3, 2, None, 4, 9, 1]),
            "year": (pa.int32(), [1815, 1965, 1922, 1984, 2001, None, 2020, 1816]),
            "publisher": (pa.string(), ["P", "Q", "P", "Q", "R", None, "R", "P"]),
        }
    ),
    "authors": _table(
        {
            "id": (pa.int32(), [1, 2, 3, 4, 5, None]),
            "name": (pa.string(), ["Austen", "Herbert", "Joyce", "Doe", "Nobody", "Ghost"]),
            "country": (pa.string(), ["UK", "US", "IE", None, "UK", "US"]),
        }
    ),
    "offers": _table(
        {
            "isbn": (pa.string(), ["i1", "i1", "i2", "i2", "i3", "i9", None, "i4", "i2"]),
            "shop": (pa.string(), ["s1", "s2", "s1", "s3", "s1", "s2", "s1", None, "s1"]),
            "price": (pa.float64(), [9.5, 8.0, 12.0, None, 20.25, 5.0, 1.0, 7.5, 12.0]),
            "stock": (pa.int16(), [3, 0, 5, 1, None, 2, 2, 4, 6]),
        }
    ),
    "reviews": _table(
        {
            "isbn": (pa.string(), ["i1", "i1", "i2", "i3", "i3", "i3", "i7", None]),
            "stars": (pa.int32(), [5, 3, 4, 1, None, 2, 5, 3]),
            "text": (pa.string(), ["good", "ok", "great sand", None, "long", "meh", "lost", "?"]),
            "reviewer": (pa.string(), ["ann", "bob", "ann", "bob", "cyd", "dee", "ann", "bob"]),
        }
    ),
    "prizes": _table(
        {
            "isbn": (pa.string(), ["i2", "i3", "i3", "i6", None]),
            "prize": (pa.string(), ["Hugo", "Booker", "Grand", "Hugo", "Booker"]),
            "year": (pa.int64(), [1966, 1923, 1930, 2001, None]),
            "awarded": (
                pa.date32(),
                [_DAY, _DAY + datetime.timedelta(30), None, _DAY - datetime.timedelta(400), _DAY],
            ),
            "at": (
                pa.timestamp("us"),
                [
                    datetime.datetime(2024, 1, 1),
                    datetime.datetime(2024, 1, 1, 12),
                    None,
                    datetime.datetime(2022, 11, 27),
                    datetime.datetime(2024, 1, 31),
                ],
            ),
        }
    ),
    # Names that must be quoted, and every way to be equal across types.
    "Odd Names": _table(
        {
            "Key": (pa.int64(), [1, 2, 2, None]),
            "select": (pa.string(), ["a", "b", "c", "d"]),
            "a.b": (pa.bool_(), [True, False, None, True]),
        }
    ),
    "kinds": _table(
        {
            "i8": (pa.int8(), [1, 2, None, -3]),
            "u64": (pa.uint64(), [1, 2**64 - 1, 3, None]),
            "f": (pa.float64(), [1.0, 2.5, float("nan"), -0.0]),
            "f4": (pa.float32(), [1.0, 2.0, None, 0.5]),
            "d": (pa.decimal128(10, 2), [None, 2, 1, 4]),
            "b": (pa.bool_(), [True, None, False, True]),
            "l": (pa.list_(pa.int64()), [[1, 2], [], None, [2]]),
            "big": (pa.large_string(), ["i1", "i2", None, "s1"]),
        }
    ),
    "empty": _table({"k": (pa.int64(), []), "v": (pa.string(), [])}),
}

CATALOG = catalog_of(
    TABLES,
    authors=(index("id"),),
    offers=(index("isbn", batch_size=20),),
    reviews=(index("isbn", optional=("stars",)), scan()),
)


def run(query: Query, tables: Mapping[str, pa.Table] = TABLES, batch_rows: int = 3) -> pa.Table:
    """The answers of a query, every stage fed in small batches."""
    done: dict[str, pa.Table] = {}
    for stage in query.stages:
        if isinstance(stage, BlockStage):
            done[stage.name] = run_block(stage.block, {**tables, **done})
            assert done[stage.name].schema == stage.schema
            continue
        ending = finisher(stage, {name: done[name].schema for name in stage.reads})
        batches = [
            out
            for read in stage.reads
            for batch in done[read].to_batches(max_chunksize=batch_rows)
            if not ending.done
            for out in ending.feed(read, batch)
        ]
        batches += ending.end()
        done[stage.name] = pa.Table.from_batches(batches, stage.schema)
    last = done[query.stages[-1].name]
    assert last.schema == query.schema
    return last


def run_block(block: Block, tables: Mapping[str, pa.Table]) -> pa.Table:
    """Nested loops, one alias after the other."""
    if block.never:
        return block.schema.empty_table()
    rows = [_rows(block, number, tables) for number in range(len(block.aliases))]
    found: list[np.ndarray] = []  # per alias joined, which of its rows
    for number in range(len(block.aliases)):
        size = len(found[0]) if found else 1
        count = rows[number].num_rows
        found = [np.repeat(f, count) for f in found] + [np.tile(np.arange(count), size)]
        found = _filtered(block, found, rows)
    return pa.table([_gather(o.column, found, rows, block) for o in block.outputs], schema=block.schema)


def _rows(block: Block, number: int, tables: Mapping[str, pa.Table]) -> pa.Table:
    alias = block.aliases[number]
    table = tables.get(alias.relation.name)
    if alias.relation.literal is not None:
        table = pa.Table.from_batches([alias.relation.literal])
    assert table is not None
    plain = table.combine_chunks()
    for computed in alias.computed:
        batch = pa.record_batch([_flat(plain[f]) for f in computed.reads], names=list(computed.reads))
        values = computed.evaluate(batch)
        assert values.type == computed.type
        table = table.append_column(pa.field(computed.name, computed.type), values)
    return table


def _filtered(block: Block, found: list[np.ndarray], rows: list[pa.Table]) -> list[np.ndarray]:
    last = len(found) - 1
    keep = np.ones(len(found[0]), bool)
    for equal in block.classes:
        columns = [c for c in equal.columns if c.alias <= last]
        if any(c.alias == last for c in columns):
            values = [_gather(c, found, rows, block).to_pylist() for c in columns]
            keep &= np.array([_all_equal(v) for v in zip(*values, strict=True)], bool)
    for predicate in block.predicates:
        assert predicate.aliases == sum(1 << a for a in {c.alias for c in predicate.reads})
        if predicate.aliases >> last == 1:
            keep &= predicate.test({c: _gather(c, found, rows, block) for c in predicate.reads})
    return [f[keep] for f in found]


def _all_equal(values: tuple[object, ...]) -> bool:
    if len(values) > 1 and any(v is None for v in values):
        return False
    return all(a == b or (a != a and b != b) for a, b in itertools.pairwise(values))


def _gather(column: Column, found: list[np.ndarray], rows: list[pa.Table], block: Block) -> pa.Array:
    positions = pa.array(found[column.alias])
    if column.field == ROW_ID:
        return positions.cast(pa.int64())
    return _flat(rows[column.alias][column.field].take(positions))


def _flat(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


def oracle(sql: str, parameters: object = None, tables: Mapping[str, pa.Table] = TABLES) -> pa.Table:
    """What DuckDB makes of the statement."""
    with duckdb.connect(":memory:", config={"threads": 1}) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for name, table in tables.items():
            connection.register(name, table)
        return connection.sql(sql, params=parameters).to_arrow_table()


def same(ours: pa.Table, theirs: pa.Table, ordered: bool) -> None:
    """Fails unless both hold the same rows under the same names and types."""
    assert ours.schema.names == unique(theirs.schema.names)
    for mine, other in zip(ours.schema, theirs.schema, strict=True):
        assert _kind(mine.type) == _kind(other.type), mine.name
    assert _shown(ours, ordered) == _shown(theirs, ordered)


def _kind(kind: pa.DataType) -> pa.DataType:
    return pa.string() if kind in (pa.large_string(), pa.string_view()) else kind


def _shown(table: pa.Table, ordered: bool) -> list[str]:
    rows = [repr([_value(v) for v in row.values()]) for row in _dicts(table)]
    return rows if ordered else sorted(rows)


def _dicts(table: pa.Table) -> list[dict[str, object]]:
    return table.rename_columns([str(n) for n in range(table.num_columns)]).to_pylist()


def _value(value: object) -> object:
    if isinstance(value, float):
        return "nan" if math.isnan(value) else round(value, 9) + 0.0
    if isinstance(value, list):
        return [_value(v) for v in value]
    return value
