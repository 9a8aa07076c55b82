"""The dialect with tables that can be written, because SQLAlchemy's suite writes what it reads.

What writes goes to a DuckDB of our own. Before anything is read its tables become the relations of the server's
catalog; reading, and looking what there is, are the real server's, driver's and dialect's.
"""

from __future__ import annotations

import asyncio
import re
from types import ModuleType, SimpleNamespace
from typing import Any, Self

import duckdb
import pyarrow as pa
from sqlalchemy.sql.compiler import DDLCompiler

from api.client import dbapi
from api.client.dialect import MediatorDialect
from api.client.parameters import Parameters
from mediator.answering import Mediator
from mediator.catalog.model import AccessMethod, Catalog, Field, Relation
from tests.http.serving import Served

_READS = re.compile(r"\s*(SELECT|WITH|VALUES|\()", re.IGNORECASE)
_KEY = """SELECT constraint_column_names FROM duckdb_constraints()
          WHERE table_name = ? AND constraint_type = 'PRIMARY KEY'"""
_LITERAL = AccessMethod("all", "scan", (), None)


class Tables:
    """What was written, and the server that is told of it."""

    def __init__(self, served: Served) -> None:
        self.served = served
        self._store = duckdb.connect()
        self._changed = False
        self._mediator = self._first = served.desk.mediator

    def write(self, statement: str, parameters: Parameters | None) -> None:
        try:
            self._store.execute(statement, list(parameters or ()))
        except duckdb.ConstraintException as error:
            raise dbapi.IntegrityError(str(error)) from error
        except duckdb.Error as error:
            raise dbapi.ProgrammingError(str(error)) from error
        self._changed = True

    def publish(self) -> None:
        """Let the server know what was written since the last time."""
        if self._changed:
            self._run(self._serve(Mediator(self._catalog())))
            self._changed = False

    def close(self) -> None:
        self._run(self._serve(self._first))
        self._store.close()

    def _run(self, work: Any) -> None:
        asyncio.run_coroutine_threadsafe(work, self.served.loop).result()

    async def _serve(self, mediator: Mediator) -> None:
        """From now on this one answers."""
        if mediator is not self._first:
            await mediator.__aenter__()
        self.served.desk.mediator = mediator
        if self._mediator is not self._first:
            await self._mediator.__aexit__(None, None, None)
        self._mediator = mediator

    def _catalog(self) -> Catalog:
        names = [row[0] for row in self._store.execute("SELECT table_name FROM duckdb_tables()").fetchall()]
        return Catalog({name: self._relation(name) for name in names})

    def _relation(self, name: str) -> Relation:
        quoted = '"' + name.replace('"', '""') + '"'
        table: pa.Table = self._store.sql(f"SELECT * FROM {quoted}").to_arrow_table().combine_chunks()
        rows = pa.RecordBatch.from_arrays(
            [c.chunk(0) if c.num_chunks else pa.array([], c.type) for c in table.columns], schema=table.schema
        )
        key = self._store.execute(_KEY, [name]).fetchall()
        fields = tuple(Field(f.name, f.type) for f in table.schema)
        return Relation(name, fields, (_LITERAL,), tuple(key[0][0]) if key else (), literal=rows)


class Connection(dbapi.Connection):
    def cursor(self) -> Cursor:
        return Cursor(self.client, self, self._whole, self._options)


class Cursor(dbapi.Cursor):
    def execute(self, operation: str, parameters: Parameters | None = None) -> Self:
        assert WrittenDialect.tables is not None
        if _READS.match(operation):
            WrittenDialect.tables.publish()
            return super().execute(operation, parameters)
        self._open()
        self._leave()
        WrittenDialect.tables.write(operation, parameters)
        return self

    def executemany(self, operation: str, seq_of_parameters: Any) -> Self:  # type: ignore[override]
        for parameters in seq_of_parameters:
            self.execute(operation, parameters)
        return self


class DDL(DDLCompiler):
    """Only keys are kept of constraints: a relation declares nothing else."""

    def visit_foreign_key_constraint(self, constraint: Any, **kw: Any) -> Any:
        return None

    def visit_unique_constraint(self, constraint: Any, **kw: Any) -> Any:
        return None

    def visit_check_constraint(self, constraint: Any, **kw: Any) -> Any:
        return None


class WrittenDialect(MediatorDialect):
    """Over these tables."""

    driver = "written"
    ddl_compiler = DDL
    supports_statement_cache = True
    tables: Tables | None = None

    def _relations(self, connection: Any, schema: str | None = None, **kw: Any) -> dict[str, dict[str, Any]]:
        assert self.tables is not None
        self.tables.publish()
        return super()._relations(connection, schema, **kw)

    @classmethod
    def import_dbapi(cls) -> ModuleType:
        """The driver, whose cursors write."""

        def connect(url: str, **said: Any) -> Connection:
            assert cls.tables is not None
            plain = dbapi.connect(cls.tables.served.url, **said)
            return Connection(plain.client, False, {})

        return SimpleNamespace(**{**vars(dbapi), "connect": connect})  # type: ignore[return-value]
