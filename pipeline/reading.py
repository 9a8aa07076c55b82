"""`spark.read.format("mediator")`: a relation, or a query, as the rows of a DataFrame."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from mediator.answering import verdicts_of
from mediator.catalog.model import Catalog
from mediator.errors import Unanswerable
from mediator.query.parameters import Parameters
from mediator.query.understand import understand
from pipeline.asking import Asking
from pipeline.dividing import divided
from pipeline.errors import BadOption
from pipeline.filters import Condition, Pushing, Statement
from pipeline.limits import portion_of, settings_for
from pipeline.options import Wanted
from pipeline.pushed import check_alone
from pipeline.types import Columns
from wrappers.sql.dialect import quoted

_IN_SPARK = (
    """In Spark: .option('bindings', '{"FIELD": ["VALUE", ...]}') says it of a relation; of several, a query does. """
    "With .option('pushdown', 'true') .where(...) says it, of a DataFrame that is used once"
)


@dataclass
class Part(InputPartition):
    """What one task asks. It is what Spark sends to it: no secret, and no catalog, is in it."""

    sql: str
    parameters: Parameters
    task: int = 0
    tasks: int = 1


class Reader(DataSourceReader):
    """Of a whole query, which says its own conditions: Spark tests its filters itself."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted

    def partitions(self) -> list[InputPartition]:
        """Plans it here, so that what cannot be answered is told before anything is asked."""
        wanted = self._wanted
        catalog = wanted.load()
        verdicts_of(understand(wanted.query, catalog, wanted.parameters), catalog)
        return [Part(wanted.query, wanted.parameters)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one part as they are found; in a task. An answer that is not complete fails in the end."""
        assert isinstance(partition, Part)
        wanted = self._wanted
        catalog = portion_of(wanted.load(), partition.task, partition.tasks)
        settings = settings_for(wanted.settings, partition.task, partition.tasks)
        columns = Columns.of(understand(partition.sql, catalog, partition.parameters).schema)
        with Asking(catalog, partition.sql, partition.parameters, settings) as asking:
            for batch in asking.batches():
                yield columns.arranged(batch)
            if not wanted.partial:
                asking.check_complete()


class RelationReader(Reader):
    """Of a relation, whose bind-fields get their values from the option `bindings`. Spark tests its filters itself."""

    def __init__(self, wanted: Wanted) -> None:
        super().__init__(wanted)
        self._pushed: tuple[Condition, ...] = ()

    def partitions(self) -> list[InputPartition]:
        wanted = self._wanted
        catalog = wanted.load()
        statement = statement_of(wanted, catalog, self._pushed)
        query = understand(statement.sql, catalog, statement.parameters)
        try:
            verdicts_of(query, catalog)
        except Unanswerable as error:
            # The statement is ours, and the user has never seen it.
            raise Unanswerable(error.message, hint=f"{error.hint}\n{_IN_SPARK}") from None
        parts = divided(statement, query, catalog, wanted.settings, wanted.partitions)
        return [Part(part.sql, part.parameters, task, len(parts)) for task, part in enumerate(parts)]


class PushingReader(RelationReader):
    """The same, where Spark's filters give values as well: for a DataFrame that is used with one set of them."""

    def __init__(self, wanted: Wanted, load: str) -> None:
        super().__init__(wanted)
        self._load = load

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        pushing = Pushing(schema_of(self._wanted, self._wanted.load()))
        rest = list(pushing.push(filters))
        self._pushed = tuple(pushing.conditions)
        check_alone(self._load, self._pushed)
        return rest


def schema_of(wanted: Wanted, catalog: Catalog) -> pa.Schema:
    """The columns of what is read. Raises a `QueryError` for a relation that is not there, or a wrong statement."""
    if wanted.query:
        return understand(wanted.query, catalog, wanted.parameters).schema
    return understand(f"SELECT * FROM {quoted(wanted.relation)}", catalog).schema


def statement_of(wanted: Wanted, catalog: Catalog, pushed: tuple[Condition, ...] = ()) -> Statement:
    """What is asked of a relation: its bindings, and what Spark has pushed."""
    schema = schema_of(wanted, catalog)
    for column in wanted.bindings:
        if column not in schema.names:
            raise BadOption(
                f"option bindings: there is no column {column!r}: there are {', '.join(schema.names)}"
            )
    said = tuple(Condition(column, "IN", values) for column, values in wanted.bindings.items())
    return Statement(wanted.relation, schema, said + pushed)


def asked_of(wanted: Wanted, catalog: Catalog) -> tuple[str, Parameters]:
    """The statement that is asked where all is asked at once, and the values of its parameters."""
    if wanted.query:
        return wanted.query, wanted.parameters
    statement = statement_of(wanted, catalog)
    return statement.sql, statement.parameters


def check_schema(said: StructType, wanted: Wanted, catalog: Catalog) -> None:
    """A schema that was given with `.schema(...)` has to be the one that there is."""
    there = Columns.of(schema_of(wanted, catalog)).taken
    if [(f.name, f.dataType) for f in said] != [(f.name, f.dataType) for f in there]:
        raise BadOption(
            f"the columns are {there.simpleString()}, not {said.simpleString()}: leave .schema(...) out, and use "
            ".select(...) and .cast(...) on what is read"
        )
