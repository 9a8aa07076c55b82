"""Relations, fields, sources and access methods, as data. Nothing here runs."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import Literal

import pyarrow as pa

from mediator.catalog.password import Password
from mediator.catalog.wrapper import Wrapper
from mediator.errors import CatalogError

# The fields that one way of asking binds. Empty: everything is sent (a scan).
BindSet = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Field:
    """One column of a relation."""

    name: str
    type: pa.DataType


@dataclass(frozen=True, slots=True)
class Mirror:
    """One place that answers an access method: a source, and the address its requests are relative to."""

    source: str
    base: str


@dataclass(frozen=True, slots=True)
class AccessMethod:
    """One declared way to get rows of a relation.

    A scan needs nothing bound. An index needs every field of `required` and, when `any_of` is not empty, at
    least one of its fields. `optional` fields are passed on when they are known.
    """

    name: str
    kind: Literal["scan", "index"]
    mirrors: tuple[Mirror, ...]
    wrapper: Wrapper | None  # none where the engine itself delivers the rows (stages, literals)
    required: BindSet = ()
    any_of: BindSet = ()
    optional: BindSet = ()
    batch_size: int = 1  # bindings that one request can carry
    fresh_for: float = float("inf")  # seconds that an answer of it may be served from the SteM
    max_pages: int = 10_000  # past this the source is taken to be endless

    def bind_sets(self) -> tuple[BindSet, ...]:
        """Every way of asking: the smallest first, so that what needs least is thought of first."""
        some = [(f,) for f in self.any_of] if self.any_of else [()]
        extra = _subsets(self.optional)
        found = {tuple(sorted({*self.required, *s, *e})): None for e, s in product(extra, some)}
        return tuple(sorted(found, key=lambda b: (len(b), b)))


@dataclass(frozen=True)
class Relation:
    """A table of the mediated schema."""

    name: str
    fields: tuple[Field, ...]
    methods: tuple[AccessMethod, ...]
    key: tuple[str, ...] = ()  # declared: at most one row has these values
    # Rows that need no source: an IN-list's values. A relation of this kind has one scan and no wrapper.
    literal: pa.RecordBatch | None = field(default=None, compare=False)

    @cached_property
    def schema(self) -> pa.Schema:
        return pa.schema([pa.field(f.name, f.type) for f in self.fields])

    @cached_property
    def scans(self) -> tuple[AccessMethod, ...]:
        return tuple(m for m in self.methods if m.kind == "scan")

    def method(self, name: str) -> AccessMethod:
        return next(m for m in self.methods if m.name == name)

    @cached_property
    def repeats(self) -> bool:
        """Whether the same row can arrive twice: several ways in, an index, or mirrors.

        Where it can't, a relation is a bag, as in SQL, and nothing is spent on looking for duplicates.
        """
        return len(self.methods) > 1 or self.methods[0].kind == "index" or len(self.methods[0].mirrors) > 1


@dataclass(frozen=True, slots=True)
class Source:
    """A site, and what it asks of its visitors."""

    name: str
    rate: float | None = None  # requests per second
    concurrency: int = 8  # requests under way at once
    deadline: float = 30.0  # seconds for one request with all its retries
    attempts: int = 5
    twice: bool = False  # a late request may be sent to it once more, where no mirror could help
    allow_private: bool = False  # may be on a loopback or private address
    password: Password | None = None  # a database's


@dataclass(frozen=True)
class Catalog:
    """Every relation that a query may name, and the sources behind them."""

    relations: dict[str, Relation]
    sources: dict[str, Source] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for relation in self.relations.values():
            _check(relation, self.sources)

    def near(self, name: str) -> list[str]:
        """Names that a misspelt one may have meant."""
        return difflib.get_close_matches(name.lower(), self.relations, n=3)


def _check(relation: Relation, sources: dict[str, Source]) -> None:
    names = {f.name for f in relation.fields}
    for method in relation.methods:
        for bound in (*method.required, *method.any_of, *method.optional):
            if bound not in names:
                raise CatalogError(f"{relation.name}.{method.name} binds {bound!r}, which is not a field")
        if method.kind == "index" and not (method.required or method.any_of):
            raise CatalogError(f"{relation.name}.{method.name} is an index without a bind-field")
        for mirror in method.mirrors:
            if mirror.source not in sources:
                raise CatalogError(f"{relation.name}.{method.name} names an unknown source {mirror.source!r}")
    if not relation.methods:
        raise CatalogError(f"{relation.name} has no access method")
    for key in relation.key:
        if key not in names:
            raise CatalogError(f"{relation.name}: the key {key!r} is not a field")


def _subsets(fields: BindSet) -> list[BindSet]:
    subsets: list[BindSet] = [()]
    for name in fields:
        subsets += [(*s, name) for s in subsets]
    return subsets
