"""What a site bears is one number for all who ask it on our behalf. Tasks cannot speak with each other: each is given
its portion beforehand, so that together they never ask more at once, or faster, or more often, than one would have.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mediator.catalog.ceilings import Ceilings
from mediator.catalog.model import Catalog, Source


def portion_of(catalog: Catalog, task: int, tasks: int) -> Catalog:
    """The catalog with one task's portion of the sources' limits."""
    if tasks == 1:
        return catalog
    return replace(catalog, sources={name: part_of(s, task, tasks) for name, s in catalog.sources.items()})


def part_of(source: Source, task: int, tasks: int) -> Source:
    """The source with one task's portion of its limits."""
    return replace(
        source,
        rate=None if source.rate is None else source.rate / tasks,
        concurrency=max(1, source.concurrency // tasks + (task < source.concurrency % tasks)),
        daily=_part(source.daily, task, tasks),
        per_query=_ceilings(source.per_query, task, tasks),
    )


def settings_for(settings: Mapping[str, Any], task: int, tasks: int) -> dict[str, Any]:
    """One task's portion of what the whole read may spend. Time is the same for all, as they run side by side."""
    portions = dict(settings)
    for name in ("max_calls", "max_bytes"):
        if name in portions:
            portions[name] = _part(portions[name], task, tasks)
    if "per_source" in portions:
        portions["per_source"] = {n: _ceilings(c, task, tasks) for n, c in portions["per_source"].items()}
    return portions


def _ceilings(whole: Ceilings, task: int, tasks: int) -> Ceilings:
    return Ceilings(_part(whole.calls, task, tasks), _part(whole.bytes, task, tasks), whole.seconds)


def _part(whole: int | None, task: int, tasks: int) -> int | None:
    return None if whole is None else whole // tasks + (task < whole % tasks)
