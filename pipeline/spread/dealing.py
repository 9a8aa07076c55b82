"""Among which askers the lookups of each source are dealt, and what part of its limits each of them has.

What a site bears is one number for all that ask it, and askers do not speak with one another: each has its part of that
number from the beginning. A budget that is used up is another matter, as one asker would have some of it left where
another has none; and so is a pace that the site itself asks for while it is asked. Sources of that kind have one asker.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from mediator.assembly import Settings
from mediator.catalog.ceilings import NO_CEILINGS, Ceilings
from mediator.catalog.model import AccessMethod, Catalog, Relation, Source
from mediator.catalog.rate import burst
from pipeline.limits import part_of


@dataclass(frozen=True)
class Dealing:
    """`by_source` has the askers of each source that is dealt; any other is the first one's."""

    askers: int
    by_source: Mapping[str, tuple[int, ...]]

    def askers_of(self, method: AccessMethod) -> tuple[int, ...]:
        """Those that its lookups are dealt among: all of them, where no site is asked."""
        return self._of(method.mirrors[0].source) if method.mirrors else tuple(range(self.askers))

    def catalog(self, whole: Catalog, number: int) -> Catalog:
        """What one asker asks, with its part of the limits. What it does not ask is not in it."""
        if self.askers == 1:
            return whole
        sources = {
            name: part_of(source, self._of(name).index(number), len(self._of(name)))
            for name, source in whole.sources.items()
            if number in self._of(name)
        }
        relations: dict[str, Relation] = {}
        for name, relation in whole.relations.items():
            methods = tuple(m for m in relation.methods if all(p.source in sources for p in m.mirrors))
            if methods:
                relations[name] = replace(relation, methods=methods)
        return replace(whole, relations=relations, sources=sources)

    def _of(self, source: str) -> tuple[int, ...]:
        return self.by_source.get(source, (0,))


def dealt(catalog: Catalog, relations: Iterable[Relation], settings: Settings, askers: int) -> Dealing:
    """As a query over these relations needs it. Those that one asker asks alone are not all asked by the same."""
    if _budgeted(Ceilings(settings.max_calls, settings.max_bytes)):  # one purse, for all sources
        return Dealing(askers, {})
    by_source: dict[str, tuple[int, ...]] = {}
    at = 0
    for group in _groups(relations):
        many = min(askers, _most(group, catalog, settings))
        by_source |= dict.fromkeys(group, tuple((at + n) % askers for n in range(many)))
        at += many
    return Dealing(askers, by_source)


def most_askers(catalog: Catalog, relations: Iterable[Relation], settings: Settings) -> int:
    """That have anything to ask."""
    if _budgeted(Ceilings(settings.max_calls, settings.max_bytes)):
        return 1
    return max(1, sum(_most(group, catalog, settings) for group in _groups(relations)))


def _groups(relations: Iterable[Relation]) -> list[tuple[str, ...]]:
    """Sources that stand together as mirrors of a method, which must have the same askers."""
    groups: list[tuple[str, ...]] = []
    for mirrors in (method.mirrors for relation in relations for method in relation.methods):
        names = dict.fromkeys(mirror.source for mirror in mirrors)
        joined = [group for group in groups if not names.keys().isdisjoint(group)]
        groups = [group for group in groups if group not in joined]
        if names:
            groups.append(tuple(dict.fromkeys([*(name for group in joined for name in group), *names])))
    return groups


def _most(group: Iterable[str], catalog: Catalog, settings: Settings) -> int:
    """As many as can each be given something of every limit."""
    return min(most for name in group for most in _limits(catalog.sources[name], settings))


def _limits(source: Source, settings: Settings) -> Iterator[int]:
    yield source.concurrency
    if source.rate is not None:
        yield burst(source.rate)
    ceilings = source.per_query.lesser(settings.per_source.get(source.name, NO_CEILINGS))
    if source.daily is not None or _budgeted(ceilings) or source.robots == "obey":
        yield 1


def _budgeted(ceilings: Ceilings) -> bool:
    return ceilings != NO_CEILINGS
