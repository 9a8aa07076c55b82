"""What a declaration file says, as a model: sources, and relations with the ways into them."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt

from wrappers import (
    CsvReader,
    HtmlReader,
    JsonReader,
    NdjsonReader,
    PagingSpec,
    ParquetReader,
    Rule,
    Template,
)

ReaderSpec = Annotated[
    JsonReader | NdjsonReader | CsvReader | HtmlReader | ParquetReader, Field(discriminator="kind")
]


class _Spec(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SourceSpec(_Spec):
    """A site: its base address, and what it asks of its visitors."""

    base: str = Field(pattern="^(https?://|postgresql://|sqlite:///)")
    rate: PositiveFloat | None = None
    concurrency: PositiveInt = 8
    deadline: PositiveFloat = 30.0
    attempts: PositiveInt = 5
    twice: bool = False
    allow_private: bool = False
    password_env: str = ""  # the environment variable that has a database's password
    password_file: str = ""  # or the file


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
    pages: PagingSpec | None = None
    given: tuple[str, ...] = ()  # bind-fields that the rows do not repeat
    empty: frozenset[int] = frozenset()  # statuses that mean "no rows"
    errors: tuple[Rule, ...] = ()  # what else replies mean; the first that applies decides

    @property
    def bound(self) -> tuple[str, ...]:
        return (*self.required, *self.any_of, *self.optional)


class DatabaseSpec(_Spec):
    """A table of a database: it can be scanned, and is looked up by each list of fields in `indexed`.

    `table` is `schema.table`, or a list of names where one has a dot in it. Names are written as they are stored.
    `key` are fields that are unique and never NULL: with them, pages are read one by one.
    """

    source: str
    table: str | tuple[str, ...]
    key: tuple[str, ...] = ()
    indexed: tuple[tuple[str, ...], ...] = ()
    columns: dict[str, str] = {}  # by field, where the column has another name
    batch_size: PositiveInt = Field(default=100, le=1_000)
    fresh_for: PositiveFloat = float("inf")
    scan: bool = True


class RelationSpec(_Spec):
    """A table: its fields by name and type, its key, and its methods or the database that it is in."""

    fields: dict[str, str] = Field(min_length=1)
    key: tuple[str, ...] = ()
    methods: dict[str, MethodSpec] = {}
    database: DatabaseSpec | None = None


class Declaration(_Spec):
    """A whole file. A source may be declared in one file and used in another."""

    sources: dict[str, SourceSpec] = {}
    relations: dict[str, RelationSpec] = {}
