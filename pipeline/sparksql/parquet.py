"""Rows of a stage in Parquet files, as Spark reads and writes them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as all the world calls it

from pipeline.types import Columns

_MAGIC = set("\\*?[]{}")  # in a path that Spark reads


def read(session: SparkSession, paths: Sequence[str], schema: pa.Schema) -> DataFrame:
    """Of these files and no others, which may be none, as columns c0, c1, ..."""
    taken = Columns.of(schema).taken
    if not paths:
        frame = session.range(0).select(*(F.lit(None).cast(f.dataType).alias(f.name) for f in taken))
    else:
        frame = session.read.schema(taken).parquet(*map(_plain, paths))
    return frame.toDF(*(f"c{n}" for n in range(len(schema))))


def write(frame: DataFrame, folder: Path, schema: pa.Schema) -> list[tuple[str, int]]:
    """Paths and rows of files that hold it, in its order; the folder must be a new one. What an attempt that failed
    leaves in it is in none of these files."""
    taken = Columns.of(schema).taken
    cast = [F.col(f"c{n}").cast(field.dataType).alias(field.name) for n, field in enumerate(taken)]
    frame.select(*cast).write.parquet(str(folder))
    files = sorted(folder.glob("part-*.parquet"))  # by the number of the partition, and those are in order
    counted = [(str(file), pq.read_metadata(file).num_rows) for file in files]
    return [(file, rows) for file, rows in counted if rows]


def _plain(path: str) -> str:
    return "".join("\\" + char if char in _MAGIC else char for char in path)
