"""What an estimate rests on: what was measured, what is stored, and what is left to spend."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa

from mediator.assembly import House, Settings
from mediator.binding.counting import Known
from mediator.binding.estimate import Allowed
from mediator.binding.holding import Holding
from mediator.catalog.ceilings import Ceilings
from mediator.catalog.measured import Measured
from mediator.catalog.model import Catalog, Relation
from mediator.query.model import BlockStage, Query
from mediator.state.coverage import Known as Covered
from mediator.state.stem import SteM
from mediator.store import statistics
from mediator.store.holdings import MOST, holdings
from mediator.store.ledger import sent_on
from mediator.store.notes import Unreadable
from mediator.store.profile import load as load_profile


def relations_of(query: Query) -> list[Relation]:
    """Those that sites have, and that the query names."""
    blocks = [stage.block for stage in query.stages if isinstance(stage, BlockStage)]
    named = {alias.relation.name: alias.relation for block in blocks for alias in block.aliases}
    return [r for r in named.values() if r.literal is None and r.methods[0].mirrors]


def known_of(house: House, relations: Sequence[Relation], max_age: float) -> Known:
    """By what this process has stored and measured, as it is now. Not while a query turns."""
    now, stems = house.clock(), house.stems.held()
    held = {r.name: _holding(stems[r.name], now, max_age) for r in relations if r.name in stems}
    measured = {(r.name, m.name): house.measured.of(r.name, m.name) for r in relations for m in r.methods}
    return Known(
        lambda relation, method: measured.get((relation, method), Measured()), held, profile=house.profile
    )


def known_of_store(folder: Path, relations: Iterable[Relation], now: float, max_age: float) -> Known:
    """By what earlier processes have stored and measured. Reads files; a store in use can be looked at too."""
    found = list(relations)
    profile = load_profile(folder, {relation.name: relation for relation in found})
    measured = statistics.load(folder, now)
    measured.suppose(profile.measured)
    return Known(measured.of, holdings(folder, found, now, max_age), profile=profile)


def allowed_by(settings: Settings, catalog: Catalog, today: Mapping[str, int]) -> Allowed:
    """What one query may spend, with so many requests left today."""
    whole = Ceilings(settings.max_calls, settings.max_bytes, settings.max_seconds)
    return Allowed(whole, catalog.ceilings(settings.per_source), today)


def left_today(catalog: Catalog, folder: Path | None, now: float) -> dict[str, int]:
    """Requests left of each daily budget, by what a store says was sent."""
    budgets = {name: s.daily for name, s in catalog.sources.items() if s.daily is not None}
    if folder is None:
        return budgets
    sent = sent_today(folder, now)
    if sent is None:
        return dict.fromkeys(budgets, 0)
    return {name: max(0, most - sent.get(name, 0)) for name, most in budgets.items()}


def sent_today(folder: Path, now: float) -> dict[str, int] | None:
    """What a store says was sent today (UTC), by source; None where its count is lost."""
    try:
        return sent_on(folder, datetime.fromtimestamp(now, UTC).date())
    except Unreadable:
        return None


def _holding(stem: SteM, now: float, max_age: float) -> Holding:
    stem.catch_up(now)
    covered: dict[tuple[str, ...], set[tuple[object, ...]]] = {}
    for bind_set, binding, entry in stem.coverage.entries():
        if entry.known == Covered.COMPLETE and entry.until >= now and now - entry.at <= max_age:
            covered.setdefault(bind_set, set()).add(binding)
    whole = stem.covered((), (), now, max_age)
    if whole is None or stem.store.n > MOST:
        return Holding(stem.store.n, whole is not None, None, covered)
    rows = pa.Table.from_batches([stem.store.rows(stem.vouched(*whole))])
    return Holding(rows.num_rows, True, rows, covered)
