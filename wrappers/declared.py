"""A wrapper made of data: a request template, a reader, pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from mediator.catalog.model import Field
from mediator.catalog.wrapper import Binding, Cuts, Cutter, Meaning, Page, Reply, Request
from mediator.errors import SourceError
from wrappers.columns import repeated
from wrappers.paging import Leaf, Paging, SameRows
from wrappers.parsed import Parsed, Reader
from wrappers.rules import Rule, meaning_of
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
    rules: tuple[Rule, ...] = ()
    several: bool = False  # a request may carry several bindings

    def request(self, bind_set: tuple[str, ...], bindings: Sequence[Binding]) -> Request:
        request = self.written(bind_set, bindings)
        return self.paging.begin(request) if self.paging else request

    def written(self, bind_set: tuple[str, ...], bindings: Sequence[Binding]) -> Request:
        """The request before it says which page it wants."""
        return self.template.request(bind_set, bindings, several=self.several)

    def read(
        self, request: Request, bind_set: tuple[str, ...], bindings: Sequence[Binding], reply: Reply
    ) -> Page:
        schema = pa.schema([pa.field(f.name, f.type) for f in self.fields])
        if reply.status == _NO_CONTENT or self._is_empty(reply):
            return Page(_nothing(schema))
        told = [f for f in self.fields if f.name not in self.given]
        parsed, others = self.parsed(told, request, bind_set, bindings, reply)
        columns = dict(zip((f.name for f in told), parsed.columns, strict=True))
        for field in self.fields:
            if field.name in self.given:
                value = bindings[0][bind_set.index(field.name)]
                columns[field.name] = repeated(field, value, parsed.count)
        rows = pa.RecordBatch.from_arrays([columns[f.name] for f in self.fields], schema=schema)
        leaf = Leaf(self.relation, request, parsed, reply.headers, self.max_pages, reply.address)
        if self.paging is None or others is not None:
            return Page(rows, others or ())
        try:
            return Page(rows, self.paging.after(leaf))
        except SameRows:  # which came already
            raise
        except SourceError as error:
            return Page(rows, astray=error)

    def parsed(
        self,
        told: Sequence[Field],
        request: Request,
        bind_set: tuple[str, ...],
        bindings: Sequence[Binding],
        reply: Reply,
    ) -> tuple[Parsed, tuple[Request, ...] | None]:
        """The columns of the fields that the site tells, and what is to be asked next if the pages do not say it."""
        return self.reader.parse(self.relation, told, reply), None

    def cutter(self, headers: Mapping[str, str]) -> Cutter | None:
        """Where there is nothing to be told from the reply but its rows, and its format is one of lines."""
        if self.paging is not None or self.rules or not isinstance(self.reader, Cuts):
            return None
        return self.reader.cutter(headers)

    def meaning(self, reply: Reply) -> Meaning | None:
        """What the rules say of a reply. One of `empty_statuses` is empty where they say nothing else."""
        return meaning_of(self.rules, self.reader, reply) if self.rules else None

    def _is_empty(self, reply: Reply) -> bool:
        meaning = self.meaning(reply)
        return reply.status in self.empty_statuses if meaning is None else meaning.means == "empty"


def _nothing(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], f.type) for f in schema], schema=schema)
