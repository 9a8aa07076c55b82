"""What the tests of the store share: relations, groups of news, and mediators that come one after another."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

import pyarrow as pa

from fixtures import Web
from fixtures.virtual import VirtualTransport
from mediator.answering import Mediator
from mediator.catalog.model import AccessMethod, Catalog, Field, Mirror, Relation
from mediator.store.records import Covered, Group, Sent
from mediator.store.store import Store

SITE = (Mirror("site", "http://site.test"),)
SCAN = AccessMethod("all", "scan", SITE, None)
BY_K = AccessMethod("by_k", "index", SITE, None, required=("k",))
FIELDS = (Field("k", pa.int64()), Field("v", pa.string()))
SET = Relation("looked_up", FIELDS, (BY_K,))
BAG = Relation("scanned", FIELDS, (SCAN,))

NOON = 1_800_000_000.0
EVER = float("inf")
_STEMS = count(1_000_000)
_LOOKUPS = count(1)

Row = tuple[object, ...]


class Wall:
    """A time of day that a test sets."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> float:
        return self.now


def sent(relation: Relation, at: float, *rows: Row, lookup: int = 1) -> Sent:
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(relation.fields)
    arrays = [pa.array(list(c), f.type) for c, f in zip(columns, relation.schema, strict=True)]
    return Sent(pa.RecordBatch.from_arrays(arrays, schema=relation.schema), at, lookup)


def looked_up(k: int, *values: str, at: float = NOON, until: float = EVER) -> Group:
    """The answer of one lookup, which was asked a second before its rows came."""
    lookup = next(_LOOKUPS)
    rows = [sent(SET, at + 1, *((k, v) for v in values), lookup=lookup)] if values else []
    return Group(SET, 0, rows, [Covered(("k",), (k,), at, until, lookup)])


def scanned(*rows: Row, stem: int | None = None, at: float = NOON, ended: bool = True) -> Group:
    whole = [Covered((), (), at, EVER, 1)] if ended else []
    return Group(BAG, next(_STEMS) if stem is None else stem, [sent(BAG, at + 1, *rows)], whole)


def loaded(store: Store, relation: Relation, now: float = NOON + 10) -> list[Row]:
    """The rows that an opened store gives back, sorted."""
    kept = store.load(relation, now)
    assert kept is not None
    return listed(kept.rows)


def listed(rows: pa.Table) -> list[Row]:
    return sorted(zip(*(c.to_pylist() for c in rows.columns), strict=True), key=repr)


def covered(store: Store, relation: Relation, now: float = NOON + 10) -> Sequence[Row]:
    kept = store.load(relation, now)
    return [] if kept is None else sorted(c.binding for c in kept.covered)


def files(folder: Path) -> list[str]:
    return sorted(p.name for p in (folder / "segments").iterdir())


@asynccontextmanager
async def keeping(
    web: Web, folder: Path, wall: Wall | None = None, catalog: Catalog | None = None
) -> AsyncIterator[Mediator]:
    """A mediator over a web without sockets, with a store."""
    async with Mediator(
        catalog or web.catalog,
        threads=1,
        transport=VirtualTransport(web),
        store=folder,
        wall=wall or Wall(),
    ) as mediator:
        yield mediator
