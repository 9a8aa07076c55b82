"""What is known before the first site is asked: rows that lie in files, or in the SteMs of a process.

Their rows, what they cover and when they were asked go along, so that nothing of it is asked again.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count

import pyarrow as pa
import pyarrow.parquet as pq

from mediator.catalog.model import BindSet
from mediator.flow.events import Binding
from mediator.state.coverage import Entry as Covered
from mediator.state.coverage import Known
from mediator.state.stem import SteM
from pipeline.cells.envelopes import Came, Lookup, Over
from pipeline.cells.packing import packed
from pipeline.files import synced
from pipeline.spread.addressing import places
from pipeline.spread.folder import Folder
from pipeline.spread.plan import Plan
from pipeline.spread.strands import SEEDS, Entry, Strand

_LANDINGS = 1 << 61  # from here on are the numbers of what was known
_ROWS = 1 << 16  # of one envelope
_PIECE = 1 << 22  # bytes


@dataclass(frozen=True, slots=True)
class Landed:
    """What one lookup brought, in Parquet files with the relation's columns. It is all that it brings."""

    relation: str
    method: str
    bind_set: BindSet
    binding: Binding
    files: tuple[str, ...]
    at: float = 0.0  # by the wall clock: when it was asked, and how long the site vouches for it
    until: float = float("inf")

    @property
    def lookup(self) -> Lookup:
        return Lookup(self.relation, self.method, self.bind_set, self.binding)


@dataclass(frozen=True, slots=True)
class Stored:
    """The SteMs of a process, by its clock; `offset` makes the wall's of it."""

    stems: Mapping[str, SteM]
    now: float
    offset: float
    max_age: float


def seed(plan: Plan, folder: Folder, landed: Iterable[Landed] = (), stored: Stored | None = None) -> None:
    """Before anything is asked. All of it is there, or nothing."""
    under_way = folder.strand(f".{SEEDS}")
    shutil.rmtree(under_way, ignore_errors=True)
    strand = Strand(under_way)
    try:
        seeding = _Seeding(plan, strand)
        waiting = [seeding.landed(one) for one in landed]
        if stored is not None:
            waiting += [seeding.stored(stored, name) for name in plan.relations if name in stored.stems]
        # They take turns, so that the first of all can meet soon.
        while waiting:
            for entries in tuple(waiting):
                some = next(entries, None)
                if some is None:
                    waiting.remove(entries)
                else:
                    strand.write(some)
    finally:
        strand.close()
    under_way.rename(folder.strand(SEEDS))
    synced(folder.strand(SEEDS).parent)


class _Seeding:
    def __init__(self, plan: Plan, strand: Strand) -> None:
        self._plan, self._counts = plan, strand.counts
        self._numbers = count(_LANDINGS)

    def landed(self, landed: Landed) -> Iterator[list[Entry]]:
        """The entries of each piece."""
        landings, rows = [], 0
        for file in landed.files:
            for entry, number in entries_of_file(self._plan, file, landed.lookup, self._numbers.__next__):
                landings.append(number)
                yield [entry]
            rows += pq.read_metadata(file).num_rows
        self._count(landed.relation, 1, rows)
        yield [self._over(landed.lookup, landed.at, landed.until, landings, self._readers(landed.relation))]

    def stored(self, stored: Stored, name: str) -> Iterator[list[Entry]]:
        stem = stored.stems[name]
        stem.catch_up(stored.now)
        due: list[Entry] = []
        for method, bind_set in self._ways(name):
            for binding, covered in _fresh(stem, bind_set, stored):
                lookup = Lookup(name, method, bind_set, binding)
                for entry in self._lookup(stem, lookup, covered, stored.offset):
                    due.append(entry)
                    if sum(len(e.envelope) for e in due) >= _PIECE:
                        yield due
                        due = []
        if due:
            yield due

    def _lookup(self, stem: SteM, lookup: Lookup, covered: Covered, offset: float) -> Iterator[Entry]:
        rows = stem.store.rows(stem.vouched(lookup.bind_set, lookup.binding, covered))
        landings, cells = [], set()
        for at in range(0, rows.num_rows, _ROWS):
            part = rows.slice(at, _ROWS)
            landings.append(next(self._numbers))
            cells |= set(places(self._plan, lookup.relation, part))
            yield Entry(packed(Came((lookup,), landings[-1], part), self._plan.relations))
        self._count(lookup.relation, 1, rows.num_rows)
        # Who asks for it and had none of its rows is told by the asker.
        cells |= set() if lookup.bind_set else set(self._readers(lookup.relation))
        yield self._over(lookup, covered.at + offset, covered.until + offset, landings, sorted(cells))

    def _over(
        self, lookup: Lookup, at: float, until: float, landings: list[int], cells: Iterable[int]
    ) -> Entry:
        return Entry(packed(Over(lookup, at, until, tuple(landings)), self._plan.relations), tuple(cells))

    def _readers(self, relation: str) -> list[int]:
        return [cell for name in self._plan.readers(relation) for cell in self._plan.cells_of(name)]

    def _ways(self, relation: str) -> list[tuple[str, BindSet]]:
        """By which the query may ask for it."""
        found: dict[tuple[str, BindSet], None] = {}
        for name, cube in self._plan.cubes.items():
            verdict = self._plan.verdicts[name]
            for alias, providers in zip(cube.block.aliases, verdict.providers, strict=True):
                if alias.relation.name == relation:
                    found.update({(p.method.name, p.bind_set): None for p in providers})
        return list(found)

    def _count(self, relation: str, served: int, rows: int) -> None:
        counts = self._counts.setdefault(relation, {"served": 0, "rows": 0})
        counts["served"] += served
        counts["rows"] += rows


def _fresh(stem: SteM, bind_set: BindSet, stored: Stored) -> list[tuple[Binding, Covered]]:
    return [
        (binding, entry)
        for fields, binding, entry in stem.coverage.entries()
        if fields == bind_set
        and entry.known == Known.COMPLETE
        and entry.until >= stored.now
        and stored.now - entry.at <= stored.max_age
    ]


def entries_of_file(
    plan: Plan, path: str, lookup: Lookup, number: Callable[[], int]
) -> Iterator[tuple[Entry, int]]:
    """An entry for each part of a file, whose rows are read where they are cut; each with the number of its landing."""
    about = pq.read_metadata(path)
    schema = plan.relations[lookup.relation].schema
    none = pa.RecordBatch.from_arrays([pa.array([], f.type) for f in schema], schema=schema)
    for part in range(about.num_row_groups):
        landing = number()
        weight = about.row_group(part).total_byte_size
        envelope = packed(Came((lookup,), landing, none), plan.relations)
        yield Entry(envelope, None, path, part, None, weight), landing
