"""Each rule taken away in turn: the search must notice.

A rule whose absence nothing notices is either not needed or not tested.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from typing import Any

import pyarrow as pa
import pytest

import mediator.binding.choice as choice
import mediator.binding.providers as providers
import mediator.eddy.constraints as constraints
import mediator.eddy.goals.picture as picture
import mediator.eddy.joining as joining
import mediator.eddy.relying as relying
import mediator.eddy.unbuilt as unbuilt
import mediator.query.bounded as bounded
import mediator.state.coverage as coverage
import mediator.state.index as index
import mediator.state.keys as keys
import mediator.state.places as places
import mediator.tracing.recording as recording
import mediator.tracing.replaying as replaying
from mediator.eddy.asking import Asking
from mediator.eddy.constraints import Graph
from mediator.eddy.destinations import LookUp, Probe
from mediator.eddy.dividing import Division
from mediator.eddy.eddy import Eddy
from mediator.eddy.intake import Intake
from mediator.eddy.preferring import Preferring
from mediator.eddy.run import Run
from mediator.eddy.selecting import Selecting
from mediator.eddy.unbuilt import Unbuilt
from mediator.flow.events import Failed
from mediator.state.coverage import Entry, Known
from mediator.state.stem import SteM
from mediator.state.view import AliasView, View
from mediator.tracing.ground import settings_of
from tests.any_route.drawing import Case, draw
from tests.any_route.ranges import draw_ranges
from tests.any_route.search import Effort, Wrong, search

Patch = Callable[[pytest.MonkeyPatch], None]
SEEDS = range(1_000)

# The first seed that notices a rule's absence, where that takes long to find: it is looked at first. Where it no longer
# does, since the engine has changed, all others are searched as ever.
NOTICED = {
    "alike_by_signature": 205,
    "bounds_are_part_of_the_binding": 90,
    "bounds_of_the_alias": 33,
    "cache": 45,
    "comes_again": 60,
    "costly_conditions": 83,
    "cross_product": 50,
    "failure_debt": 624,
    "last_match": 173,
    "null": 64,
    "others_are_lost": 34,
    "packed_anywhere": 205,
    "parted_in_the_midst": 418,
    "provider_waits_for_itself": 138,
    "put_off": 218,
    "scan_asked_again": 138,
    "single_by_any_field": 21,
    "some_only_where_nothing_brings_all": 249,
    "unrecorded": 32,
    "wider_bounds_cover": 25,
}


def _watermark(patch: pytest.MonkeyPatch) -> None:
    """A batch joins with whatever is there, also with what came after it."""
    visible = AliasView.visible
    patch.setattr(AliasView, "visible", lambda self, limit, since=0: visible(self, self.view.count, since))


def _meets_itself_never(patch: pytest.MonkeyPatch) -> None:
    """Rows of one relation are ordered by time alone."""
    patch.setattr(
        Run,
        "_seen",
        lambda self, newest, relation, before: tuple(
            before if a.relation.name == relation else self.view(a.number).count for a in self.block.aliases
        ),
    )


def _meets_itself_twice(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        Run,
        "_seen",
        lambda self, newest, relation, before: tuple(self.view(a.number).count for a in self.block.aliases),
    )


def _bounce(patch: pytest.MonkeyPatch) -> None:
    """SteMs never bounce: what is not there is not asked for."""
    patch.setattr(Eddy, "_bounce", lambda self, batch, alias, met: None)


def _probe_completion(patch: pytest.MonkeyPatch) -> None:
    """A batch that bounced and was looked up goes on to other SteMs."""
    visit = Eddy._visit

    def visit_and_go_on(self: Eddy, batch: Any, where: Any) -> int:
        out = visit(self, batch, where)
        if isinstance(where, LookUp):
            spanned = batch.signature.spanned
            for alias in range(len(self.run.aliases)):
                if alias != where.alias and not spanned >> alias & 1:
                    met = joining.meet(
                        self.run, joining.Join.of(self.run.block, spanned, alias), batch, 10**6
                    )
                    if met.wider is not None:
                        self._floating.push(met.wider)
        return out

    patch.setattr(Eddy, "_visit", visit_and_go_on)


def _one_destination(patch: pytest.MonkeyPatch) -> None:
    """A batch whose matches went on goes to a second SteM as well."""
    met = Eddy._met

    def met_and_again(self: Eddy, batch: Any, where: Probe, found: Any) -> int:
        others = [d for d in self._router._legal(batch.signature) if isinstance(d, Probe) and d != where]
        if others and batch.cut < 0 and found.rest is None:
            spanned = batch.signature.spanned
            second = joining.meet(self.run, self._probing.join(spanned, others[0].alias), batch, 10**6)
            if second.wider is not None:
                self._floating.push(second.wider)
        return met(self, batch, where, found)

    patch.setattr(Eddy, "_met", met_and_again)


def _single_flight(patch: pytest.MonkeyPatch) -> None:
    """What is under way is asked again."""
    note = View.__init__

    def forgetful(self: View, stem: Any) -> None:
        note(self, stem)
        remember = self.coverage.note

        def forget(bind_set: Any, binding: Any, entry: Entry) -> None:
            if entry.known != Known.ASKED:
                remember(bind_set, binding, entry)

        self.coverage.note = forget  # type: ignore[method-assign]

    patch.setattr(View, "__init__", forgetful)


def _cache(patch: pytest.MonkeyPatch) -> None:
    """What a SteM covers is asked again."""
    patch.setattr(Asking, "_serve", lambda self, view, bind_set, bindings: list(bindings))


def _null(patch: pytest.MonkeyPatch) -> None:
    """NULL is a value like others."""
    where = places._where
    patch.setattr(keys.Part, "mask", lambda self: None)
    patch.setattr(places.Stored, "mask", (keys.NO_MASK, False))
    patch.setattr(places, "_where", lambda found: (keys.NO_MASK, False, *where(found)[2:]))


def _parking_debt(patch: pytest.MonkeyPatch) -> None:
    """Nobody looks again at rows that were parked where they could not feed the provider."""
    park = Eddy._park

    def forget(self: Eddy, batch: Any, alias: int) -> None:
        owed = self.asking.owed
        park(self, batch, alias)
        self.asking.owed = owed

    patch.setattr(Eddy, "_park", forget)


def _holding_debt(patch: pytest.MonkeyPatch) -> None:
    """A batch that was held is forgotten: nobody asks later for what it needs."""

    def forget(self: Eddy, batch: Any, alias: int) -> None:
        pass

    patch.setattr(Eddy, "_hold", forget)


def _provider_waits_for_itself(patch: pytest.MonkeyPatch) -> None:
    """A provider is changed without a look at who waits for whom."""

    def rely(self: Any, provider: Any) -> bool:
        self.chosen = tuple(provider if a == provider.alias else p for a, p in enumerate(self.chosen))
        return True

    patch.setattr(relying.Relying, "rely", rely)


def _scan_asked_again(patch: pytest.MonkeyPatch) -> None:
    """A provider is relied on again whose scan has failed already."""
    patch.setattr(relying.Relying, "_unfailing", lambda self, provider: True)


def _settled_too_soon(patch: pytest.MonkeyPatch) -> None:
    """An alias is taken to have all its rows when one binding of it is covered."""
    doubtful = picture.Picture._doubtful

    def some(self: Any, alias: int, table: Any) -> Any:
        found = doubtful(self, alias, table)
        return found & False if found is not None and len(found) and not found.all() else found

    patch.setattr(picture.Picture, "_doubtful", some)


def _failure_debt(patch: pytest.MonkeyPatch) -> None:
    """Nobody looks again at rows that relied on a provider that failed."""
    failed = Asking.failed

    def forget(self: Asking, event: Failed) -> None:
        owed = self.owed
        failed(self, event)
        self.owed = owed

    patch.setattr(Asking, "failed", forget)


def _other_provider(patch: pytest.MonkeyPatch) -> None:
    """Where a provider fails, no other is tried."""
    patch.setattr(Asking, "_replace", lambda self, ask, relying: False)


def _failure_is_coverage(patch: pytest.MonkeyPatch) -> None:
    """A lookup that failed looks like one without rows."""
    patch.setattr(Asking, "missing", lambda self: [])


def _waiting(patch: pytest.MonkeyPatch) -> None:
    """The end comes while lookups are under way."""
    patch.setattr(Asking, "waiting", lambda self: False)


def _duplicates(patch: pytest.MonkeyPatch) -> None:
    """A row that arrives twice is two rows."""

    patch.setattr(SteM, "_merged", lambda self, rows: self.store.append(rows))


def _views(patch: pytest.MonkeyPatch) -> None:
    """A query sees rows that others fetched before it asked for them."""
    patch.setattr(View, "count", property(lambda self: self.stem.store.n))


def _taken(patch: pytest.MonkeyPatch) -> None:
    """A probe that was cut short starts over with its first row."""
    meet = joining._find

    def forgetful(run: Any, join: Any, batch: Any, room: int) -> Any:
        found = meet(run, join, batch, room)
        return index.Found(found.at, found.rows, found.next, 0)

    patch.setattr(joining, "_find", forgetful)


def _selections(patch: pytest.MonkeyPatch) -> None:
    """Rows that fail a selection can be found all the same."""
    patch.setattr(AliasView, "visible", lambda self, limit, since=0: self.view.visible(limit, since))


def _single_by_any_field(patch: pytest.MonkeyPatch) -> None:
    """A row that found one match is taken to have found all, whether or not it was found by the key."""
    join = joining.Join.of
    patch.setattr(
        joining.Join,
        "of",
        classmethod(
            lambda cls, block, spanned, alias: dataclasses.replace(join(block, spanned, alias), single=True)
        ),
    )


def _overtaken_by_any_row(patch: pytest.MonkeyPatch) -> None:
    """A scan's rows call back every lookup, whether or not they answer it."""

    def everything(self: Asking, relation: str, fields: Any, ids: Any) -> Any:
        asked = [o for o in self._open.values() if o.ask.relation == relation and o.ask.bind_set == fields]
        return {b for o in asked for b in o.left}

    patch.setattr(Asking, "_asked_for", everything)


def _cross_product(patch: pytest.MonkeyPatch) -> None:
    """Aliases that nothing joins are never brought together."""
    probes = constraints._probes

    def joined_only(spanned: int, missing: Any, graph: Any, chosen: Any) -> Any:
        near = [a for a in missing if graph.joined(spanned, a)]
        return (
            probes(spanned, near or missing[:1], graph, chosen)
            if near
            else ([], [constraints.Park(missing[0])])
        )

    patch.setattr(constraints, "_probes", joined_only)


def _last_match(patch: pytest.MonkeyPatch) -> None:
    """An unbuilt row that comes again meets what it has met."""
    renewed = Unbuilt._renewed
    patch.setattr(Unbuilt, "_renewed", lambda *said: dataclasses.replace(renewed(*said), since=0))


def _comes_again(patch: pytest.MonkeyPatch) -> None:
    """An unbuilt row meets only what was there when it came."""
    patch.setattr(Unbuilt, "wait", lambda self, batch, alias, met, single: None)


def _alike_by_signature(patch: pytest.MonkeyPatch) -> None:
    """Unbuilt rows that have met different rows are put together."""
    patch.setattr(unbuilt, "_likeness", lambda batch: (batch.signature, batch.cut))


def _packed_anywhere(patch: pytest.MonkeyPatch) -> None:
    """Where unbuilt rows are put together, those of the second landing stand for those of the first."""
    packed = Run.packed
    patch.setattr(Run, "packed", lambda self, batches: packed(self, [batches[-1]] * len(batches)))


def _bounds_are_part_of_the_binding(patch: pytest.MonkeyPatch) -> None:
    """A lookup within bounds is taken to have brought all that equals its values."""
    patch.setattr(coverage, "follows", lambda name, bound, known: True)


def _wider_bounds_cover(patch: pytest.MonkeyPatch) -> None:
    """What was sent within bounds serves who asks for more than that."""
    follows = coverage.follows
    patch.setattr(
        coverage,
        "follows",
        lambda name, bound, known: any(follows(f"{f}{o}", v, {(f, o): bound}) for (f, o), v in known.items()),
    )


def _bounds_of_the_alias(patch: pytest.MonkeyPatch) -> None:
    """What one alias of a relation is bounded by is taken to bound another."""
    known = bounded._known

    def of_anybody(block: Any, column: Any) -> Any:
        alike = [a.number for a in block.aliases if a.relation == block.aliases[column.alias].relation]
        return [fact for alias in alike for fact in known(block, column._replace(alias=alias))]

    patch.setattr(bounded, "_known", of_anybody)


def _strictly_less_is_less(patch: pytest.MonkeyPatch) -> None:
    """Who may be asked only for what is less is asked for what is at most, as if that were the same."""
    as_bound = bounded._as_bound
    patch.setattr(
        bounded,
        "_as_bound",
        lambda wanted, how, value, kind: (
            as_bound(wanted[0], how[0], value, kind)
            if "^" not in wanted + how
            else as_bound(wanted, how, value, kind)
        ),
    )


def _some_is_not_all(patch: pytest.MonkeyPatch) -> None:
    """What does not promise all rows is taken to have brought them."""
    patch.setattr(
        Asking,
        "_method",
        lambda self, ask: dataclasses.replace(
            self._run.views[ask.relation].stem.relation.method(ask.method), proves="all"
        ),
    )


def _some_only_where_nothing_brings_all(patch: pytest.MonkeyPatch) -> None:
    """What does not promise all rows is as good as what does."""
    preference = providers._preference
    patch.setattr(providers, "_preference", lambda block, provider: preference(block, provider)[1:])
    patch.setattr(relying, "_relied_on", lambda of, chosen: tuple(map(tuple, of)))
    patch.setattr(choice, "_best", _first_best)


def _first_best(open_: Any, done: int) -> Any:
    for ways in open_.values():
        for provider in ways:
            if not provider.depends & ~done:
                return provider
    return None


BOUNDS: list[Patch] = [
    _bounds_are_part_of_the_binding,
    _wider_bounds_cover,
    _bounds_of_the_alias,
    _strictly_less_is_less,
    _some_is_not_all,
    _some_only_where_nothing_brings_all,
]


def _put_off(patch: pytest.MonkeyPatch) -> None:
    """A scan's end goes before rows of it that were put off."""
    decide = Intake._decide
    patch.setattr(Intake, "_decide", lambda self: decide(self) if self._inbox else None)


def _costly_conditions(patch: pytest.MonkeyPatch) -> None:
    """A batch leaves only when it has passed every costly predicate."""
    of = Graph.of
    patch.setattr(Graph, "of", lambda block: dataclasses.replace(of(block), costly=()))


def _rest_of_a_slice(patch: pytest.MonkeyPatch) -> None:
    """What is left of a batch that was cut before a costly predicate floats on."""
    cut = Selecting.cut
    patch.setattr(Selecting, "cut", lambda self, batch, number: (cut(self, batch, number)[0], None))


def _nothing_said(patch: pytest.MonkeyPatch) -> None:
    """A row of which a division says nothing belongs to no part."""
    label = Division.label

    def labelled(self: Division, values: pa.Array) -> Any:
        labels = label(self, values)
        labels[labels == 1] = 0
        return labels

    patch.setattr(Division, "label", labelled)


def _others_are_lost(patch: pytest.MonkeyPatch) -> None:
    """All parts float on of a batch that the user cares for in part."""
    parted = Preferring.parted
    patch.setattr(Preferring, "parted", lambda self, batch: islice(parted(self, batch), 1))


def _parted_in_the_midst(patch: pytest.MonkeyPatch) -> None:
    """A probe that was cut short stays together, whatever is preferred from then on."""
    judged = Preferring._judged
    patch.setattr(Preferring, "_judged", lambda self, batch: judged(self, dataclasses.replace(batch, cut=-1)))


def _unrecorded(patch: pytest.MonkeyPatch) -> None:
    """A verb that draws lots is left out of the record."""
    noted = recording._Recorded._noted

    def noted_but_one(self: Any, verb: str, method: Any) -> Any:
        return method if verb == "sample" else noted(self, verb, method)

    patch.setattr(recording._Recorded, "_noted", noted_but_one)


def _timeless(patch: pytest.MonkeyPatch) -> None:
    """What comes out of a record is not what went in."""
    patch.setattr(replaying, "settings_of", lambda said: replace(settings_of(said), seed=0))


RULES: list[Patch] = [
    _unrecorded,
    _timeless,
    _put_off,
    _last_match,
    _comes_again,
    _alike_by_signature,
    _packed_anywhere,
    _watermark,
    _meets_itself_never,
    _meets_itself_twice,
    _bounce,
    _probe_completion,
    _one_destination,
    _single_flight,
    _cache,
    _null,
    _parking_debt,
    _holding_debt,
    _provider_waits_for_itself,
    _scan_asked_again,
    _settled_too_soon,
    _failure_debt,
    _other_provider,
    _failure_is_coverage,
    _waiting,
    _duplicates,
    _views,
    _taken,
    _selections,
    _single_by_any_field,
    _overtaken_by_any_row,
    _cross_product,
    _costly_conditions,
    _rest_of_a_slice,
    _others_are_lost,
    _nothing_said,
    _parted_in_the_midst,
]


def _name(rule: Patch) -> str:
    return rule.__name__.strip("_")


@pytest.mark.parametrize("rule", RULES, ids=_name)
def test_the_search_notices(rule: Patch, monkeypatch: pytest.MonkeyPatch) -> None:
    rule(monkeypatch)
    assert _noticed(rule) >= 0, f"{len(SEEDS)} seeds pass without this rule: {rule.__doc__}"


@pytest.mark.parametrize("rule", BOUNDS, ids=_name)
def test_the_search_over_ranges_notices(rule: Patch, monkeypatch: pytest.MonkeyPatch) -> None:
    rule(monkeypatch)
    assert _noticed(rule, draw_ranges) >= 0, f"{len(SEEDS)} seeds pass without this rule: {rule.__doc__}"


def _noticed(rule: Patch, drawn: Callable[[int], Case] = draw) -> int:
    """The first seed that fails, of the one that did and all others; -1 if none does."""
    for seed in (NOTICED.get(_name(rule), 0), *SEEDS):
        try:
            search(seed, Effort(), drawn)
        except (Wrong, AssertionError):
            return seed
    return -1
