"""A query, understood: stages of select-project-join blocks and of SQL above them. No sqlglot type leaves
this room.

A statement becomes stages in an order in which each reads only earlier ones. A `BlockStage` is run by an
eddy. A `SqlStage` is run by DuckDB over the finished rows of earlier stages, or, when it is `rowwise`,
over each batch as it comes. A stage that a later block joins with appears there as a derived relation of
the stage's name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mediator.catalog.functions import Function
from mediator.catalog.model import Relation

# A pseudo-field of every alias: which stored row this is. It tells equal rows of a bag apart.
ROW_ID = "#row"


class Column(NamedTuple):
    """A field (or computed column) of one alias of a block."""

    alias: int
    field: str


@dataclass(frozen=True, slots=True)
class Computed:
    """A column made from others of the same alias, so that an expression can be a join key.

    `name` is the expression's canonical text: two queries that need the same one share it.
    """

    name: str
    type: pa.DataType
    reads: tuple[str, ...]
    evaluate: Callable[[pa.RecordBatch], pa.Array]  # over the `reads`, in their order
    computes: bool = False  # for a few rows it may take long, too


@dataclass(frozen=True, slots=True)
class Alias:
    """One relation in the FROM list."""

    number: int
    name: str
    relation: Relation
    computed: tuple[Computed, ...] = ()
    position: int | None = None  # of its name in the statement


@dataclass(frozen=True, slots=True)
class EqualClass:
    """Columns of one type that are equal in every answer, and the constant that they equal, if there is
    one."""

    columns: tuple[Column, ...]
    constant: object = None


@dataclass(frozen=True, slots=True)
class Bound:
    """`column operator value` holds for every row that an answer is made of; a constant, and no NULL."""

    column: Column
    operator: str  # one of < <= > >= ^=
    value: object


@dataclass(frozen=True, slots=True)
class Comparison:
    """`left op right` between two aliases, where op is one of < <= > >=."""

    left: Column
    op: str
    right: Column


@dataclass(frozen=True, slots=True)
class Predicate:
    """A conjunct of WHERE or ON that is not an equality of an `EqualClass`.

    `test` gets the columns of `reads` as arrays of one length and says for which positions it is TRUE
    (SQL's UNKNOWN is not). One that reads a single alias is a selection. A `costly` one is routed to like
    a module of its own; the others ride along with the probe that first spans them.
    """

    number: int  # position in the block's list of predicates
    text: str
    aliases: int  # bit mask
    reads: tuple[Column, ...]
    test: Callable[[Mapping[Column, pa.Array]], NDArray[np.bool_]]
    comparison: Comparison | None = None
    costly: bool = False
    why_costly: str = ""  # for people
    calls: bool = False  # functions that a caller brought along, ...
    seconds: float = 0.0  # ... which are said to cost so much for a row
    computes: bool = False  # a test of few rows may take long, too


@dataclass(frozen=True, slots=True)
class Preference:
    """A condition that the user prefers rows to meet. It counts for the order of things, never for the answer."""

    text: str
    weight: float  # of what satisfies it; 1 is what all else weighs
    reads: tuple[Column, ...]
    test: Callable[[Mapping[Column, pa.Array]], NDArray[np.bool_]]
    computes: bool = False  # a test of few rows may take long, too


@dataclass(frozen=True, slots=True)
class Output:
    """A column of a block's answers, and the name it goes by above."""

    column: Column
    name: str


@dataclass(frozen=True, slots=True)
class Block:
    """Select, project, join."""

    aliases: tuple[Alias, ...]
    classes: tuple[EqualClass, ...]
    predicates: tuple[Predicate, ...]
    outputs: tuple[Output, ...]
    never: bool = False  # a predicate without columns is not TRUE: no answers, and nothing is asked
    bounds: tuple[Bound, ...] = ()  # of those conditions that a source may be asked by
    mixed: tuple[str, ...] = ()  # joins of text with what is no text, in words

    @property
    def computes(self) -> bool:
        """Whether anything is computed of its rows, which may take any time however few there are."""
        return any(p.computes for p in self.predicates) or any(
            c.computes for a in self.aliases for c in a.computed
        )

    def type_of(self, column: Column) -> pa.DataType:
        if column.field == ROW_ID:
            return pa.int64()
        alias = self.aliases[column.alias]
        for computed in alias.computed:
            if computed.name == column.field:
                return computed.type
        return alias.relation.schema.field(column.field).type

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([pa.field(o.name, self.type_of(o.column)) for o in self.outputs])


@dataclass(frozen=True, slots=True)
class BlockStage:
    name: str
    block: Block
    schema: pa.Schema


@dataclass(frozen=True, slots=True)
class Top:
    """The best `count` rows by columns of the one stage that is read, each with whether it descends; NULLs last."""

    keys: tuple[tuple[str, bool], ...]
    count: int


@dataclass(frozen=True, slots=True)
class Expression:
    """A piece of a statement, and the columns that it reads, by name."""

    sql: str
    reads: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RowParts:
    """A rowwise statement in pieces: what it selects from the one stage that it reads, and its conjuncts."""

    source: str  # its FROM
    items: tuple[Expression, ...]
    conditions: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class SqlStage:
    """`sql` reads earlier stages as tables of their names, `reads` in all.

    Without `sql` a rowwise stage passes rows on as they are, those of several reads as they come (UNION ALL).
    """

    name: str
    sql: str
    reads: tuple[str, ...]
    schema: pa.Schema
    rowwise: bool = False  # each batch of its one read can be treated alone
    # A rowwise stage may stop early, by LIMIT and OFFSET, and may drop rows that it has already given
    # (DISTINCT).
    limit: int | None = None
    offset: int = 0
    distinct: bool = False
    # SQL of those rows of its one read that still matter (the best k of an ORDER BY ... LIMIT k). It may be
    # run over what it kept before and what is new, any number of times; then `sql` over what is left gives
    # the answer.
    prune: str = ""
    top: Top | None = None  # the same where it is a matter of plain columns, and no row is dropped otherwise
    # The pieces of a rowwise `sql`; none where a row may give several.
    parts: RowParts | None = None


Stage = BlockStage | SqlStage


@dataclass(frozen=True, slots=True)
class Query:
    sql: str
    stages: tuple[Stage, ...]  # the last one gives the answers
    schema: pa.Schema  # of the answers, under the names that the user wrote
    functions: tuple[Function, ...] = ()  # callers' own, that it calls
    volatile: bool = False  # whether rows may differ when it is run again over the same
    parameters: Mapping[str, object] | Sequence[object] = ()  # that the text was given
