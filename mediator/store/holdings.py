"""What a store holds of relations, for an estimate: a look at it, also while another process writes it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from mediator.binding.holding import Holding
from mediator.catalog.model import Relation
from mediator.errors import StoreError
from mediator.store.manifest import Manifest
from mediator.store.records import Declared, Held
from mediator.store.store import fresh_rows, must_be_store

MOST = 200_000  # rows of a relation that are looked at one by one


def holdings(folder: Path, relations: Iterable[Relation], now: float, max_age: float) -> dict[str, Holding]:
    """Of those that it has anything fresh of."""
    must_be_store(folder)
    manifest = Manifest(folder)
    try:
        found = {}
        for relation in relations:
            held = manifest.held(relation.name)
            if held is not None and held.declared.fingerprint == Declared.of(relation).fingerprint:
                found[relation.name] = _holding(folder, held, now, max_age)
        return found
    finally:
        manifest.close()


def _holding(folder: Path, held: Held, now: float, max_age: float) -> Holding:
    fresh = [c for c in held.fresh(now) if now - c.at <= max_age]
    covered: dict[tuple[str, ...], set[tuple[object, ...]]] = {}
    for entry in fresh:
        covered.setdefault(entry.bind_set, set()).add(entry.binding)
    if () not in covered:
        return Holding(held.rows, False, None, covered)
    if held.rows > MOST:
        return Holding(held.rows, True, None, covered)
    try:
        rows = fresh_rows(folder, held, [c for c in fresh if not c.bind_set])
    except StoreError:  # another process has merged its segments just now
        return Holding(held.rows, True, None, covered)
    return Holding(rows.num_rows, True, rows, covered)
