"""Answers as the files of a folder."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.files import new_of, put, put_text
from pipeline.spread.errors import SpreadError
from pipeline.spread.stored import without_type

_WHOSE = ".query"


def prepared(folder: Path, query: str, schema: pa.Schema) -> None:
    """For the answers of the query with this id. Raises `SpreadError` where nothing can be written, where there is
    anything that would be taken for one of them, and where Parquet has no type for a column."""
    if without := without_type(schema):
        raise SpreadError(
            f"Parquet has no type for {', '.join(without)}: cast it in the query, as with ::VARCHAR"
        )
    whose = folder / _WHOSE
    try:
        folder.mkdir(parents=True, exist_ok=True)
        there = sorted(path.name for path in folder.iterdir() if path.name != _WHOSE)
        if there and not (whose.exists() and whose.read_text(encoding="utf-8") == query):
            raise SpreadError(f"{folder}: there is {there[0]} already: name a folder for these answers alone")
        for name in there:  # of the same query, before it was killed: all of it is given once more
            (folder / name).unlink()
        put_text(whose, query)
    except OSError as error:
        raise SpreadError(f"{folder}: answers cannot be written there: {error.strerror or error}") from None


def link(folder: Path, name: str, file: Path) -> None:
    """The same file under another name, without a copy where both are on one disk."""
    target = folder / f"part-{name}.parquet"
    new = new_of(target)
    new.unlink(missing_ok=True)
    try:
        os.link(file, new)
    except OSError:
        shutil.copyfile(file, new)
    put(new, target)


def put_batch(folder: Path, batch: pa.RecordBatch) -> None:
    number = sum(1 for _ in folder.glob("part-*.parquet"))
    target = folder / f"part-{number:08d}.parquet"
    new = new_of(target)
    pq.write_table(pa.Table.from_batches([batch]), new)
    put(new, target)
