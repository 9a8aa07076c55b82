"""One read, divided over several tasks: each asks for a part of a list of bindings, under a part of every limit."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
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


def _whole(source: Source) -> Iterator[int | None]:
    yield source.concurrency
    yield source.daily
    yield source.per_query.calls
    yield source.per_query.bytes


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
