"""All that is known of one access method once its sites were asked. The checks look at nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from mediator.access.method import Method
from mediator.catalog.bindfields import field_of
from mediator.catalog.model import AccessMethod, BindSet, Relation
from mediator.catalog.wrapper import Binding, Request, Wrapper
from mediator.errors import SourceError
from wrappers.conformance.asking import Exchange, Lookup, Row
from wrappers.conformance.finding import Look, skipped
from wrappers.conformance.samples import Samples


@dataclass(frozen=True)
class Packed:
    """Several bindings in one request, the same bindings one by one, and whether the request was full."""

    together: Lookup
    alone: tuple[Lookup, ...]
    full: bool


@dataclass(frozen=True)
class Narrowed:
    """A lookup, and the same one with an optional bind-field bound as well."""

    name: str
    without: Lookup
    with_it: Lookup


@dataclass(frozen=True)
class Outside:
    """A page where none should be: `where` is `before the first` or `after the last`."""

    where: str
    inside: Lookup
    lookup: Lookup


@dataclass
class Evidence:
    """One access method of a site under test."""

    way: Method
    samples: dict[BindSet, Samples] = field(default_factory=dict)
    known: list[Lookup] = field(default_factory=list)  # of bindings that should have rows, at every mirror
    unknown: list[Lookup] = field(default_factory=list)
    other_case: list[tuple[Lookup, Lookup]] = field(
        default_factory=list
    )  # as it is, and with the case swapped
    packed: list[Packed] = field(default_factory=list)
    narrowed: list[Narrowed] = field(default_factory=list)
    outside: list[Outside] = field(default_factory=list)
    lacks: dict[BindSet, str] = field(default_factory=dict)  # what to add where there was nothing to try
    others: Sequence[Evidence] = ()  # of the relation's other methods
    secrets: tuple[str, ...] = ()  # that its sources are told
    played: bool = False  # from a cassette

    @property
    def relation(self) -> Relation:
        return self.way.relation

    @property
    def method(self) -> AccessMethod:
        return self.way.declared

    @property
    def wrapper(self) -> Wrapper:
        return self.way.wrapper

    @property
    def good(self) -> list[Lookup]:
        """Known bindings whose rows could be read, as far as they were."""
        return [lookup for lookup in self.known if lookup.good]

    @property
    def turned(self) -> list[Lookup]:
        """Those whose pages were read, with several bindings too."""
        return [*self.good, *(p.together for p in self.packed if p.together.good)]

    @property
    def all(self) -> list[Lookup]:
        """Everything that was asked."""
        return [
            *self.known,
            *self.unknown,
            *(swapped for _, swapped in self.other_case),
            *(p.together for p in self.packed),
            *(n.with_it for n in self.narrowed),
            *(o.lookup for o in self.outside),
        ]

    @property
    def given(self) -> tuple[str, ...]:
        """Bind-fields that are filled in from the binding: rows say nothing about them."""
        return tuple(getattr(self.wrapper, "given", ()))

    @property
    def optional(self) -> set[str]:
        """Fields that a row may lack."""
        code = getattr(self.wrapper, "code", None)
        reader = getattr(self.wrapper, "reader", None)
        return {*getattr(reader, "optional", ()), *dict(getattr(code, "defaults", ()))}

    def place(self, name: str) -> int:
        """Where a row has the field of a bind-field."""
        return int(self.relation.schema.names.index(field_of(name)))

    def exchanges(self) -> Iterator[tuple[Lookup, Exchange]]:
        for lookup in self.all:
            for exchange in (*lookup.repeated, *lookup.exchanges):
                yield lookup, exchange

    def failures(self) -> Iterator[tuple[Lookup, SourceError]]:
        """The errors of lookups that should have worked."""
        for lookup in self.known:
            if lookup.error is not None:
                yield lookup, lookup.error

    def nothing_read(self) -> Look:
        """Why a check that needs rows cannot be made."""
        for bind_set, remedy in self.lacks.items():
            return skipped(f"there is no binding of {', '.join(bind_set)} to try", remedy)
        for lookup in self.known:
            if lookup.error is None and lookup.cut:
                return skipped(lookup.cut)
        return skipped("no known lookup could be read")


def request_of(lookup: Lookup) -> Request | None:
    """The request that shows best what happened: the last one made."""
    return lookup.last.request if lookup.last is not None else None


def cut_of(lookups: Iterable[Lookup]) -> str:
    """Why the first of them that was not read to its end was not."""
    return next((lookup.cut for lookup in lookups if lookup.cut), "")


def said(row: Row) -> str:
    text = repr(row)
    return text if len(text) <= 120 else text[:117] + "..."


def bound(bind_set: BindSet, binding: Binding) -> str:
    return ", ".join(f"{name} = {value!r}" for name, value in zip(bind_set, binding, strict=True))
