"""What a declaration file says, as a model: sources, and relations with the ways into them."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt

from wrappers import CsvReader, HtmlReader, JsonReader, LinkedPages, NumberedPages, Template

ReaderSpec = Annotated[JsonReader | CsvReader | HtmlReader, Field(discriminator="kind")]


class _Spec(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SourceSpec(_Spec):
    """A site: its base address, and what it asks of its visitors."""

    base: str = Field(pattern="^https?://")
    rate: PositiveFloat | None = None
    concurrency: PositiveInt = 8
    deadline: PositiveFloat = 30.0
    attempts: PositiveInt = 5
    allow_private: bool = False


class MethodSpec(_Spec):
    """One way to get rows: an index where something has to be bound, else a scan."""

    mirrors: tuple[str, ...] = Field(min_length=1)
    required: tuple[str, ...] = ()
    any_of: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    batch_size: PositiveInt = 1
    fresh_for: PositiveFloat = float("inf")
    max_pages: PositiveInt = 10_000
    request: Template
    reply: ReaderSpec
    pages: NumberedPages | LinkedPages | None = None
    given: tuple[str, ...] = ()  # bind-fields that the rows do not repeat
    empty: frozenset[int] = frozenset()  # statuses that mean "no rows"

    @property
    def bound(self) -> tuple[str, ...]:
        return (*self.required, *self.any_of, *self.optional)


class RelationSpec(_Spec):
    """A table: its fields by name and type, its key, its methods."""

    fields: dict[str, str] = Field(min_length=1)
    key: tuple[str, ...] = ()
    methods: dict[str, MethodSpec] = Field(min_length=1)


class Declaration(_Spec):
    """A whole file. A source may be declared in one file and used in another."""

    sources: dict[str, SourceSpec] = {}
    relations: dict[str, RelationSpec] = {}
