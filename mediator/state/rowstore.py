"""The rows of one relation, once: append-only columns, read by row id."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from mediator.errors import MediatorError
from mediator.flow.batch import Rows
from mediator.state.columns import StoreColumn, TextColumn, column_of
from mediator.state.vocabulary import Vocabulary

_MOST = np.iinfo(np.int32).max
_DEEPEST = 4  # how often rows are packed before all of them is copied, and what they were in is let go


class RowStore:
    """Columns of equal length. Computed columns are filled when they are first read, and kept up after that."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self.n = 0
        self._columns: dict[str, StoreColumn] = {f.name: column_of(f.type) for f in schema}
        self._computed: dict[str, _Filler] = {}

    @classmethod
    def of(cls, schema: pa.Schema, rows: pa.RecordBatch) -> RowStore:
        """A store of these rows alone."""
        store = cls(schema)
        for name, column in zip(schema.names, rows.columns, strict=True):
            store._columns[name].adopt(column)
        store.n = rows.num_rows
        return store

    @property
    def size(self) -> int:
        """Bytes of memory, about."""
        return sum(column.size for column in self._columns.values())

    def append(self, rows: pa.RecordBatch) -> range:
        """Store the rows; their ids follow one another."""
        if self.n + rows.num_rows > _MOST:
            raise MediatorError(f"A relation can hold at most {_MOST:,} rows in memory")
        for name, column in zip(self.schema.names, rows.columns, strict=True):
            self._columns[name].append(column)
        start, self.n = self.n, self.n + rows.num_rows
        return range(start, self.n)

    def compute(
        self,
        name: str,
        type_: pa.DataType,
        reads: tuple[str, ...],
        evaluate: Callable[[pa.RecordBatch], pa.Array],
    ) -> None:
        """Add a column made from others, unless one of that name is there."""
        if name not in self._columns:
            self._columns[name] = column_of(type_)
            self._computed[name] = _Filler(reads, evaluate)

    def bare(self, name: str) -> StoreColumn:
        """The column as far as it has been filled."""
        return self._columns[name]

    def column(self, name: str) -> StoreColumn:
        """The column, complete for every row stored so far."""
        if name in self._computed:
            self._fill(name)
        return self._columns[name]

    def vocabularies(self) -> list[Vocabulary]:
        """Those that number strings of its columns."""
        texts = [c for c in self._columns.values() if isinstance(c, TextColumn)]
        return [c.vocabulary for c in texts if c.vocabulary is not None]

    def gather(self, name: str, rows: Rows) -> pa.Array:
        return self.column(name).gather(rows)

    def rows(self, rows: Rows) -> pa.RecordBatch:
        """These rows, with the declared columns."""
        return pa.RecordBatch.from_arrays(
            [self.gather(n, rows) for n in self.schema.names], schema=self.schema
        )

    def _fill(self, name: str) -> None:
        filler = self._computed[name]
        if filler.n == self.n:
            return
        missing = range(filler.n, self.n)
        given = pa.RecordBatch.from_arrays(
            [self.column(r).gather(missing) for r in filler.reads], names=list(filler.reads)
        )
        self._columns[name].append(filler.evaluate(given))
        filler.n = self.n


class PackedRows(RowStore):
    """Rows that lie in several stores, as if they were in one. A column is copied when it is first read: of most rows
    nobody ever reads more than the one by which they are looked for."""

    def __init__(self, parts: Sequence[tuple[RowStore, Rows]]) -> None:
        super().__init__(parts[0][0].schema)
        self._depth: int = 1 + max(_depth(store) for store, _ in parts)
        if self._depth > _DEEPEST:
            whole = pa.concat_batches([store.rows(rows) for store, rows in parts])
            parts = [(RowStore.of(self.schema, whole), range(whole.num_rows))]
            self._depth = 1
        self._parts = parts
        self._missing = set(self.schema.names)
        self.n = sum(len(rows) for _, rows in parts)

    def column(self, name: str) -> StoreColumn:
        """The column, complete for every row stored so far."""
        if name in self._missing:
            values = pa.concat_arrays([store.gather(name, rows) for store, rows in self._parts])
            self._columns[name].adopt(values)
            self._missing.remove(name)
        return super().column(name)


def _depth(store: RowStore) -> int:
    return store._depth if isinstance(store, PackedRows) else 0


class _Filler:
    """How a computed column is made, and for how many rows it has been."""

    __slots__ = ("evaluate", "n", "reads")

    def __init__(self, reads: tuple[str, ...], evaluate: Callable[[pa.RecordBatch], pa.Array]) -> None:
        self.reads = reads
        self.evaluate = evaluate
        self.n = 0
