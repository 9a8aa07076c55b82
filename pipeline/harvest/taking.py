"""What tasks have harvested, each into a store of its own, comes into the store that they were sent for.

Rows, coverage, what was measured and what was sent today. All of it can be done twice: where a process is killed before
a task's store is removed, the next one takes it in again, and nothing is counted for less than it was.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa

from mediator.catalog.measured import Measurements
from mediator.catalog.model import Catalog, Relation
from mediator.clock import wall
from mediator.store import notes, statistics
from mediator.store.distinct import brought
from mediator.store.ledger import Ledger, sent_on
from mediator.store.manifest import FILE as MANIFEST
from mediator.store.records import LOOKUPS, Declared, Group, Held, Sent
from mediator.store.store import Store


def take_in(folder: Path, tasks: Path, catalog: Catalog) -> int:
    """Whatever tasks have left; how many lookups that were. Blocks; for when nobody has the store open."""
    found = [path for path in sorted(tasks.iterdir()) if path.is_dir()] if tasks.is_dir() else []
    if not found:
        return 0
    with Store(folder) as store:
        return sum(take(store, path, catalog) for path in found)


def take(store: Store, task: Path, catalog: Catalog) -> int:
    """One task's. A `StoreError` where it still runs."""
    if not (task / MANIFEST).is_file():
        shutil.rmtree(task, ignore_errors=True)
        return 0
    count = 0
    with Store(task) as its:
        for name in its.names():
            relation, held = catalog.relations.get(name), its.held(name)
            if relation is not None and relation.repeats and _alike(relation, held):
                count += _take_rows(store, its, relation, held)
        _count(store.folder, task)
    shutil.rmtree(task, ignore_errors=True)
    return count


def _take_rows(store: Store, its: Store, relation: Relation, held: Held) -> int:
    """Each lookup's rows under a number that the store has not given yet."""
    base = store.numbered
    rows = its.rows(held)
    at, lookups = brought(rows)
    plain = rows.drop_columns([LOOKUPS])
    sent = []
    times = {c.lookup: c.at for c in held.covered}
    named = [number for number in np.unique(lookups).tolist() if number in times]
    if named:
        order = np.argsort(lookups, kind="stable")
        starts = np.searchsorted(lookups[order], named)
        ends = np.searchsorted(lookups[order], named, side="right")
        for number, start, end in zip(named, starts.tolist(), ends.tolist(), strict=True):
            some = plain.take(pa.array(at[order[start:end]])).combine_chunks()
            sent += [Sent(b, times[number], base + number) for b in some.to_batches()]
    covered = [replace(c, lookup=base + c.lookup if c.lookup else 0) for c in held.covered]
    store.append([Group(relation, 0, sent, covered)])
    return len(covered)


def _alike(relation: Relation, held: Held) -> bool:
    return held.declared.fingerprint == Declared.of(relation).fingerprint


def _count(folder: Path, task: Path) -> None:
    """Its requests of today, and what it measured, beside those that are there."""
    now = wall()
    today = datetime.fromtimestamp(now, UTC).date()
    ledger = Ledger(folder, today)
    try:
        sent = sent_on(task, today) or {}
    except notes.Unreadable:
        sent = {}
    for source, more in sent.items():
        day, before = ledger.noted(source) or (today, 0)
        ledger.note(source, today, more + (before if day >= today else 0))
    statistics.save(folder, statistics.written(_together(folder, task, now), now))


def _together(folder: Path, task: Path, now: float) -> Measurements:
    found = dict(statistics.load(folder, now))
    for place, measured in statistics.load(task, now):
        found[place] = found[place].plus(measured) if place in found else measured
    return Measurements(found)
