"""Partial answers as rows: what is known of an answer's columns, through the SQL that stands above the block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mediator.eddy.run import Run
from mediator.errors import TypeMismatch
from mediator.flow.batch import Batch
from mediator.output.finish import PLACE, rows_sql
from mediator.query import duck
from mediator.query.model import BlockStage, Column, Output, SqlStage


@dataclass(frozen=True, slots=True)
class Constant:
    """What a column equals in every answer."""

    value: object
    type: pa.DataType


@dataclass(frozen=True, slots=True)
class Sight:
    """What is known of an answer where only some aliases have rows."""

    known: dict[str, Column | Constant]  # the block's outputs, each with where it is read
    items: tuple[int, ...]  # the answers' columns that can be said
    unknown: tuple[str, ...]  # the names of the others


class Showing:
    """`above` is the rowwise SQL over the block, where there is any."""

    def __init__(self, run: Run, stage: BlockStage, above: SqlStage | None) -> None:
        self._run = run
        self._stage = stage
        self._above = above
        self._schema = stage.schema if above is None else above.schema
        self._sights: dict[int, Sight] = {}

    def says(self, mask: int) -> bool:
        """Whether anything can be said of an answer by rows of these aliases."""
        return bool(self.sight(mask).items)

    def rows(self, batch: Batch) -> tuple[pa.RecordBatch, NDArray[np.int64]]:
        """The rows as answers, and which of them these are: those that no condition above rules out.

        Raises `TypeMismatch` where the SQL above fails over them.
        """
        sight = self.sight(batch.signature.spanned)
        names = list(sight.known)
        columns = [self._read(batch, sight.known[name]) for name in names]
        if self._above is None or self._above.parts is None:
            found = pa.table(columns, names=names) if names else pa.table({})
            return self._whole(found, len(batch), sight), np.arange(len(batch))
        table = pa.table([*columns, pa.array(np.arange(len(batch)))], names=[*names, PLACE])
        sql = rows_sql(self._above.parts, sight.items, set(sight.known))
        try:
            found = duck.run(sql, {self._stage.name: table})
        except duckdb.Error as error:
            raise TypeMismatch(duck.fault(error).message) from None
        places = found.column(PLACE).to_numpy()
        return self._whole(found.drop_columns([PLACE]), len(places), sight), places

    def sight(self, mask: int) -> Sight:
        if mask not in self._sights:
            self._sights[mask] = self._looked(mask)
        return self._sights[mask]

    def _looked(self, mask: int) -> Sight:
        block = self._stage.block
        sources = ((o.name, self._source(o, mask)) for o in block.outputs)
        known = {name: source for name, source in sources if source is not None}
        if self._above is None or self._above.parts is None:
            items = [n for n, o in enumerate(block.outputs) if o.name in known]
        else:
            outputs = {o.name for o in block.outputs}
            parts = self._above.parts
            items = [n for n, i in enumerate(parts.items) if not outputs & set(i.reads) - known.keys()]
        said = set(items)
        unknown = tuple(name for n, name in enumerate(self._schema.names) if n not in said)
        return Sight(known, tuple(items), unknown)

    def _source(self, output: Output, mask: int) -> Column | Constant | None:
        """Where the column can be read: there, or from a column that equals it in every answer."""
        column, block = output.column, self._stage.block
        if mask >> column.alias & 1:
            return column
        kind = block.type_of(column)
        if pa.types.is_floating(kind):
            return None  # 0.0 and -0.0 are equal, and look different
        for group in block.classes:
            if column in group.columns:
                if group.constant is not None:
                    return Constant(group.constant, kind)
                return next((c for c in group.columns if mask >> c.alias & 1), None)
        return None

    def _read(self, batch: Batch, source: Column | Constant) -> pa.Array:
        if isinstance(source, Constant):
            return pa.array([source.value] * len(batch), source.type)
        return self._run.gather(batch, source)

    def _whole(self, found: pa.Table, count: int, sight: Sight) -> pa.RecordBatch:
        """All columns of an answer, in their order."""
        columns: list[pa.Array] = [pa.nulls(count, field.type) for field in self._schema]
        for column, number in zip(found.columns, sight.items, strict=True):
            columns[number] = _as(column, self._schema.field(number).type)
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)


def names_of(mask: int, named: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for n, name in enumerate(named) if mask >> n & 1))


def _as(column: pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    whole = column.cast(kind).combine_chunks()
    return whole if isinstance(whole, pa.Array) else pa.concat_arrays(whole.chunks)
