"""Segments: files of rows that are written once, and are on the disk before anybody names them."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from pathlib import Path

import pyarrow as pa

from mediator.errors import StoreError
from mediator.store.records import Segment

_ENDING = ".arrow"
_UNFINISHED = ".unfinished"
_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4")


class Segments:
    """A folder of them. What is written is durable when `write` returns."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._next = 1

    def sweep(self, named: Collection[int]) -> int:
        """Remove what no manifest names, left by a process that was killed; how many files that were."""
        self._next = max(named, default=0) + 1
        unnamed = [p for p in self._files() if p.suffix == _UNFINISHED or int(p.stem) not in named]
        for path in unnamed:
            path.unlink()
        return len(unnamed)

    def write(self, relation: str, rows: pa.Table, latest: float, lookup: int) -> Segment:
        """At least one row; the last was sent at `latest`, and the last lookup that brought any has this number."""
        number, self._next = self._next, self._next + 1
        path = self._path(number)
        unfinished = path.with_suffix(_UNFINISHED)
        with unfinished.open("wb") as file:
            with pa.ipc.new_file(file, rows.schema, options=_OPTIONS) as writer:
                writer.write_table(rows)
            file.flush()
            os.fsync(file.fileno())
            size = file.tell()
        os.replace(unfinished, path)
        _settle(self._folder)
        return Segment(number, relation, rows.num_rows, size, latest, lookup)

    def read(self, segment: Segment) -> pa.Table:
        """All its rows, or a `StoreError`."""
        path = self._path(segment.number)
        try:
            with pa.ipc.open_file(pa.BufferReader(path.read_bytes())) as reader:
                table = reader.read_all()
        except (OSError, pa.ArrowException) as error:
            raise StoreError(f"{path.name} of {segment.relation} cannot be read: {error}") from None
        if table.num_rows != segment.rows:
            raise StoreError(
                f"{path.name} of {segment.relation} has {table.num_rows:,} rows instead of {segment.rows:,}"
            )
        return table

    def remove(self, segments: Collection[Segment]) -> None:
        """They are named no more."""
        for segment in segments:
            self._path(segment.number).unlink(missing_ok=True)

    def _files(self) -> Iterator[Path]:
        """Only what was written here: anything else in the folder is not ours to remove."""
        for path in self._folder.iterdir():
            if path.stem.isdecimal() and path.suffix in (_ENDING, _UNFINISHED):
                yield path

    def _path(self, number: int) -> Path:
        return self._folder / f"{number:010}{_ENDING}"


def _settle(folder: Path) -> None:
    """A renamed file is found again after a power cut only if its folder is on the disk too."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
