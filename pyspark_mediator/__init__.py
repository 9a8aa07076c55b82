"""How Spark finds `format("mediator")`: it looks through every top-level module that is called `pyspark_...`.

So there is nothing to register, and nothing is loaded here before it is used: every Spark program on this machine that
uses any Python data source loads this file.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader
    from pyspark.sql.types import StructType


class DefaultSource(DataSource):
    """A relation of a catalog, or a query over several. `docs/spark.md` has the options."""

    _load = ""

    @classmethod
    def name(cls) -> str:
        return "mediator"

    def schema(self) -> StructType:
        from pipeline.options import wanted
        from pipeline.reading import schema_of
        from pipeline.types import Columns

        asked = wanted(self.options)
        self._load = uuid.uuid4().hex  # Spark keeps this object with the DataFrame that `load()` gives
        return Columns.of(schema_of(asked, asked.load())).taken

    def reader(self, schema: StructType) -> DataSourceReader:
        from pipeline.errors import BadOption
        from pipeline.options import wanted
        from pipeline.reading import PushingReader, Reader, RelationReader, check_schema

        asked = wanted(self.options)
        check_schema(schema, asked, asked.load())
        if asked.pushdown:
            if not self._load:
                raise BadOption("with .option('pushdown', 'true') leave .schema(...) out")
            return PushingReader(asked, self._load)
        return RelationReader(asked) if asked.relation else Reader(asked)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        from pipeline.options import wanted
        from pipeline.reading import check_schema
        from pipeline.streaming import StreamReader

        asked = wanted(self.options)
        check_schema(schema, asked, asked.load())
        return StreamReader(asked, schema)
