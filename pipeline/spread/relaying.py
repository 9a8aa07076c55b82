"""A query that turns out uneven is laid out anew: its cells are cut by what has come, and heavy values have their own.

Sites, askers and the log know nothing of it. The cells of the new layout have other numbers; they are told the whole
log, and so find all answers again. Whoever gets them leaves out those that were given.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

import pyarrow as pa

from mediator.query.model import BlockStage, Query
from pipeline.cells.envelopes import Came
from pipeline.cells.packing import unpacked
from pipeline.cells.wings import Winged
from pipeline.spread.cutting import landed
from pipeline.spread.folder import Folder
from pipeline.spread.given import Status
from pipeline.spread.pieces import count, numbered
from pipeline.spread.plan import Cube, Plan, planned
from pipeline.spread.skew import SAMPLE, Sample, heavy
from pipeline.spread.strands import entries_of, total

FEW = 1_000_000  # rows below which it is not worth while: what is fixed takes a second or two
_GROWN = 4  # times as many rows before it is looked at again
_UNEVEN = 1.3  # times the mean that the fullest slot has
_PIECES = 64  # of the log that are looked at, at most


@dataclass
class Balance:
    """Watches how even the cells are; says only now and then that they are not, since to find out why takes a while."""

    due: int = field(default_factory=lambda: FEW)

    def tips(self, plan: Plan, cells: Mapping[int, Status]) -> bool:
        """Whether it is time to look for heavy values."""
        rows = rows_of(cells)
        going_on = len(cells) < len(plan.cells) or not all(status["finished"] for status in cells.values())
        if plan.fixed or rows < self.due or not going_on or fullest(plan, cells) < _UNEVEN:
            return False
        self.due = _GROWN * rows
        return True


def found_again(query: Query) -> bool:
    """Whether a query's rows are the same when they are found again, in whatever order all comes. What an earlier stage
    gives to a block may depend on that order, as sums do in their last digits."""
    names = {stage.name for stage in query.stages}
    blocks = [stage.block for stage in query.stages if isinstance(stage, BlockStage)]
    return not (query.volatile or any(a.relation.name in names for block in blocks for a in block.aliases))


def rows_of(cells: Mapping[int, Status]) -> int:
    return sum(status["rows"] for status in cells.values())


def fullest(plan: Plan, cells: Mapping[int, Status]) -> float:
    """The rows of the fullest slot by those of a slot on average."""
    slots = [0] * min(plan.slots, len(plan.cells))
    for number, status in cells.items():
        slots[number % len(slots)] += status["rows"]
    return max(slots) * len(slots) / max(1, sum(slots))


def laid_anew(plan: Plan, folder: Folder, cells: Mapping[int, Status]) -> Plan | None:
    """The layout that fits what has come; none where there are no heavy values but those that are known."""
    strands = sorted(path for path in (folder.path / "log").iterdir() if path.name[0] != ".")
    counts, sample = total(strands), logged(plan, strands)
    expected = {(name, alias): size for name, sizes in plan.sizes.items() for alias, size in enumerate(sizes)}
    found = planned(
        plan.catalog,
        plan.query,
        plan.verdicts,
        plan.settings,
        lambda name, alias: max(
            expected[name, alias.number], counts.get(alias.relation.name, {}).get("rows", 0)
        ),
        slots=plan.slots,
        askers=plan.askers,
        workers=plan.workers,
        heavy=lambda cube, sizes: heavy(cube, sizes, sample, plan.profile),
        profile=plan.profile,
    )
    new = set().union(*(_heavy(cube) - _heavy(plan.cubes[name]) for name, cube in found.cubes.items()))
    if not new:
        return None
    values = "a value stands" if len(new) == 1 else f"{len(new)} values stand"
    return replace(
        found,
        id=plan.id,
        layout=plan.layout + 1,
        start=plan.start + len(plan.cells),
        why=f"laid out anew after {rows_of(cells):,} rows: {values} in very many of them",
    )


def _heavy(cube: Cube) -> set[tuple[int, int]]:
    return {(cube.dimension, value) for value in cube.values} if isinstance(cube, Winged) else set()


def logged(plan: Plan, strands: Iterable[Path]) -> Sample:
    """Rows of each relation from all over the log."""
    pieces = [numbered(strand, number, "arrow") for strand in strands for number in range(count(strand))]
    pieces = Random(0).sample(pieces, min(_PIECES, len(pieces)))
    each = SAMPLE // max(1, len(pieces))
    found: dict[str, list[pa.RecordBatch]] = {}
    for piece in pieces:
        left: dict[str, int] = {}
        for entry in entries_of(piece):
            envelope = unpacked(entry.envelope, plan.relations) if entry.envelope else None
            if isinstance(envelope, Came) and left.get(name := envelope.lookups[0].relation, each) > 0:
                rows = landed(envelope, entry, plan).rows.slice(0, left.get(name, each))
                left[name] = left.get(name, each) - rows.num_rows
                found.setdefault(name, []).append(rows)

    def sample(relation: str) -> pa.RecordBatch | None:
        batches = found.get(relation)
        return pa.Table.from_batches(batches).combine_chunks().to_batches()[0] if batches else None

    return sample
