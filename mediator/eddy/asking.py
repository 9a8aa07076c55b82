"""What has been asked of the access modules, what came of it, and what is still needed.

Coverage is noted twice: in the query's view, which says what this query has been given, and in the SteM, which says
what anybody may be given from it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mediator.binding.model import Provider, Verdict
from mediator.catalog.model import AccessMethod
from mediator.clock import Clock
from mediator.eddy.asked import Open, Tally
from mediator.eddy.feeding import bindings_of, constants, fed, firsts
from mediator.eddy.pace import Pace
from mediator.eddy.preferring import Weights
from mediator.eddy.relying import Relying
from mediator.eddy.run import Run
from mediator.eddy.urging import Urging
from mediator.errors import Cause
from mediator.flow.batch import Batch, Rows, taken
from mediator.flow.events import (
    SEED,
    Arrived,
    Ask,
    Binding,
    Cancel,
    Command,
    Event,
    Exhausted,
    Failed,
    Landing,
)
from mediator.flow.plain import plain
from mediator.state.coverage import BindSet, Entry, Known
from mediator.state.keys import Part, keys_of
from mediator.state.view import View

Mask = NDArray[np.bool_]


class Asking:
    def __init__(
        self,
        run: Run,
        verdict: Verdict,
        clock: Clock,
        max_age: float,
        numbers: Iterator[int],
        urgent: bool = True,
    ) -> None:
        self._run = run
        self._clock = clock
        self._max_age = max_age
        self._relying = Relying(run.block, verdict)
        self.commands: list[Command] = []
        self.delivered: list[tuple[str, Rows]] = []  # rows that were in the SteM already
        self.tallies = {name: Tally() for name in run.views}
        self.owed = False  # rows relied on something that did not hold: look them over before the end
        self._open: dict[int, Open] = {}
        self._scans: set[tuple[str, str]] = set()
        self._unkept: set[str] = set()  # relations of which not all rows are in the SteM
        self._numbers = numbers
        self._sought: set[tuple[str, BindSet, Binding]] = set()  # in the SteM, without asking for them
        self.pace = Pace(clock)
        self.urging = Urging(run, urgent)
        self.weigh: Callable[[Batch], Weights] = _favoured  # how much the user cares for each row of a batch

    @property
    def providers(self) -> tuple[tuple[Provider, ...], ...]:
        """Per alias those that have not let anyone down."""
        return self._relying.providers

    @property
    def chosen(self) -> tuple[Provider, ...]:
        """Per alias the one that is to bring its rows."""
        return self._relying.chosen

    @property
    def order(self) -> tuple[int, ...]:
        """The aliases, each after those that it depends on."""
        return self._relying.order

    @property
    def broken(self) -> set[tuple[int, str]]:
        """The (alias, method) pairs that let someone down."""
        return self._relying.broken

    def begin(self, alias: int, by: Provider | None = None) -> None:
        """Ask for what the alias's provider can send without any row's help: a scan, or constants."""
        provider = by or self.chosen[alias]
        if provider.depends:
            return
        relation = self._run.block.aliases[alias].relation
        if provider.bind_set:
            self._request(relation.name, provider, [constants(provider)])
            return
        for rival in self.providers[alias]:
            if not rival.bind_set and (relation.name, rival.method.name) not in self._scans:
                self._scans.add((relation.name, rival.method.name))
                self._request(relation.name, rival, list(SEED))

    def look_up(self, batch: Batch, provider: Provider) -> None:
        """Ask for the matches of the batch's rows, each binding once. NULL is never asked for."""
        view, chosen = self._run.view(provider.alias), self.chosen[provider.alias]
        keys = fed(self._run, batch, provider)
        numbers = view.coverage.numbers(provider.bind_set, keys)
        states = view.coverage.states_of(provider.bind_set, numbers)
        wanted = (states == Known.NOTHING) & keys.whole()
        waiting = states == Known.ASKED
        if wanted.any():
            bindings = bindings_of(self._run, batch.take(firsts(keys, wanted)), provider)
            self._request(view.stem.relation.name, provider, bindings)
            numbers, waiting = view.coverage.numbers(provider.bind_set, keys), waiting | wanted
        if self.urging.active:
            rows, weights = np.flatnonzero(waiting & (numbers >= 0)), self.weigh(batch)
            some = weights if isinstance(weights, float) else weights[rows]
            self.urging.wait(view.stem.relation.name, provider.bind_set, numbers[rows], some)
        failed = np.flatnonzero(states == Known.FAILED)
        if len(failed) and chosen.depends and chosen.bind_set != provider.bind_set:
            if chosen.depends & ~batch.signature.spanned:
                # Only other rows can ask the chosen provider for what this one will not give.
                self.owed = True
            else:
                self.look_up(batch.take(failed), chosen)

    def take(self, relation: str, landing: Landing) -> None:
        """Rows that somebody else's lookup brought, and that no lookup of this query waits for: they are here, too."""
        self.delivered.append((relation, self._run.views[relation].stem.build(landing, self._clock())))

    def serve(self, batch: Batch, provider: Provider) -> bool:
        """Deliver what the SteM holds of the matches of these rows, and ask for nothing; whether there was anything."""
        view = self._run.view(provider.alias)
        keys = fed(self._run, batch, provider)
        unknown = (view.coverage.states(provider.bind_set, keys) == Known.NOTHING) & keys.whole()
        relation, bind_set = view.stem.relation.name, provider.bind_set
        bindings = bindings_of(self._run, batch.take(firsts(keys, unknown)), provider)
        bindings = [b for b in bindings if (relation, bind_set, b) not in self._sought]
        self._sought.update((relation, bind_set, b) for b in bindings)
        return len(self._serve(view, provider.bind_set, bindings)) < len(bindings)

    def rely(self, provider: Provider) -> bool:
        """Let this provider bring its alias's rows from now on; whether it can.

        Who relied on another one loses nothing: what that was asked is waited for as before, what has stopped without
        being asked for is owed already, and what fails meanwhile is owed then.
        """
        before = self.chosen
        found = self._relying.rely(provider)
        self._begin_changed(before)
        return found

    def still_wanted(self, ask: Ask) -> Ask | None:
        """What is left of an ask that nobody has been sent yet, now that others' may have been answered meanwhile."""
        opened = self._open.get(ask.number)
        if opened is None:
            return None
        left = self._serve(self._run.views[ask.relation], ask.bind_set, ask.bindings)
        if len(left) == len(ask.bindings):
            return ask
        self.tallies[ask.relation].asked -= len(ask.bindings) - len(left)
        self._ended(opened, list(set(ask.bindings).difference(left)))
        opened.ask = replace(ask, bindings=tuple(left))
        return opened.ask if left else None

    def uncovered(self, batch: Batch, alias: int) -> Mask | None:
        """Which rows of the batch may have matches in the alias that this query has not been given; none if no row
        has. A lookup that failed for good counts as given when there is no other way."""
        coverage, chosen = self._run.view(alias).coverage, self.chosen[alias]
        if coverage.whole or not any(p.depends for p in self.providers[alias]):
            return None
        doubtful = np.ones(len(batch), np.bool_)
        checked: set[BindSet] = {()}
        for provider in self.providers[alias]:
            if provider.depends & ~batch.signature.spanned or provider.bind_set in checked:
                continue
            checked.add(provider.bind_set)
            keys = fed(self._run, batch, provider)
            states = coverage.states(provider.bind_set, keys)
            doubtful &= states != Known.COMPLETE
            if provider.bind_set == chosen.bind_set:
                doubtful &= states != Known.FAILED
            doubtful &= keys.whole()  # what is fed from a NULL joins with nothing
        return doubtful if doubtful.any() else None

    def share(self, event: Event, built: bool = True) -> None:
        """Pass on to the SteM what any query may know. What is not `built` it lacks, and has not all there is."""
        opened = self._open.get(event.ask)
        if opened is None:
            return
        stem, ask = self._run.views[opened.ask.relation].stem, opened.ask
        proven = self._method(ask).proves == "all"
        if isinstance(event, Arrived):
            self.pace.came(ask, event.landing.rows.num_rows)
            event.landing.kept &= proven  # no end will vouch for them
            if built:
                stem.receive(event.landing)
            else:
                self._unkept.add(opened.ask.relation)
            return
        self._scanned(opened)
        if isinstance(event, Exhausted) and proven and opened.ask.relation not in self._unkept:
            until = min(event.until, event.at + self._method(ask).fresh_for)
            entry = Entry(Known.COMPLETE, event.at, until)
            stem.promise(ask.bind_set, event.bindings, entry, event.landings)

    def overtaken(self, event: Arrived) -> None:
        """Rows came, and are built. If a scan sent them: lookups by the declared key that they answer are called
        back."""
        opened, ids = self._open.get(event.ask), event.landing.ids
        if opened is None or ids is None:
            return
        relation = self._run.views[opened.ask.relation].stem.relation
        key = tuple(sorted(relation.key))
        if opened.ask.bind_set or not key:
            return
        late = [o for o in self._open.values() if o.ask.relation == relation.name and o.ask.bind_set == key]
        if late:
            self._call_back(late, self._asked_for(relation.name, key, ids))

    def exhausted(self, event: Exhausted) -> None:
        """An EOT: these bindings are covered, here and in the SteM; unless it proves nothing of the kind."""
        opened = self._open.get(event.ask)
        if opened is None:
            return
        view = self._run.views[opened.ask.relation]
        entry = Entry(Known.COMPLETE, event.at)
        if self._method(opened.ask).proves != "all":
            cause = Cause("not all", f"{opened.ask.relation}.{opened.ask.method} does not promise all rows")
            entry = Entry(Known.FAILED, event.at, cause=cause, method=opened.ask.method)
            # What was looked up in this way without need is looked up again, as the chosen provider has it.
            self.owed |= not self._relying.on(opened.ask)
        for binding in self._ended(opened, event.bindings, answered=True):
            view.coverage.note(opened.ask.bind_set, binding, entry)
            self.tallies[opened.ask.relation].answered += 1
        if view.coverage.whole:
            self._cancel(o for o in list(self._open.values()) if o.ask.relation == opened.ask.relation)

    def failed(self, event: Failed) -> None:
        """Bindings that will not be answered this way. Whoever relied on it gets another provider, if there is one."""
        opened = self._open.get(event.ask)
        if opened is None:
            return
        ask, ended = opened.ask, self._ended(opened, event.bindings)
        self._relying.failed(ask)
        self.tallies[ask.relation].failed += len(ended)
        if not ask.bind_set and self._scanned_elsewhere(ask):
            self._bar(ask)
            return
        relying = self._relying.on(ask)
        if not ask.bind_set:  # nobody who chooses anew is to rely on it
            self._bar(ask, but=relying)
        before = self.chosen
        replaced = self._replace(ask, relying)
        self.owed |= replaced or not relying
        # Where another provider stands in, which may ask by the same fields, nothing is known of these any more.
        entry = Entry(
            Known.NOTHING if replaced else Known.FAILED, self._clock(), cause=event.cause, method=ask.method
        )
        for binding in ended:
            self._run.views[ask.relation].coverage.note(ask.bind_set, binding, entry)
        self._begin_changed(before)
        if replaced:
            # Who stands in may have been chosen before, and been spared what the other had been asked already.
            for alias in relying:
                self.begin(alias)

    def waiting(self) -> bool:
        """Whether anything is under way that the answers may depend on."""
        return any(self._needed(o.ask) for o in self._open.values())

    @property
    def under_way(self) -> dict[str, int]:
        """How many lookups and scans have not ended, by relation."""
        found: dict[str, int] = {}
        for opened in self._open.values():
            found[opened.ask.relation] = found.get(opened.ask.relation, 0) + len(opened.left)
        return found

    def promised(self, alias: int) -> bool:
        """Whether all rows of the alias that matter have arrived, without any other row's help."""
        provider, coverage = self.chosen[alias], self._run.view(alias).coverage
        if provider.depends:
            return coverage.whole
        return coverage.whole or coverage.known(provider.bind_set, constants(provider)) == Known.COMPLETE

    def prefer(self, worth: Mapping[str, float]) -> None:
        """By relation, how much more than others its scans are worth from now on."""
        self.urging.prefer(worth, [o.ask for o in self._open.values() if o.ask.urgency])

    def relation_of(self, ask: int) -> str | None:
        """Whose rows an ask under way brings."""
        opened = self._open.get(ask)
        return opened.ask.relation if opened else None

    def missing(self) -> list[tuple[str, BindSet, Binding, Entry]]:
        """What the chosen providers were asked and will not answer."""
        found = {}
        for alias, provider in zip(self._run.block.aliases, self.chosen, strict=bool(self.chosen)):
            coverage = self._run.view(alias.number).coverage
            for bind_set, binding, entry in () if coverage.whole else coverage.entries():
                if entry.known == Known.FAILED and bind_set == provider.bind_set:
                    found[alias.relation.name, bind_set, binding] = entry
        return [(*where, entry) for where, entry in found.items()]

    def stop(self) -> None:
        """Nothing more is wanted."""
        self._cancel(list(self._open.values()))

    def _method(self, ask: Ask) -> AccessMethod:
        return self._run.views[ask.relation].stem.relation.method(ask.method)

    def _begin_changed(self, before: Sequence[Provider]) -> None:
        for alias, provider in enumerate(self.chosen):
            if provider is not before[alias]:
                self.begin(alias)

    def _needed(self, ask: Ask) -> bool:
        for alias in self._run.block.aliases:
            if alias.relation.name == ask.relation:
                provider = self.chosen[alias.number]
                if provider.depends or provider.bind_set == ask.bind_set:
                    return True
        return False

    def _request(self, relation: str, provider: Provider, bindings: Sequence[Binding]) -> None:
        view, bind_set = self._run.views[relation], provider.bind_set
        if view.coverage.whole:
            return
        # Scans race, so the seed may be sent to several; a binding is sent once.
        unknown = [b for b in bindings if not bind_set or view.coverage.known(bind_set, b) == Known.NOTHING]
        unknown = self._serve(view, bind_set, unknown)
        if not unknown:
            return
        for binding in unknown:
            view.coverage.note(bind_set, binding, Entry(Known.ASKED))
        urgency = 0.0 if provider.depends else self.urging.first(relation)
        ask = Ask(next(self._numbers), relation, provider.method.name, bind_set, tuple(unknown), urgency)
        self.urging.asked(ask)
        self._open[ask.number] = Open(ask, set(unknown), scanning=not bind_set)
        self.commands.append(ask)
        self.tallies[relation].asked += len(unknown)
        self.pace.asked(ask)
        view.stem.scanning += not bind_set

    def _serve(self, view: View, bind_set: BindSet, bindings: Sequence[Binding]) -> list[Binding]:
        """Deliver what the SteM holds completely; the bindings that it does not."""
        now, stem = self._clock(), view.stem
        unknown: list[Binding] = []
        for binding in bindings:
            found = stem.covered(bind_set, binding, now, self._max_age)
            if found is None:
                unknown.append(binding)
                continue
            fewer, part, entry = found
            self.delivered.append((stem.relation.name, stem.vouched(fewer, part, entry)))
            view.coverage.note(bind_set, binding, Entry(Known.COMPLETE, entry.at))
            self.tallies[stem.relation.name].served += 1
        return unknown

    def _ended(self, opened: Open, bindings: Sequence[Binding], answered: bool = False) -> list[Binding]:
        """Those of the bindings that had not ended yet; they have now."""
        ended = [b for b in bindings if b in opened.left]
        opened.left.difference_update(ended)
        self.pace.ended(opened.ask, len(ended), answered)
        self.urging.ended(opened.ask, ended)
        if not opened.left and opened.ask.number in self._open:
            del self._open[opened.ask.number]
            self.pace.over(opened.ask)
            self._scanned(opened)
        return ended

    def _scanned(self, opened: Open) -> None:
        """A scan brings no more rows, whether or not this query has taken that in."""
        self._run.views[opened.ask.relation].stem.scanning -= opened.scanning
        opened.scanning = False

    def _cancel(self, unwanted: Iterable[Open]) -> None:
        for opened in unwanted:
            self.commands.append(Cancel(opened.ask.number))
            self.tallies[opened.ask.relation].cancelled += len(opened.left)
            self._ended(opened, list(opened.left))

    def _call_back(self, lookups: Sequence[Open], answered: Collection[Binding]) -> None:
        """These bindings are covered, and need no lookup any more."""
        for opened in lookups:
            over = tuple(b for b in opened.left if b in answered)
            if over:
                self.commands.append(Cancel(opened.ask.number, over))
                self.tallies[opened.ask.relation].cancelled += len(over)
                self._ended(opened, over)
                coverage = self._run.views[opened.ask.relation].coverage
                for binding in over:
                    coverage.note(opened.ask.bind_set, binding, Entry(Known.COMPLETE, self._clock()))

    def _asked_for(self, relation: str, fields: BindSet, ids: Rows) -> set[Binding]:
        """The values of these rows that have been asked for, and not been answered yet."""
        view = self._run.views[relation]
        store = view.stem.store
        keys = keys_of([Part(store.column(f).keyed(), ids) for f in fields])
        asked = np.flatnonzero(view.coverage.states(fields, keys) == Known.ASKED)
        return set(zip(*(plain(store.gather(f, taken(ids, asked))) for f in fields), strict=True))

    def _scanned_elsewhere(self, ask: Ask) -> bool:
        """Whether another scan of the relation goes on or has ended, if only with all that it promised."""
        going = any(o.ask.relation == ask.relation and not o.ask.bind_set for o in self._open.values())
        view = self._run.views[ask.relation]
        ended = view.coverage.get((), ())
        if ended is None or ended.known != Known.FAILED or ended.method in ("", ask.method):
            return going or view.coverage.whole
        return going or view.stem.relation.method(ended.method).proves != "all"

    def _bar(self, ask: Ask, but: Collection[int] = ()) -> None:
        """Let no alias of its relation rely on this way of asking any more, `but` those."""
        aliases = [a.number for a in self._run.block.aliases if a.relation.name == ask.relation]
        self._relying.broken |= {(alias, ask.method) for alias in aliases if alias not in but}

    def _replace(self, ask: Ask, relying: Sequence[int]) -> bool:
        """Choose again without this way of asking, for the aliases that relied on it; whether there is another."""
        if not self._relying.replace(ask, relying):
            return False
        coverage = self._run.views[ask.relation].coverage
        for bind_set, binding, entry in list(coverage.entries()):
            if bind_set == ask.bind_set and entry.known == Known.FAILED:
                coverage.note(bind_set, binding, Entry(Known.NOTHING))
        return True


def _favoured(batch: Batch) -> Weights:
    """By what is known of the batch already."""
    return batch.favour.weight
