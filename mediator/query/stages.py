"""The list of stages while it grows: each gets a name, a schema, and what it reads."""

from __future__ import annotations

import duckdb
import pyarrow as pa
from sqlglot import exp

from mediator.errors import QueryError, TypeMismatch, Unsupported
from mediator.query import duck
from mediator.query.lost import collations, lost_types
from mediator.query.model import Block, BlockStage, SqlStage, Stage
from mediator.query.names import Names


class Stages:
    """Finished stages, in an order in which each reads only earlier ones."""

    def __init__(self, names: Names) -> None:
        self.done: list[Stage] = []
        self._places: dict[str, int] = {}
        self._names = names
        self._lost: dict[str, dict[str, str]] = {}
        self._collations: dict[str, dict[str, str]] = {}
        self._relations = {r.lower() for r in names.catalog.relations}

    def schema(self, name: str) -> pa.Schema:
        return self.done[self.place(name)].schema

    def has(self, name: str) -> bool:
        return name in self._places

    def place(self, name: str) -> int:
        """Among those that are done."""
        return self._places[name]

    def drop(self, mark: int) -> None:
        """All but so many."""
        for stage in self.done[mark:]:
            del self._places[stage.name]
            self._lost.pop(stage.name, None)
            self._collations.pop(stage.name, None)
        del self.done[mark:]

    def fresh(self, wish: str) -> str:
        """A stage's name is no relation's either: both go by their names in one store."""
        name = self._names.fresh(wish)
        while name.lower() in self._relations:
            name = self._names.fresh(wish)
        return name

    def add(self, stage: SqlStage) -> SqlStage:
        self._places[stage.name] = len(self.done)
        self.done.append(stage)
        return stage

    def add_block(self, block: Block) -> BlockStage:
        stage = BlockStage(self.fresh("block"), block, block.schema)
        self._places[stage.name] = len(self.done)
        self.done.append(stage)
        return stage

    def add_sql(self, node: exp.Expr, wish: str = "step") -> SqlStage:
        """A stage of a query whose FROM clauses all name stages by now."""
        sql, reads = node.sql("duckdb"), self.read_by(node)
        return self.add(SqlStage(self.fresh(wish), sql, reads, self._shape(sql, reads)))

    def lost_types(self, name: str) -> dict[str, str]:
        """What DuckDB calls the types of those columns of a stage for which Arrow has others."""
        if name not in self._lost:
            self._lost[name] = self._look_for_lost(self.done[self.place(name)])
        return self._lost[name]

    def _look_for_lost(self, stage: Stage) -> dict[str, str]:
        if isinstance(stage, BlockStage) or not stage.sql:
            return {}  # columns of relations, which have Arrow's own
        return lost_types(stage.sql, self._given(stage), stage.schema)

    def _given(self, stage: SqlStage) -> dict[str, pa.Schema]:
        return {read: self.schema(read) for read in stage.reads}

    def collations(self, name: str) -> dict[str, str]:
        """By which collations those columns of a stage are compared that have one."""
        if name not in self._collations:
            stage = self.done[self.place(name)]
            known = (
                {}
                if isinstance(stage, BlockStage)
                else collations(stage.sql, self._given(stage), stage.schema)
            )
            self._collations[name] = known
        return self._collations[name]

    def read_by(self, node: exp.Expr) -> tuple[str, ...]:
        known = {s.name for s in self.done}
        return tuple(dict.fromkeys(t.name for t in node.find_all(exp.Table) if t.name in known))

    def shape_of(self, node: exp.Expr) -> pa.Schema:
        return self._shape(node.sql("duckdb"), self.read_by(node))

    def _shape(self, sql: str, reads: tuple[str, ...]) -> pa.Schema:
        given = {name: self.schema(name) for name in reads}
        for field in (f for schema in given.values() for f in schema if pa.types.is_union(f.type)):
            message = f"a value of type UNION cannot be passed on: take it apart where {field.name!r} is made"
            raise Unsupported(message, sql=self._names.sql)
        try:
            return duck.shape(sql, given)
        except duckdb.Error as error:
            raise self._told(duck.fault(error)) from None

    def _told(self, fault: duck.Fault) -> QueryError:
        kind = TypeMismatch if fault.kind in ("Conversion", "Out of Range", "Mismatch Type") else Unsupported
        return kind(fault.message.split("\n")[0], sql=self._names.sql)
