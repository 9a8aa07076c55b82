"""What a declaration file says, as a model: sources, and relations with the ways into them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    PositiveFloat,
    PositiveInt,
    WithJsonSchema,
)

from sources.auth import AuthSpec, NoAuth, VariableName
from sources.code_names import found_code
from sources.fresh import FOREVER, Fresh
from sources.limits import PerQuerySpec, Size
from wrappers import (
    Code,
    CsvReader,
    GraphqlQuery,
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


# The name of a class in YAML, found while the file is read; what a Python class has made of itself.
WrapperSpec = Annotated[
    Code,
    PlainValidator(found_code),
    PlainSerializer(str, return_type=str),
    WithJsonSchema({"type": "string", "pattern": r"^[\w.]+(\.py)?:[\w.]+$"}),
]

# Of an example: looked at with the type of its field. YAML makes a date of what looks like one.
BoundValue = Annotated[
    Any, WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "boolean"}]})
]

# Left out where 'graphql' is given: compiling makes it of that, so that whoever sees a compiled method finds it.
_MADE: Any = None


class _Spec(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SourceSpec(_Spec):
    """A site: its base address, and what it asks of its visitors."""

    model_config = ConfigDict(hide_input_in_errors=True)  # there may be a secret in it

    base: str = Field(pattern="^(https?://|postgresql://|sqlite:///)")
    rate: PositiveFloat | None = None
    concurrency: PositiveInt = 8
    deadline: PositiveFloat = 30.0
    attempts: PositiveInt = 5
    twice: bool = False
    daily: PositiveInt | None = None  # requests, of all queries together
    per_query: PerQuerySpec | None = None
    largest_reply: Size | None = None  # past which a reply is not believed
    allow_private: bool = False
    robots: Literal["obey", "ignore"] | None = None  # if left out: obeyed where web pages are read
    auth: AuthSpec = NoAuth()  # how a web site is told who asks
    password_env: VariableName = ""  # the environment variable that has a database's password
    password_file: str = ""  # or the file


class MethodSpec(_Spec):
    """One way to get rows: an index where something has to be bound, else a scan."""

    mirrors: tuple[str, ...] = Field(min_length=1)
    required: tuple[str, ...] = ()
    any_of: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    batch_size: PositiveInt = 1
    fresh_for: Fresh = FOREVER
    max_pages: PositiveInt = 10_000
    exact: bool | None = None  # whether no row comes that was not asked for
    proves: Literal["all", "some"] = "all"  # what it means that no more rows come
    at_most: PositiveInt | None = None  # rows of one lookup: where so many come, there may be more
    order: tuple[str, ...] = ()  # of the rows of one lookup: "-year" is descending
    rows_per_lookup: PositiveFloat | None = None  # about so many, for estimates
    request: Template = _MADE
    reply: ReaderSpec = _MADE
    graphql: GraphqlQuery | None = None  # instead of the two
    wrapper: WrapperSpec | None = None  # code instead of one of the two, or of both
    pages: PagingSpec | None = None
    given: tuple[str, ...] = ()  # bind-fields that the rows do not repeat
    empty: frozenset[int] = frozenset()  # statuses that mean "no rows"
    errors: tuple[Rule, ...] = ()  # what else replies mean; the first that applies decides
    examples: tuple[dict[str, BoundValue], ...] = ()  # bindings that the site has rows for

    @property
    def bound(self) -> tuple[str, ...]:
        return (*self.required, *self.any_of, *self.optional)


class DatabaseSpec(_Spec):
    """A table of a database: it can be scanned, and is looked up by each list of fields in `indexed`.

    `table` is `schema.table`, or a list of names where one has a dot in it. Names are written as they are stored.
    `key` are fields that are unique and never NULL: with them, pages are read one by one. `ranges` are fields of which
    it is asked for what is less, more, or begins so; if left out: all that it can compare.
    """

    source: str
    table: str | tuple[str, ...]
    key: tuple[str, ...] = ()
    indexed: tuple[tuple[str, ...], ...] = ()
    ranges: tuple[str, ...] | None = None
    columns: dict[str, str] = {}  # by field, where the column has another name
    batch_size: PositiveInt = Field(default=100, le=1_000)
    fresh_for: PositiveFloat = float("inf")
    scan: bool = True


class RelationSpec(_Spec):
    """A table: its fields by name and type, its key, and its methods or the database that it is in."""

    fields: dict[str, str] = Field(min_length=1)
    key: tuple[str, ...] = ()
    rows: PositiveInt | None = None  # about so many, for estimates
    methods: dict[str, MethodSpec] = {}
    database: DatabaseSpec | None = None


class Declaration(_Spec):
    """A whole file. A source may be declared in one file and used in another."""

    sources: dict[str, SourceSpec] = {}
    relations: dict[str, RelationSpec] = {}
