"""Answers as the files of a folder."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.files import new_of, put
from pipeline.spread.errors import SpreadError


def prepared(folder: Path) -> None:
    """Raises `SpreadError` where nothing can be written, or where there are files that would be taken for answers."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        others = [path.name for path in folder.iterdir() if not path.name.startswith(("part-", "."))]
    except OSError as error:
        raise SpreadError(f"{folder}: answers cannot be written there: {error.strerror or error}") from None
    if others:
        raise SpreadError(f"{folder}: there is {others[0]} already: name a folder for these answers alone")
    for path in folder.glob("part-*.parquet"):  # of the same query, before it was killed
        path.unlink()


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
