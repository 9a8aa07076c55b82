"""The book trade as a catalog: which relations there are, and what they must be given."""

from __future__ import annotations

import pyarrow as pa

from mediator.binding import Verdict, verdict
from mediator.catalog.model import AccessMethod, Catalog, Field, Mirror, Relation, Source
from mediator.query import understand
from mediator.query.model import Block, BlockStage

_MIRROR = Mirror("site", "/")
_TYPES = {"s": pa.string(), "i": pa.int64(), "n": pa.int32(), "d": pa.date32(), "f": pa.float64()}


def method(
    name: str,
    kind: str = "index",
    required: str = "",
    any_of: str = "",
    optional: str = "",
    batch_size: int = 1,
    mirrors: int = 1,
) -> AccessMethod:
    fields = (tuple(required.split()), tuple(any_of.split()), tuple(optional.split()))
    return AccessMethod(name, kind, (_MIRROR,) * mirrors, None, *fields, batch_size)  # type: ignore[arg-type]


def relation(name: str, fields: str, *methods: AccessMethod) -> Relation:
    """Fields as `isbn:s year:n`."""
    pairs = (f.split(":") for f in fields.split())
    return Relation(name, tuple(Field(n, _TYPES[t]) for n, t in pairs), methods)


def catalog(*relations: Relation) -> Catalog:
    return Catalog({r.name: r for r in relations}, {"site": Source("site")})


SCAN = method("scan", "scan")

TRADE = catalog(
    relation("books", "isbn:s title:s author_id:i year:n", SCAN),
    relation("authors", "id:n name:s country:s", method("by_id", required="id")),
    relation("offers", "isbn:s shop:s price:f", method("by_isbn", required="isbn", batch_size=20, mirrors=2)),
    relation("reviews", "isbn:s stars:n text:s", method("by_isbn", required="isbn", optional="stars")),
    relation("libraries", "library_id:i name:s city:s zip:s", method("search", any_of="city zip")),
    relation("holdings", "isbn:s library_id:i copies:n", method("lookup", required="isbn library_id")),
    relation("prizes", "isbn:s prize:s year:i", SCAN, method("by_year", required="year")),
)


def block_of(sql: str, trade: Catalog = TRADE) -> Block:
    """The last block of a statement."""
    return [s for s in understand(sql, trade).stages if isinstance(s, BlockStage)][-1].block


def verdict_of(sql: str, trade: Catalog = TRADE) -> Verdict:
    return verdict(block_of(sql, trade), sql, trade)


def told(found: Verdict, block: Block) -> dict[str, str]:
    """Per alias, the chosen access method and where its inputs come from, in short."""
    shown = {}
    for provider in found.chosen:
        inputs = [
            f"{i.field}={i.constant!r}"
            if i.column is None
            else f"{i.field}<{block.aliases[i.column.alias].name}.{i.column.field}"
            for i in provider.inputs
        ]
        shown[block.aliases[provider.alias].name] = " ".join([provider.method.name, *inputs])
    return shown
