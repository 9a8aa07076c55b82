"""A relation's fresh rows as a folder of Parquet files, with what they cover: the store's content, for others to read.

    relation=books/part-0000-of-0002-<what is in it>.parquet     rows, each in the part that its key points to
    relation=books/_coverage-<what is in it>.parquet             bind set, binding, when it was asked, how long it holds
    relation=books/_harvest.json                                 which of these files count, and what of

Files never change. New ones come first, then `_harvest.json` is replaced, then the old ones go: a kill in between
leaves files that it does not name, and the next writing sweeps them. What has not changed is not written again.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from mediator.store import notes
from mediator.store.bindings import written
from mediator.store.records import Covered, Declared
from pipeline.cells.hashing import hashed
from pipeline.errors import HarvestError

MANIFEST = "_harvest.json"
_FORMAT = 1
_ROWS = 500_000  # of one part, about
_OURS = ("part-", "_coverage-", f"{MANIFEST}.unfinished")
_NOBODY = np.uint64(0x9E3779B97F4A7C15)  # in place of a NULL's number

Numbers = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Parts:
    """What a folder holds by now."""

    folder: Path
    rows: int
    files: tuple[str, ...]
    written: int  # files that are new

    @property
    def paths(self) -> list[Path]:
        return [self.folder / name for name in self.files]


def folder_of(output: Path, relation: str) -> Path:
    return output / f"relation={relation}"


def check(folder: Path, declared: Declared) -> None:
    """Raises `HarvestError` where the folder cannot hold this relation, as it is declared now."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".{os.getpid()}.new"
        probe.touch()
        probe.unlink()
    except FileExistsError:
        raise HarvestError(f"{folder} is a file: name a folder, where the harvest is to go") from None
    except OSError as error:
        raise HarvestError(
            f"{folder}: a harvest cannot be written there: {error.strerror or error}"
        ) from None
    found = _manifest(folder)
    if found is None:
        others = [p.name for p in folder.iterdir() if not p.name.startswith((*_OURS, "."))]
        if others:
            raise HarvestError(
                f"{folder} is no harvest, and it is not empty ({others[0]}): name another folder"
            )
        return
    if found["relation"] != declared.name:
        raise HarvestError(
            f"{folder} is a harvest of {found['relation']}, not of {declared.name}: name another folder"
        )
    if found["declared"] != declared.fingerprint:
        raise HarvestError(
            f"{folder} is a harvest of {declared.name} as it was declared before ({found['declared']}): remove it, "
            "or name another folder"
        )


def write(
    folder: Path, declared: Declared, rows: pa.Table, covered: Sequence[Covered], more: Mapping[str, Any]
) -> Parts:
    """These are all its rows from now on. When it returns they outlive the process and the machine."""
    check(folder, declared)
    there = {path.name for path in folder.iterdir()}
    count = 1 << max(0, (len(rows) - 1) // _ROWS).bit_length()
    marks = _marks(rows)
    places = _key_marks(declared, rows, marks) % np.uint64(count)
    files, new = [], 0
    for place in range(count):
        chosen = np.flatnonzero(places == place)
        name = f"part-{place:04}-of-{count:04}-{_digest(marks[chosen])}.parquet"
        files.append(name)
        if name not in there:
            _put(rows.take(pa.array(chosen)), folder / name)
            new += 1
    coverage = _coverage(declared, covered)
    name = f"_coverage-{_digest(_marks(coverage))}.parquet"
    if name not in there:
        _put(coverage, folder / name)
    said = {
        "format": _FORMAT,
        "relation": declared.name,
        "declared": declared.fingerprint,
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        "rows": len(rows),
        "parts": files,
        "coverage": name,
        "entries": len(coverage),
        "asked": [
            {"bind_fields": list(fields), "lookups": n}
            for fields, n in Counter(c.bind_set for c in covered).items()
        ],
        "whole": any(not c.bind_set for c in covered),
        **more,
    }
    _settle(folder)
    notes.replace(folder / MANIFEST, json.loads(json.dumps(said, default=str)))
    _sweep(folder, {*files, name})
    return Parts(folder, len(rows), tuple(files), new)


def read(folder: Path) -> Parts:
    """What a folder holds. Raises `HarvestError`."""
    found = manifest(folder)
    return Parts(folder, found["rows"], tuple(found["parts"]), 0)


def rows_of(folder: Path) -> pa.Table:
    """All rows of a harvest."""
    return pa.concat_tables(pq.read_table(path, partitioning=None) for path in read(folder).paths)


def coverage_of(folder: Path) -> pa.Table:
    """What they cover: an entry for each lookup that has come to its end."""
    return pq.read_table(folder / manifest(folder)["coverage"], partitioning=None)


def manifest(folder: Path) -> dict[str, Any]:
    """What a harvest says of itself. Raises `HarvestError`."""
    found = _manifest(folder)
    if found is None:
        raise HarvestError(f"{folder} is no harvest: `mediator harvest` makes one")
    return found


def _manifest(folder: Path) -> dict[str, Any] | None:
    try:
        found = notes.read(folder / MANIFEST)
    except notes.Unreadable as error:
        raise HarvestError(
            f"{error}: remove the folder, and harvest again: the store has what it held"
        ) from None
    if found is not None and found.get("format") != _FORMAT:
        raise HarvestError(
            f"{folder} was written by another version of the mediator (format {found.get('format')}, not {_FORMAT}): "
            "name another folder"
        )
    return found


def _coverage(declared: Declared, covered: Sequence[Covered]) -> pa.Table:
    texts = [written(declared.schema, c.bind_set, [c.binding])[0] for c in covered]
    stamp = pa.timestamp("us", "UTC")

    def when(at: float) -> int | None:
        return None if at == float("inf") else round(at * 1e6)

    return pa.table(
        {
            "bind_fields": pa.array([list(c.bind_set) for c in covered], pa.list_(pa.string())),
            "binding": pa.array(texts, pa.string()),  # a JSON list, as the store writes it
            "asked": pa.array([when(c.at) for c in covered], pa.int64()).cast(stamp),
            "until": pa.array([when(c.until) for c in covered], pa.int64()).cast(stamp),
        }
    )


def _marks(rows: pa.Table) -> Numbers:
    """A number for each row: equal rows have equal ones, wherever they stand."""
    found = np.zeros(len(rows), np.uint64)
    for column in rows.columns:
        found = _mixed(found, column)
    return found


def _key_marks(declared: Declared, rows: pa.Table, otherwise: Numbers) -> Numbers:
    if not declared.key:
        return otherwise >> np.uint64(32)
    found = np.zeros(len(rows), np.uint64)
    for name in declared.key:
        found = _mixed(found, rows.column(name))
    return found >> np.uint64(32)


def _mixed(found: Numbers, column: pa.ChunkedArray) -> Numbers:
    values = column.combine_chunks()
    if pa.types.is_nested(values.type):
        values = pa.array([None if v is None else repr(v) for v in values.to_pylist()], pa.string())
    numbers, there = hashed(values)
    return found * np.uint64(0x100000001B3) + np.where(there, numbers, _NOBODY)


def _digest(marks: Numbers) -> str:
    """Of a bag of rows, in any order."""
    squares = (marks ^ (marks >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    return f"{len(marks):x}-{int(marks.sum(dtype=np.uint64)):016x}{int(squares.sum(dtype=np.uint64)):016x}"


def _put(rows: pa.Table, target: Path) -> None:
    new = target.with_name(f".{target.name}.new")
    pq.write_table(rows, new)
    descriptor = os.open(new, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    new.replace(target)


def _settle(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sweep(folder: Path, named: Collection[str]) -> None:
    for path in folder.iterdir():
        ours = path.name.startswith(_OURS) or (path.name.startswith(".") and path.name.endswith(".new"))
        if ours and path.name not in named:
            path.unlink(missing_ok=True)
