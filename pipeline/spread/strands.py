"""The log of a spread: what the sites answered, in pieces. Each writer has a strand of its own.

A row of a piece is one envelope: for these cells, or, where none are named, for those that its rows belong to. Where it
has a file, its rows are that file's, or one part of it.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from pipeline.files import new_of, put
from pipeline.log import read_piece
from pipeline.spread.pieces import AFTER, COUNTS, WEIGHT, count, numbered, said_of

SCHEMA = pa.schema(
    [
        ("cells", pa.list_(pa.int32())),
        ("envelope", pa.large_binary()),
        ("file", pa.string()),
        ("part", pa.int32()),
        ("page", pa.string()),
    ]
)

SEEDS = "seeds"  # the strand of what is known when the query begins
DRIVE = "drive"  # and that of the drive, which is for the cells of one layout
Counts = dict[str, dict[str, int]]  # by relation: asked, answered, failed, rows


def strand_of(asker: int) -> str:
    return f"asker-{asker:04d}"


@dataclass(frozen=True, slots=True)
class Entry:
    """`envelope` is packed; empty where a cell is only to begin."""

    envelope: bytes
    cells: Sequence[int] | None = None
    file: str | None = None
    part: int | None = None
    page: str | None = None  # that brought the rows, by what tells it from others
    weight: int = 0  # bytes of a file's part
    after: Mapping[str, int] = field(default_factory=dict)  # so many pieces of other strands go before it


@dataclass
class Strand:
    """The writer's side. There is one writer at a time: another waits until that one is gone."""

    folder: Path
    counts: Counts = field(default_factory=dict)  # what the next piece says, and each after it

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lock = (self.folder / "lock").open("w")
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self._next = count(self.folder)
        if self._next:
            self.counts = counts_of(numbered(self.folder, self._next - 1, "arrow"))

    @property
    def pieces(self) -> int:
        return self._next

    def write(self, entries: Sequence[Entry]) -> None:
        """The next piece. It is on the disk when this returns, and seen by others only then."""
        target = numbered(self.folder, self._next, "arrow")
        new = new_of(target)
        weight = sum(len(e.envelope) + e.weight for e in entries)
        said = {COUNTS: json.dumps(self.counts), WEIGHT: str(weight), AFTER: json.dumps(_after(entries))}
        schema = SCHEMA.with_metadata(said)
        columns = zip(*((e.cells, e.envelope, e.file, e.part, e.page) for e in entries), strict=True)
        arrays = [pa.array(list(c), f.type) for c, f in zip(columns, SCHEMA, strict=True)]
        with pa.OSFile(str(new), "wb") as file, pa.ipc.new_file(file, schema) as writer:
            writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))
        put(new, target)
        self._next += 1

    def close(self) -> None:
        self._lock.close()


def _after(entries: Sequence[Entry]) -> dict[str, int]:
    found: dict[str, int] = {}
    for strand, pieces in (item for entry in entries for item in entry.after.items()):
        found[strand] = max(pieces, found.get(strand, 0))
    return found


def entries(folder: Path) -> Iterator[Entry]:
    """All that was written to a strand so far."""
    for number in range(count(folder)):
        yield from entries_of(numbered(folder, number, "arrow"))


def entries_of(piece: Path) -> Iterator[Entry]:
    for batch in read_piece(piece):
        for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            cells, envelope, file, part, page = row
            yield Entry(envelope, cells, file, part, page)


def counts_of(piece: Path) -> Counts:
    """What its writer had counted by then."""
    found: Counts = json.loads(said_of(piece)[COUNTS])
    return found


def total(folders: Sequence[Path]) -> Counts:
    """What all writers have counted."""
    found: Counts = {}
    for folder in folders:
        if pieces := count(folder):
            for relation, counts in counts_of(numbered(folder, pieces - 1, "arrow")).items():
                have = found.setdefault(relation, dict.fromkeys(counts, 0))
                for name, value in counts.items():
                    have[name] = have.get(name, 0) + value
    return found
