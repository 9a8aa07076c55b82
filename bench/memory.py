"""Sources that answer from memory, through the access modules and without a network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from mediator.catalog.model import AccessMethod, Catalog, Field, Mirror, Relation, Source
from mediator.catalog.wrapper import Binding, Page, Reply, Request


@dataclass(frozen=True)
class Pages:
    """A wrapper whose reply says nothing: the page that was asked for is here already."""

    pages: tuple[pa.RecordBatch, ...]
    empty_statuses: frozenset[int] = frozenset()

    def request(self, bind_set: tuple[str, ...], bindings: Sequence[Binding]) -> Request:
        return Request("/0")

    def read(
        self, request: Request, bind_set: tuple[str, ...], bindings: Sequence[Binding], reply: Reply
    ) -> Page:
        number = int(request.path[1:])
        following = number + 1
        then = (Request(f"/{following}"),) if following < len(self.pages) else ()
        return Page(self.pages[number], then)


class Memory:
    """A transport that answers at once, with nothing."""

    async def send(self, mirror: Mirror, request: Request) -> Reply:
        return Reply(200, {}, b"")


def catalog_of(tables: Mapping[str, pa.Table], page: int) -> Catalog:
    """Each table as a relation that one scan brings, page by page, from a source of its own."""
    relations: dict[str, Relation] = {}
    for name, table in tables.items():
        pages = Pages(tuple(table.combine_chunks().to_batches(max_chunksize=page)))
        scan = AccessMethod("scan", "scan", (Mirror(name, "http://memory/"),), pages)
        fields = tuple(Field(f.name, f.type) for f in table.schema)
        relations[name] = Relation(name, fields, (scan,))
    return Catalog(relations, {name: Source(name) for name in tables})
