"""Above the eddy: a block's answers become the query's, batch by batch where SQL allows it.

A finisher runs one `SqlStage`. It is fed the rows of the stages that it reads, in any order, and gives
result batches back; what it cannot give yet it gives at the end. DuckDB does the work. Nothing here waits,
and nothing is asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Protocol

import duckdb
import pyarrow as pa

from mediator.errors import TypeMismatch
from mediator.query import duck
from mediator.query.model import RowParts, SqlStage
from mediator.statements.patience import aside

# Rows that a running top k gathers before it forgets those that are out.
_PRUNE_AT = 8192
# A column beside those of a batch: where in it a row stood.
PLACE = "#place"
_QUOTED_PLACE = f'"{PLACE}"'


class Finisher(Protocol):
    """Runs one stage."""

    @property
    def done(self) -> bool:
        """Whether no more rows can change the answer: LIMIT is reached, so stop asking."""
        ...

    def feed(self, read: str, batch: pa.RecordBatch) -> list[pa.RecordBatch]:
        """Takes rows of a stage that is read; gives the final answer rows that follow from them."""
        ...

    def end(self) -> list[pa.RecordBatch]:
        """All has been fed: the answer rows that are still owed."""
        ...

    def snapshot(self) -> pa.Table | None:
        """The answer as it would be were this all; none where every row given so far is final."""
        ...


def finisher(stage: SqlStage, schemas: Mapping[str, pa.Schema]) -> Finisher:
    """A new run of a stage; `schemas` are those of the stages that it reads."""
    return Streaming(stage) if stage.rowwise else Gathering(stage, schemas)


class Streaming:
    """A rowwise stage: each batch is projected by itself, told apart from earlier rows, and cut to LIMIT."""

    def __init__(self, stage: SqlStage) -> None:
        self._stage = stage
        self._to_skip = stage.offset
        self._to_give = stage.limit
        self._seen: set[bytes] = set()

    @property
    def done(self) -> bool:
        return self._to_give == 0

    def feed(self, read: str, batch: pa.RecordBatch) -> list[pa.RecordBatch]:
        if self.done or not batch.num_rows:
            return []
        table = pa.Table.from_batches([batch])
        if self._stage.sql:
            table = _run(self._stage.sql, {read: table}, light=not duck.computes(self._stage.sql))
        if self._stage.distinct:
            table = self._unseen(table)
        return _batches(self._cut(table), self._stage)

    def feed_placed(self, read: str, batch: pa.RecordBatch) -> list[tuple[pa.RecordBatch, list[int]]]:
        """The same, and for each answer row the place in the batch of the row that it comes of."""
        if self.done or not batch.num_rows:
            return []
        table = pa.Table.from_batches([batch])
        table = table.append_column(PLACE, pa.array(range(batch.num_rows), pa.int64()))
        if self._stage.sql:
            assert self._stage.parts is not None
            table = _run(rows_sql(self._stage.parts), {read: table})
        if self._stage.distinct:
            table = table.take(self._fresh(table.drop_columns([PLACE])))
        table = self._cut(table)
        out: list[tuple[pa.RecordBatch, list[int]]] = []
        places, at = table.column(PLACE).to_pylist(), 0
        for answers in _batches(table.drop_columns([PLACE]), self._stage):
            out.append((answers, places[at : at + answers.num_rows]))
            at += answers.num_rows
        return out

    def end(self) -> list[pa.RecordBatch]:
        return []

    def snapshot(self) -> pa.Table | None:
        return None

    def _unseen(self, table: pa.Table) -> pa.Table:
        return table.take(self._fresh(table))

    def _fresh(self, table: pa.Table) -> pa.Array:
        """Where the rows are that were never given; rows are equal as SQL's DISTINCT has it."""
        fresh = []
        for position, key in enumerate(row_keys(table)):
            if key not in self._seen:
                self._seen.add(key)
                fresh.append(position)
        return pa.array(fresh, pa.int64())

    def _cut(self, table: pa.Table) -> pa.Table:
        skipped = min(self._to_skip, table.num_rows)
        self._to_skip -= skipped
        table = table.slice(skipped)
        if self._to_give is None:
            return table
        table = table.slice(0, self._to_give)
        self._to_give -= table.num_rows
        return table


class Gathering:
    """A stage that needs all of its rows: sorts, groups, sets, outer joins. It can be asked for its state
    meanwhile."""

    def __init__(self, stage: SqlStage, schemas: Mapping[str, pa.Schema]) -> None:
        self._stage = stage
        self._tables = {name: schemas[name].empty_table() for name in stage.reads}
        self._waiting: dict[str, list[pa.RecordBatch]] = {name: [] for name in stage.reads}
        self._unpruned = 0  # rows since it was last looked at which of them still matter
        self._size = 0  # bytes that were fed

    @property
    def done(self) -> bool:
        return False

    def feed(self, read: str, batch: pa.RecordBatch) -> list[pa.RecordBatch]:
        self._waiting[read].append(batch)
        self._unpruned += batch.num_rows
        self._size += batch.nbytes
        most = duck.room()
        if most is not None and self._size > most and not self._stage.prune:
            raise duck.too_much("what has to be gathered before there is an answer")
        if self._stage.prune and self._unpruned >= _PRUNE_AT:
            self._prune(read)
        return []

    def end(self) -> list[pa.RecordBatch]:
        return _batches(self._all(), self._stage)

    def snapshot(self) -> pa.Table | None:
        return _as(self._all(), self._stage.schema)

    def _all(self) -> pa.Table:
        """The answer to all that was fed."""
        tables = dict(self._gathered())
        return aside(lambda: _answer(self._stage, tables))

    @property
    def held(self) -> int:
        """Rows in memory."""
        waiting = sum(int(b.num_rows) for batches in self._waiting.values() for b in batches)
        return waiting + sum(int(t.num_rows) for t in self._tables.values())

    def _gathered(self) -> dict[str, pa.Table]:
        for name, batches in self._waiting.items():
            if batches:
                fed = pa.Table.from_batches(batches)
                self._tables[name] = pa.concat_tables(
                    [self._tables[name], fed.cast(self._tables[name].schema)]
                )
                batches.clear()
        return self._tables

    def _prune(self, read: str) -> None:
        self._tables[read] = _run(self._stage.prune, self._gathered()).cast(self._tables[read].schema)
        self._unpruned = 0


def row_keys(table: pa.Table) -> list[bytes]:
    """One for each row: those that SQL's DISTINCT takes for equal have equal ones."""
    columns = ", ".join(f"c{n}, 'ASC NULLS LAST'" for n in range(table.num_columns))
    numbered = table.rename_columns([f"c{n}" for n in range(table.num_columns)])
    keys: list[bytes] = duck.run(
        f"SELECT create_sort_key({columns}) AS k FROM t", {"t": numbered}, light=True
    )["k"].to_pylist()
    return keys


def rows_sql(parts: RowParts, items: Sequence[int] | None = None, known: Set[str] | None = None) -> str:
    """A rowwise statement that says of each row where it stood. Only these items; conditions as far as what they read
    is known."""
    chosen = [f"{parts.items[n].sql} AS c{n}" for n in (range(len(parts.items)) if items is None else items)]
    conditions = [c.sql for c in parts.conditions if known is None or known >= set(c.reads)]
    where = f" WHERE {' AND '.join(f'({c})' for c in conditions)}" if conditions else ""
    return f"SELECT {', '.join([*chosen, _QUOTED_PLACE])} FROM {parts.source}{where}"


def _answer(stage: SqlStage, tables: Mapping[str, pa.Table]) -> pa.Table:
    return _run(stage.sql, tables)


def _run(sql: str, tables: Mapping[str, pa.Table], light: bool = False) -> pa.Table:
    try:
        return duck.run(sql, tables, light=light)
    except duckdb.Error as error:
        raise TypeMismatch(duck.fault(error).message) from None


def _batches(table: pa.Table, stage: SqlStage) -> list[pa.RecordBatch]:
    return [b for b in _as(table, stage.schema).to_batches() if b.num_rows]


def _as(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Under the promised names and types; equal names, which DuckDB may give, are told apart by the
    schema."""
    renamed = table.rename_columns(schema.names)
    return renamed if renamed.schema == schema else renamed.cast(schema)
