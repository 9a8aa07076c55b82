"""A wrapper made of data: a request template, a reader, pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from mediator.catalog.model import Field
from mediator.catalog.wrapper import Binding, Page, Reply, Request
from wrappers.columns import repeated
from wrappers.paging import Paging
from wrappers.parsed import Reader
from wrappers.template import Template

_NO_CONTENT = 204


@dataclass(frozen=True)
class DeclaredWrapper:
    """Writes requests and reads replies for one access method of `relation`.

    `given` are bind-fields that the site does not repeat in its rows: they are filled in from the binding, so
    that a request of such a method can carry only one.
    """

    relation: str
    fields: tuple[Field, ...]
    template: Template
    reader: Reader
    paging: Paging | None = None
    given: tuple[str, ...] = ()
    empty_statuses: frozenset[int] = frozenset()
    max_pages: int = 10_000

    def request(self, bind_set: tuple[str, ...], bindings: Sequence[Binding]) -> Request:
        request = self.template.request(bind_set, bindings)
        return self.paging.begin(request) if self.paging else request

    def read(
        self, request: Request, bind_set: tuple[str, ...], bindings: Sequence[Binding], reply: Reply
    ) -> Page:
        schema = pa.schema([pa.field(f.name, f.type) for f in self.fields])
        if reply.status == _NO_CONTENT or reply.status in self.empty_statuses:
            return Page(_nothing(schema))
        told = [f for f in self.fields if f.name not in self.given]
        parsed = self.reader.parse(self.relation, told, reply)
        columns = dict(zip((f.name for f in told), parsed.columns, strict=True))
        for field in self.fields:
            if field.name in self.given:
                value = bindings[0][bind_set.index(field.name)]
                columns[field.name] = repeated(field, value, parsed.count)
        rows = pa.RecordBatch.from_arrays([columns[f.name] for f in self.fields], schema=schema)
        then = self.paging.after(self.relation, request, parsed, self.max_pages) if self.paging else ()
        return Page(rows, then)


def _nothing(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], f.type) for f in schema], schema=schema)
