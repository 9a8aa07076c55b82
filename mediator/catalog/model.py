"""Relations, fields, sources and access methods, as data. Nothing here runs."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import pyarrow as pa

from mediator.catalog.bindfields import OPERATORS, check_operator, field_of
from mediator.catalog.ceilings import NO_CEILINGS, Ceilings
from mediator.catalog.functions import Function
from mediator.catalog.login import Login
from mediator.catalog.secret import Secret
from mediator.catalog.wrapper import Wrapper
from mediator.errors import CatalogError

# The fields that one way of asking binds, each with its operator (`bindfields.py`). Empty: everything is sent (a scan).
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
    least one of its fields. `optional` fields are passed on when they are known. Of each of them `year>=` is one with
    an operator: it is bound to a constant that the query gives.

    `exact` promises that no row comes but those that were asked for; where it is false, others are known to come. What
    the EOT of one that `proves` some says is that no more rows come, not that there are none.
    """

    name: str
    kind: Literal["scan", "index"]
    mirrors: tuple[Mirror, ...]
    wrapper: Wrapper | None  # none where the engine itself delivers the rows (stages, literals)
    required: BindSet = ()
    any_of: BindSet = ()
    optional: BindSet = ()
    batch_size: int = 1  # bindings that one request can carry
    fresh_for: float = float("inf")  # seconds that an answer of it may be served from the SteM, at most
    # Where the site is believed about that: the seconds for replies that say nothing of it. None where it is not.
    unsaid: float | None = None
    max_pages: int = 10_000  # past this the source is taken to be endless
    rows_per_lookup: float | None = None  # about so many, for estimates
    exact: bool | None = None  # none: nothing is promised, and rows that were not asked for do no harm
    proves: Literal["all", "some"] = "all"
    at_most: int | None = None  # rows of one lookup: where so many come, there may be more
    # Bindings that the site has rows for: what checks and documentation try.
    examples: tuple[Mapping[str, object], ...] = field(default=(), compare=False)
    order: tuple[str, ...] = ()  # of the rows of one lookup: fields, descending after a "-"; NULLs come last

    def bind_sets(self) -> tuple[BindSet, ...]:
        """The least that each way of asking binds; `optional` bind-fields may come on top."""
        some = [(f,) for f in self.any_of] if self.any_of else [()]
        found = {tuple(sorted({*self.required, *s})): None for s in some}
        return tuple(sorted(found, key=lambda b: (len(b), b)))

    @property
    def bound(self) -> BindSet:
        """Every bind-field that it takes."""
        return (*self.required, *self.any_of, *self.optional)


@dataclass(frozen=True)
class Relation:
    """A table of the mediated schema."""

    name: str
    fields: tuple[Field, ...]
    methods: tuple[AccessMethod, ...]
    key: tuple[str, ...] = ()  # declared: at most one row has these values
    # Rows that need no source: an IN-list's values. A relation of this kind has one scan and no wrapper.
    literal: pa.RecordBatch | None = field(default=None, compare=False)
    origin: str = field(default="", compare=False)  # where it is declared, for people
    rows: int | None = None  # about so many in all, for estimates

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
        """Whether the same row can arrive twice: several ways in or of asking, an index, or mirrors.

        Where it can't, a relation is a bag, as in SQL, and nothing is spent on looking for duplicates.
        """
        first = self.methods[0]
        return (
            len(self.methods) > 1 or first.kind == "index" or bool(first.optional) or len(first.mirrors) > 1
        )


@dataclass(frozen=True, slots=True)
class Source:
    """A site, and what it asks of its visitors."""

    name: str
    rate: float | None = None  # requests per second
    concurrency: int = 8  # requests under way at once
    deadline: float = 30.0  # seconds for one request with all its retries
    attempts: int = 5
    twice: bool = False  # a late request may be sent to it once more, where no mirror could help
    largest_reply: int | None = None  # bytes; the usual bounds where it is not said
    allow_private: bool = False  # may be on a loopback or private address
    robots: Literal["obey", "ignore"] = "ignore"  # whether its robots.txt is asked for and kept to
    password: Secret | None = None  # a database's
    login: Login | None = None  # a web site's
    per_query: Ceilings = NO_CEILINGS  # what one query may spend at it
    daily: int | None = None  # requests a day (UTC), of all queries together

    @property
    def secrets(self) -> tuple[Secret, ...]:
        """What has to be there for it to be asked."""
        return (self.password,) if self.password else self.login.secrets if self.login else ()


@dataclass(frozen=True)
class Catalog:
    """Every relation that a query may name, and the sources behind them."""

    relations: dict[str, Relation]
    sources: dict[str, Source] = field(default_factory=dict)
    # What was asked for but cannot be used, and why: relations that are not here may be there.
    unavailable: tuple[str, ...] = field(default=(), compare=False)
    functions: tuple[Function, ...] = ()  # that queries may call, beside SQL's own

    def __post_init__(self) -> None:
        for relation in self.relations.values():
            _check(relation, self.sources)
        seen: set[str] = set()
        for function in self.functions:
            if function.name in seen:
                raise CatalogError(
                    f"there are two functions {function.name!r}: give one of them another name"
                )
            seen.add(function.name)

    def knowing(self, functions: Iterable[Function]) -> Catalog:
        """The same catalog, whose queries may call these functions too."""
        more = tuple(f for f in functions if f not in self.functions)
        return replace(self, functions=(*self.functions, *more)) if more else self

    def ceilings(self, said: Mapping[str, Ceilings]) -> dict[str, Ceilings]:
        """For each source what it declares, or what a query says of it, whichever is less."""
        for name in said:
            if name not in self.sources:
                near = difflib.get_close_matches(name, self.sources, n=1)
                fix = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(self.sources)}"
                raise CatalogError(f"a ceiling is said for {name!r}, which is no source: {fix}")
        return {
            name: source.per_query.lesser(said.get(name, NO_CEILINGS))
            for name, source in self.sources.items()
        }

    def near(self, name: str) -> list[str]:
        """Names that a misspelt one may have meant."""
        return difflib.get_close_matches(name.lower(), self.relations, n=3)


def _check(relation: Relation, sources: dict[str, Source]) -> None:
    names = {f.name for f in relation.fields}
    for name in names:
        if name.endswith(OPERATORS):
            raise CatalogError(
                f"{relation.name}: a field whose name ends in an operator, {name!r}: call it otherwise"
            )
    for method in relation.methods:
        for bound in method.bound:
            if field_of(bound) not in names:
                raise CatalogError(f"{relation.name}.{method.name} binds {bound!r}, which is not a field")
            check_operator(bound, relation.schema.field(field_of(bound)).type)
        for column in method.order:
            if column.removeprefix("-") not in names:
                raise CatalogError(f"{relation.name}.{method.name}: {column!r} in its order is not a field")
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
