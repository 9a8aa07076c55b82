"""One read, divided over several tasks: each asks for a part of a list of bindings, under a part of every limit.

What a site bears is one number for all who ask it on our behalf. Tasks cannot speak with each other, so each is given
its portion beforehand: together they never ask more at once, or faster, or more often, than one would have.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

from mediator.answering import verdicts_of
from mediator.catalog.bindfields import EQUAL, parted
from mediator.catalog.ceilings import Ceilings
from mediator.catalog.model import Catalog, Relation, Source
from mediator.query.model import BlockStage, Query
from pipeline.filters import Statement

# Where nothing is said. Lookups wait for sites, not for cores: more tasks than run at once only leave limits unused.
TASKS = 2


def divided(
    statement: Statement, query: Query, catalog: Catalog, settings: Mapping[str, Any], said: int | None
) -> list[Statement]:
    """The statements that together give what this one gives, none of which asks what another asks.

    One, where there is no list of bindings that every way of asking goes by: then each would ask for all of it.
    """
    number = _list_asked_by(statement, query, catalog)
    if number is None:
        return [statement]
    values = statement.conditions[number].values
    relation = catalog.relations[statement.relation]
    tasks = min(len(values), most_tasks(sources_of(relation, catalog), settings))
    # A request that carries several bindings should not carry fewer for that.
    fullest = max(method.batch_size for method in relation.methods)
    tasks = min(tasks, said if said is not None else min(TASKS, -(-len(values) // fullest)))
    return [statement.narrowed(number, values[task::tasks]) for task in range(tasks)]


def sources_of(relation: Relation, catalog: Catalog) -> list[Source]:
    names = {mirror.source for method in relation.methods for mirror in method.mirrors}
    return [source for name, source in catalog.sources.items() if name in names]


def most_tasks(sources: Collection[Source], settings: Mapping[str, Any]) -> int:
    """As many as can each be given something of every limit that is a whole number."""
    limits = [limit for source in sources for limit in _whole(source)]
    ceilings = [Ceilings(settings.get("max_calls"), settings.get("max_bytes"))]
    ceilings += settings.get("per_source", {}).values()
    limits += [limit for c in ceilings for limit in (c.calls, c.bytes)]
    return max(1, min((limit for limit in limits if limit is not None), default=1))


def portion_of(catalog: Catalog, task: int, tasks: int) -> Catalog:
    """The catalog with one task's portion of the sources' limits."""
    if tasks == 1:
        return catalog
    return replace(catalog, sources={name: _portion(s, task, tasks) for name, s in catalog.sources.items()})


def settings_for(settings: Mapping[str, Any], task: int, tasks: int) -> dict[str, Any]:
    """One task's portion of what the whole read may spend. Time is the same for all, as they run side by side."""
    portions = dict(settings)
    for name in ("max_calls", "max_bytes"):
        if name in portions:
            portions[name] = _part(portions[name], task, tasks)
    if "per_source" in portions:
        portions["per_source"] = {n: _ceilings(c, task, tasks) for n, c in portions["per_source"].items()}
    return portions


def _whole(source: Source) -> Iterator[int | None]:
    yield source.concurrency
    yield source.daily
    yield source.per_query.calls
    yield source.per_query.bytes


def _portion(source: Source, task: int, tasks: int) -> Source:
    return replace(
        source,
        rate=None if source.rate is None else source.rate / tasks,
        concurrency=max(1, source.concurrency // tasks + (task < source.concurrency % tasks)),
        daily=_part(source.daily, task, tasks),
        per_query=_ceilings(source.per_query, task, tasks),
    )


def _ceilings(whole: Ceilings, task: int, tasks: int) -> Ceilings:
    return Ceilings(_part(whole.calls, task, tasks), _part(whole.bytes, task, tasks), whole.seconds)


def _part(whole: int | None, task: int, tasks: int) -> int | None:
    return None if whole is None else whole // tasks + (task < whole % tasks)


def _list_asked_by(statement: Statement, query: Query, catalog: Catalog) -> int | None:
    """The longest list on a column that every way of asking the relation binds to a value."""
    always = _always_bound(statement.relation, query, catalog)
    lists = [
        (len(condition.values), number)
        for number, condition in enumerate(statement.conditions)
        if condition.operator == "IN" and condition.column in always and len(condition.values) > 1
    ]
    return max(lists)[1] if lists else None


def _always_bound(relation: str, query: Query, catalog: Catalog) -> set[str]:
    verdicts = verdicts_of(query, catalog)
    found: list[set[str]] = []
    for stage in query.stages:
        if not isinstance(stage, BlockStage):
            continue
        for alias, providers in zip(stage.block.aliases, verdicts[stage.name].providers, strict=True):
            if alias.relation.name == relation:
                found += [_equal(provider.bind_set) for provider in providers]
    return set.intersection(*found) if found else set()


def _equal(bind_set: tuple[str, ...]) -> set[str]:
    return {field for field, operator in map(parted, bind_set) if operator == EQUAL}
