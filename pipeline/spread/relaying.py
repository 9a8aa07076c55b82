"""A query that turns out uneven is laid out anew: its cells are cut by what has come, and heavy values have their own.

The new layout lies in a folder within the old one, and begins with what the askers wrote there: so nothing is asked
again, and all answers are found again. Whoever gets them leaves out those that were given. Whoever goes on after a kill
goes on with the last layout that is whole.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa

from mediator.engines import Job
from mediator.query.model import BlockStage
from pipeline.cells.envelopes import Came
from pipeline.cells.packing import unpacked
from pipeline.cells.wings import Winged
from pipeline.files import synced
from pipeline.spread.cutting import landed
from pipeline.spread.folder import Folder
from pipeline.spread.given import Status
from pipeline.spread.pieces import count, numbered, weight_of
from pipeline.spread.plan import Cube, Plan
from pipeline.spread.skew import SAMPLE, Sample
from pipeline.spread.strands import DRIVE, entries_of, total

FEW = 1_000_000  # rows below which it is not worth while: what is fixed takes seconds
_GROWN = 4  # times as many rows before it is looked at again
_UNEVEN = 1.3  # times the mean that the fullest slot has
_READ = 1 << 26  # bytes of the log that are looked at
_EACH = 1 << 13  # rows of one envelope

Lay = Callable[[Sample, Mapping[str, int]], Plan]


@dataclass
class Balance:
    """Watches how even the cells are; asks for a new layout only now and then, since that means to read a sample."""

    due: int = field(default_factory=lambda: FEW)

    def tips(self, plan: Plan, cells: Mapping[int, Status]) -> bool:
        """Whether it is time to look for heavy values."""
        rows = sum(status["rows"] for status in cells.values())
        going_on = len(cells) < len(plan.cells) or not all(status["finished"] for status in cells.values())
        if rows < self.due or not going_on:
            return False
        if fullest(plan, cells) < _UNEVEN:
            return False
        self.due = _GROWN * rows
        return True


def may_move(job: Job) -> bool:
    """Whether a query may be laid out anew: the answers that were given must be found again, and where all that is
    asked is counted, nothing is begun once more for the sake of speed. What an earlier stage gives may depend on the
    order in which its rows came."""
    settings, query = job.settings, job.query
    sparing = settings.max_calls is not None or settings.max_bytes is not None or bool(settings.per_source)
    names = {stage.name for stage in query.stages}
    blocks = [stage.block for stage in query.stages if isinstance(stage, BlockStage)]
    staged = any(alias.relation.name in names for block in blocks for alias in block.aliases)
    return not (sparing or staged or query.volatile)


def fullest(plan: Plan, cells: Mapping[int, Status]) -> float:
    """The rows of the fullest slot by those of a slot on average."""
    slots = [0] * min(plan.slots, len(plan.cells))
    for number, status in cells.items():
        slots[number % len(slots)] += status["rows"]
    return max(slots) * len(slots) / max(1, sum(slots))


def laid_anew(plan: Plan, folder: Folder, lay: Lay) -> Plan | None:
    """The layout that fits what has come; none where there are no heavy values but those that are known."""
    strands = _strands(folder)
    sample = logged(plan, strands)
    found = lay(sample, {relation: counts.get("rows", 0) for relation, counts in total(strands).items()})
    if all(_heavy(cube) <= _heavy(plan.cubes[name]) for name, cube in found.cubes.items()):
        return None
    return replace(plan, cubes=found.cubes)


def _heavy(cube: Cube) -> set[tuple[int, int]]:
    return {(cube.dimension, value) for value in cube.values} if isinstance(cube, Winged) else set()


def go_on(folder: Folder, plan: Plan) -> Folder:
    """Where the query goes on by another layout. Nobody writes to the old one any more."""
    under_way = Folder(folder.path / ".next")
    shutil.rmtree(under_way.path, ignore_errors=True)
    under_way.begin(plan)
    for strand in _strands(folder):
        there = under_way.strand(strand.name)
        there.mkdir()
        for number in range(count(strand)):
            os.link(numbered(strand, number, "arrow"), numbered(there, number, "arrow"))
        synced(there)
    under_way.path.rename(folder.next.path)
    synced(folder.path)
    return folder.next


def logged(plan: Plan, strands: Iterable[Path]) -> Sample:
    """Rows of each relation from all over the log."""
    found: dict[str, list[pa.RecordBatch]] = {}
    for piece in _some(strands):
        for entry in entries_of(piece):
            envelope = unpacked(entry.envelope, plan.relations) if entry.envelope else None
            if not isinstance(envelope, Came):
                continue
            have = found.setdefault(envelope.lookups[0].relation, [])
            if sum(batch.num_rows for batch in have) < SAMPLE:
                have.append(landed(envelope, entry, plan).rows.slice(0, _EACH))

    def sample(relation: str) -> pa.RecordBatch | None:
        batches = found.get(relation)
        return pa.Table.from_batches(batches).combine_chunks().to_batches()[0] if batches else None

    return sample


def _some(strands: Iterable[Path]) -> list[Path]:
    """Pieces at even distances, as many as may be read."""
    pieces = [numbered(strand, number, "arrow") for strand in strands for number in range(count(strand))]
    weight = sum(map(weight_of, pieces))
    return pieces[:: max(1, round(weight / _READ))]


def _strands(folder: Folder) -> list[Path]:
    """What the sites answered. What the drive writes is for the cells of its layout."""
    return sorted(
        path for path in (folder.path / "log").iterdir() if path.name != DRIVE and path.name[0] != "."
    )
