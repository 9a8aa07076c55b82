"""The store: a folder of segments and their manifest. All of it blocks, and is for one thread at a time.

A segment is on the disk before a transaction names it, together with the coverage that rests on it. So whatever
the manifest says is true at any moment, and what it does not name is swept when the store is opened next.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mediator.catalog.model import Relation
from mediator.errors import StoreError
from mediator.store.claims import claimed, newest
from mediator.store.distinct import brought, distinct
from mediator.store.lock import FILE as LOCK
from mediator.store.lock import Lock
from mediator.store.manifest import FILE, Manifest
from mediator.store.records import LISTED, LOOKUPS, Covered, Declared, Group, Held, Kept, Segment, Sent
from mediator.store.segments import Segments

# So many segments of about one size become one, of the next size.
_FEW = 8
_SEGMENTS = "segments"


class Store:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        _prepare(folder)
        self._lock = Lock(folder)
        try:
            self._manifest = Manifest(folder, renew=True)
            try:
                self._segments = Segments(folder / _SEGMENTS)
                self.swept = self._segments.sweep(self._manifest.numbers())
            except BaseException:
                self._manifest.close()
                raise
        except BaseException:
            self._lock.release()
            raise
        # Of bags whose scan goes on: rows that nothing names until it has ended; and which SteM the named ones are of.
        self._scanned: dict[str, tuple[int, list[Segment]]] = {}
        self._named: dict[str, int] = {}
        # Scans of a relation in whose place others have come since this was opened: no end will name them again.
        self._outdone: dict[str, set[int]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._manifest.close()
        self._lock.release()

    def newest(self) -> float:
        """The latest time that is noted in it; minus infinity where there is none."""
        return self._manifest.newest()

    @property
    def numbered(self) -> int:
        """The highest number that a lookup has in it."""
        return self._manifest.numbered()

    def append(self, groups: Sequence[Group]) -> None:
        """When it returns, all of this outlives the process and the machine."""
        written = [(group, self._written(group)) for group in groups]
        gone: list[Segment] = []
        with self._manifest.writing():
            for group, segments in written:
                gone += self._note(group, segments)
        self._segments.remove(gone)
        for name in {group.relation.name for group, segments in written if segments}:
            self._merge(name)

    def load(self, relation: Relation, now: float) -> Kept | None:
        """What is fresh of a relation, if anything is. A `StoreError` where it can't be read.

        What is stale goes from the disk where it is most of what is there. So this is for the time before the first
        `append`, when no lookup can be under way whose rows nothing vouches for yet.
        """
        held = self._manifest.held(relation.name)
        if held is None or not held.covered:
            return None
        covered = held.fresh(now)
        if not covered:
            self.discard(relation.name)
            return None
        rows = self._rows(held.declared, held.segments)
        if relation.repeats:
            rows = distinct(rows, {c.lookup for c in covered})
            if 2 * len(rows) < held.rows:
                with self._manifest.writing():
                    self._manifest.drop_expired(relation.name, now)
                self._replace(relation.name, held.segments, rows)
            return Kept(rows.drop_columns([LOOKUPS]), _by_lookup(rows), covered)
        return Kept(rows, {}, covered)

    def suits(self, relation: Relation) -> bool:
        """Whether what is kept of a relation, if anything, was declared as it is now."""
        fingerprint = self._manifest.fingerprint(relation.name)
        return fingerprint is None or fingerprint == Declared.of(relation).fingerprint

    def discard(self, name: str) -> None:
        """Nothing of this relation is kept any more."""
        segments = self._manifest.segments(name)
        with self._manifest.writing():
            self._manifest.forget(name)
        self._segments.remove(segments)

    def held(self, name: str) -> Held:
        """What there is of one relation."""
        return _found(self.folder, self._manifest, name)

    def names(self) -> list[str]:
        return self._manifest.names()

    def expire(self, name: str, until: float) -> tuple[int, int]:
        """Forget what was asked no later than this, and the rows that nothing vouches for then; how many of each.

        Not for a store into which rows of lookups under way are being written.
        """
        before = self.held(name)
        with self._manifest.writing():
            entries = self._manifest.uncover(name, until)
        held = self.held(name)
        if not held.covered:
            self.discard(name)
            return entries, before.rows
        rows = self._rows(held.declared, held.segments)
        if held.declared.repeats:
            rows = claimed(held.declared, distinct(rows), held.covered)
        self._replace(name, held.segments, rows)
        return entries, before.rows - self.held(name).rows

    def table(self, name: str, now: float) -> pa.Table:
        """The rows of a relation that fresh coverage vouches for: of each what was heard of it last."""
        held = self.held(name)
        return fresh_rows(self.folder, held, held.fresh(now))

    def rows(self, held: Held) -> pa.Table:
        """All rows of a relation as they are stored, each with the lookups that brought it."""
        return self._rows(held.declared, held.segments)

    def _written(self, group: Group) -> list[Segment]:
        some = [sent for sent in group.rows if sent.rows.num_rows]
        if not some:
            return []
        rows = pa.Table.from_batches([s.rows for s in some])
        if group.relation.repeats:
            rows = _numbered(rows, some)
        latest, lookup = max(s.at for s in some), max(s.lookup for s in some)
        return [self._segments.write(group.relation.name, rows, latest, lookup)]

    def _note(self, group: Group, segments: list[Segment]) -> list[Segment]:
        """Say in the manifest what is there now; the segments that are of no use any more."""
        declared = Declared.of(group.relation)
        gone: list[Segment] = []
        if not declared.repeats and self._named.get(declared.name) != group.stem:
            stem, scanned = self._scanned.pop(declared.name, (group.stem, []))
            if stem != group.stem:
                gone, scanned = scanned, []
            segments = scanned + segments
            if not group.covered:
                self._scanned[declared.name] = group.stem, segments
                return gone
            # A bag is scanned as a whole: what was there before it is another bag.
            gone += self._manifest.segments(declared.name)
            self._manifest.forget(declared.name)
            self._named[declared.name] = group.stem
        self._manifest.declare(declared)
        self._manifest.name(segments)
        before = self._manifest.scanned(declared.name)
        self._manifest.cover(declared, group.covered)
        after = self._manifest.scanned(declared.name)
        if declared.repeats and before and after and before[0] < after[0]:
            self._outdone.setdefault(declared.name, set()).add(before[1])
        return gone

    def _merge(self, name: str) -> None:
        sizes: dict[int, list[Segment]] = {}
        for segment in self._manifest.segments(name):
            sizes.setdefault(int(math.log(max(segment.rows, 1), _FEW)), []).append(segment)
        for segments in sizes.values():
            if len(segments) >= _FEW:
                declared = self.held(name).declared
                rows = self._rows(declared, segments)
                if declared.repeats:
                    rows = distinct(rows, but=self._outdone.get(name, ()))
                self._replace(name, segments, rows)

    def _replace(self, name: str, segments: Sequence[Segment], rows: pa.Table) -> None:
        merged: list[Segment] = []
        if len(rows):
            latest, lookup = max(s.latest for s in segments), max(s.lookup for s in segments)
            merged = [self._segments.write(name, rows, latest, lookup)]
        with self._manifest.writing():
            self._manifest.unname(segments)
            self._manifest.name(merged)
        self._segments.remove(segments)

    def _rows(self, declared: Declared, segments: Sequence[Segment]) -> pa.Table:
        return _read(self._segments, declared, segments)


def look(folder: Path) -> list[Held]:
    """What a store holds, without opening it: also while another process writes it."""
    must_be_store(folder)
    manifest = Manifest(folder)
    try:
        return [_found(folder, manifest, name) for name in manifest.names()]
    finally:
        manifest.close()


def look_at(folder: Path, name: str) -> Held:
    """What a store holds of one relation."""
    must_be_store(folder)
    manifest = Manifest(folder)
    try:
        return _found(folder, manifest, name)
    finally:
        manifest.close()


def fresh_rows(folder: Path, held: Held, covered: Sequence[Covered]) -> pa.Table:
    """The rows that these entries vouch for; where several cover a row, the one that was asked last. A `StoreError`
    where another process has just replaced their segments."""
    rows = _read(Segments(folder / _SEGMENTS), held.declared, held.segments)
    if not held.declared.repeats:
        return rows
    return newest(held.declared, distinct(rows), covered).drop_columns([LOOKUPS])


def existing(folder: Path) -> Store:
    """A store that is there already."""
    must_be_store(folder)
    return Store(folder)


def _found(folder: Path, manifest: Manifest, name: str) -> Held:
    held = manifest.held(name)
    if held is None:
        there = ", ".join(manifest.names()) or "nothing"
        raise StoreError(f"The store {folder} holds nothing of {name!r}; there is {there}")
    return held


def _read(segments: Segments, declared: Declared, chosen: Sequence[Segment]) -> pa.Table:
    return pa.concat_tables([declared.stored.empty_table(), *(segments.read(s) for s in chosen)])


def _numbered(rows: pa.Table, sent: Sequence[Sent]) -> pa.Table:
    """These rows, each with the one lookup that brought it here."""
    numbers = np.repeat([s.lookup for s in sent], [s.rows.num_rows for s in sent])
    lookups = pa.ListArray.from_arrays(np.arange(len(rows) + 1, dtype=np.int32), numbers)
    return rows.combine_chunks().append_column(pa.field(LOOKUPS, LISTED), lookups)


def _by_lookup(rows: pa.Table) -> dict[int, NDArray[np.int32]]:
    """The places of the rows that each lookup brought."""
    at, lookups = brought(rows)
    order = np.argsort(lookups, kind="stable")
    named, starts = np.unique(lookups[order], return_index=True)
    parts = np.split(at[order].astype(np.int32), starts[1:])
    return dict(zip(named.tolist(), parts, strict=False))


def _prepare(folder: Path) -> None:
    """Make the folder, unless it is a store. What belongs to somebody else is left alone."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / FILE).exists() and not _new(folder):
            raise StoreError(f"{folder} is no store, and it is not empty: name another folder")
        (folder / _SEGMENTS).mkdir(exist_ok=True)
    except FileExistsError:
        raise StoreError(f"{folder} is a file: name a folder, where the store is to be") from None
    except OSError as error:
        raise StoreError(f"{folder} cannot be used as a store: {error.strerror}") from None


def _new(folder: Path) -> bool:
    """Whether there is nothing in it, apart from what a process left that was killed while it made a store of it."""
    others = {p.name for p in folder.iterdir()} - {LOCK, _SEGMENTS}
    segments = folder / _SEGMENTS
    return not others and not (segments.is_dir() and any(segments.iterdir()))


def must_be_store(folder: Path) -> None:
    if not (folder / FILE).is_file():
        raise StoreError(f"{folder} is no store: `mediator query --store {folder}` makes one")
