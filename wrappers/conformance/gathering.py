"""What is asked of a site under test, in which order: what needs least first, so that its rows help with the rest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from mediator.catalog.bindfields import field_of
from mediator.catalog.model import AccessMethod, BindSet, Relation, Source
from mediator.catalog.wrapper import Binding, Request
from mediator.errors import SourceError
from wrappers.cassettes import Replaying
from wrappers.conformance.asking import Asker, Lookup, Row, way_of
from wrappers.conformance.evidence import Evidence, Narrowed, Outside, Packed
from wrappers.conformance.samples import Samples, in_other_case, needed, samples, unknown
from wrappers.paging import NumberedPages, OffsetPages
from wrappers.paging.turning import Paged, start_of
from wrappers.sql import SqlWrapper

_ROWS_KEPT = 10_000  # of one relation, to take bindings from


async def gathered(asker: Asker, relations: Iterable[Relation]) -> list[Evidence]:
    """The evidence of every access method of these relations; others may lend them bindings."""
    return await _Gathering(asker).all(list(relations))


class _Gathering:
    def __init__(self, asker: Asker) -> None:
        self._asker = asker
        self._seen: dict[str, list[Row]] = {}

    async def all(self, relations: Sequence[Relation]) -> list[Evidence]:
        """Methods for which there is something to try come before those that wait for others' rows."""
        wanted = [self._evidence(r, m) for r in relations for m in r.methods if m.wrapper is not None]
        lenders = [
            r
            for r in self._asker.catalog.relations.values()
            if r not in relations and any(_may_lend(r, e) for e in wanted)
        ]
        todo = sorted(wanted, key=lambda e: bool(e.method.kind == "index"))
        while todo:
            ready = next((e for e in todo if self._ready(e, 2)), None)
            if ready is None and lenders:
                await self._read_a_little(lenders.pop(0))
                continue
            ready = ready or next((e for e in todo if self._ready(e, 1)), todo[0])
            todo.remove(ready)
            await self._gather(ready)
        for evidence in wanted:
            evidence.others = [
                e for e in wanted if e is not evidence and e.relation.name == evidence.relation.name
            ]
        return wanted

    def _evidence(self, relation: Relation, method: AccessMethod) -> Evidence:
        sources = self._asker.catalog.sources
        secrets = tuple(s for mirror in method.mirrors for s in secrets_of(sources[mirror.source]))
        return Evidence(
            way_of(relation, method),
            secrets=secrets,
            played=isinstance(self._asker.transport, Replaying),
        )

    def _ready(self, evidence: Evidence, enough: int) -> bool:
        """Whether there are so many bindings to try. Of a scan one is enough."""
        sets = base_sets(evidence.method)
        return any(not b or len(self._samples(evidence, b).bindings) >= enough for b in sets)

    def _samples(self, evidence: Evidence, bind_set: BindSet) -> Samples:
        return samples(self._asker.catalog, evidence.relation, evidence.method, bind_set, self._seen)

    async def _read_a_little(self, relation: Relation) -> None:
        """A page of a relation that is not under test, for the bindings in it."""
        for method in relation.scans:
            if method.wrapper is not None and not base_sets(method)[0]:
                lookup = await self._asker.lookup(relation, method, method.mirrors[0], (), ())
                self._learn(relation, [lookup])
                return

    async def _gather(self, e: Evidence) -> None:
        # What one way of asking brings may be what another one binds.
        for bind_set in sorted(base_sets(e.method), key=lambda b: not self._samples(e, b)):
            known = e.samples[bind_set] = self._samples(e, bind_set)
            if not known:
                e.lacks[bind_set] = needed(e.method, e.relation, bind_set)
                continue
            lookups = [
                await self._ask(e, bind_set, b, n)
                for n in range(len(e.method.mirrors))
                for b in known.bindings
            ]
            e.known += lookups
            self._learn(e.relation, lookups)
            good = [lookup for lookup in lookups if lookup.good]
            if not good:
                continue
            if bind_set:
                await self._strange(e, bind_set, good[0])
                await self._together(e, bind_set, [x for x in good if x.mirror == good[0].mirror])
            await self._narrow(e, bind_set, next((x for x in good if x.rows), good[0]))
            await self._step_outside(e, good)

    async def _ask(self, e: Evidence, bind_set: BindSet, binding: Binding, mirror: int = 0) -> Lookup:
        return await self._asker.lookup(e.relation, e.method, e.method.mirrors[mirror], bind_set, binding)

    async def _strange(self, e: Evidence, bind_set: BindSet, known: Lookup) -> None:
        binding = known.bindings[0]
        if (nobody := unknown(bind_set, binding)) is not None:
            e.unknown.append(await self._ask(e, bind_set, nobody))
        if (swapped := in_other_case(binding)) is not None and known.rows:
            e.other_case.append((known, await self._ask(e, bind_set, swapped)))

    async def _together(self, e: Evidence, bind_set: BindSet, alone: list[Lookup]) -> None:
        """A few known bindings in one request; then as many as one may carry, the known ones at the end."""
        size = e.method.batch_size
        if size == 1 or not alone:
            return
        few = alone[:size]
        mirror = few[0].mirror
        bindings = [x.bindings[0] for x in few]
        if len(few) > 1:
            together = await self._asker.lookup(e.relation, e.method, mirror, bind_set, *bindings)
            e.packed.append(Packed(together, tuple(few), full=len(few) == size))
        fillers: list[Binding] = []
        for nth in range(1, 4 * size):
            filler = unknown(bind_set, bindings[0], nth)
            if filler is not None and len(fillers) + len(few) < size and filler not in (*fillers, *bindings):
                fillers.append(filler)
        if fillers:
            full = await self._asker.lookup(e.relation, e.method, mirror, bind_set, *fillers, *bindings)
            e.packed.append(Packed(full, tuple(few), full=len(fillers) + len(few) == size))

    async def _narrow(self, e: Evidence, bind_set: BindSet, without: Lookup) -> None:
        for name in _optional(e):
            values = [row[e.place(name)] for row in without.rows if row[e.place(name)] is not None]
            if not values or name in bind_set:
                continue
            wider = tuple(sorted({*bind_set, name}))
            by_name = {**dict(zip(bind_set, without.bindings[0], strict=True)), name: values[-1]}
            with_it = await self._asker.lookup(
                e.relation, e.method, without.mirror, wider, tuple(by_name[n] for n in wider)
            )
            e.narrowed.append(Narrowed(name, without, with_it))

    async def _step_outside(self, e: Evidence, good: list[Lookup]) -> None:
        """A page before the first and one after the last, where pages have numbers."""
        paging = getattr(e.wrapper, "paging", None)
        if not isinstance(paging, NumberedPages | OffsetPages):
            return
        inside = max((x for x in good if x.whole), key=lambda x: len(x.rows), default=None)
        if inside is None or any(o.inside.bind_set == inside.bind_set for o in e.outside):
            return
        if not all(isinstance(x.request, Paged) for x in inside.exchanges):
            return  # code that opens a door first, say: it alone knows how its pages are asked for
        first = inside.exchanges[0].request
        starts = [("after the last", _after(paging, inside))]
        if paging.first > 0:
            starts.append(("before the first", paging.first - 1))
        for where, start in starts:
            lookup = await self._one_page(e, inside, paging.at(first, start))
            e.outside.append(Outside(where, inside, lookup))

    async def _one_page(self, e: Evidence, like: Lookup, request: Request) -> Lookup:
        few, self._asker.most_pages = self._asker.most_pages, 1
        try:
            return await self._asker.walk(e.way, like.mirror, like.bind_set, like.bindings, request)
        finally:
            self._asker.most_pages = few

    def _learn(self, relation: Relation, lookups: Iterable[Lookup]) -> None:
        rows = self._seen.setdefault(relation.name, [])
        rows += list(chain.from_iterable(x.rows for x in lookups))[: _ROWS_KEPT - len(rows)]


def _may_lend(other: Relation, e: Evidence) -> bool:
    """Whether it has a field of the name and type of one that is bound."""
    bound = {(name := field_of(b), e.relation.schema.field(name).type) for b in e.method.bound}
    return any((f.name, f.type) in bound for f in other.fields)


def secrets_of(source: Source) -> Iterator[str]:
    """What the source is told and nobody else may see, as far as it is there."""
    for secret in source.secrets:
        try:
            yield secret.read()
        except SourceError:
            continue


def base_sets(method: AccessMethod) -> tuple[BindSet, ...]:
    """The ways of asking without optional bind-fields: one, or one for each of `any_of`."""
    some: list[BindSet] = [(name,) for name in method.any_of] or [()]
    return tuple(tuple(sorted({*method.required, *one})) for one in some)


def _optional(e: Evidence) -> tuple[str, ...]:
    """Those to be tried. Of a database's operators, which nobody declared, one for each field will do."""
    if not isinstance(e.wrapper, SqlWrapper):
        return e.method.optional
    return tuple({field_of(name): name for name in e.method.optional}.values())


def _after(paging: NumberedPages | OffsetPages, inside: Lookup) -> int:
    """The number or offset that follows the last page that was read."""
    last = max(inside.pages, key=lambda e: start_of(e.request))
    start, came = start_of(last.request), len(last.rows)
    if isinstance(paging, NumberedPages):
        return start + 1
    return start + (came or paging.size)
