"""Beside the eddy: what the query has seen is joined without the aliases that are out of reach.

It has views of its own over the shared SteMs, so every combination is found once by the rule that the eddy goes by: by
its newest part. Into these views goes what the query is given, in the order in which it is given it, and what lookups
bring that were sent for partial answers (`ahead.py`). Nothing goes the other way: the eddy does not know of it.
"""

from __future__ import annotations

from collections.abc import Iterator

from mediator.binding.model import Verdict
from mediator.clock import Clock
from mediator.eddy.constraints import Graph, feeds
from mediator.eddy.destinations import Probe
from mediator.eddy.eddy import ROOM, Eddy
from mediator.eddy.floating import WidestFirst
from mediator.eddy.probing import Probing
from mediator.eddy.run import Run
from mediator.flow.batch import Batch, Rows
from mediator.flow.events import Arrived, Ask, Command, Event, Exhausted
from mediator.partials.ahead import Ahead, OwnAccount
from mediator.partials.parts import bits
from mediator.state.hands import Hands


class Beside:
    def __init__(
        self, eddy: Eddy, graph: Graph, numbers: Iterator[int], clock: Clock, hands: Hands, max_age: float
    ) -> None:
        main = eddy.run
        stems = {name: view.stem for name, view in main.views.items()}
        self.run = Run(main.block, stems, main.largest_batch)
        self._main = eddy
        self._graph = graph
        self._clock = clock
        verdict = Verdict(eddy.asking.providers, eddy.asking.chosen, eddy.asking.order)
        self.asking = OwnAccount(self.run, verdict, clock, max_age, numbers)
        self._ahead = Ahead(self.run, self.asking, main, eddy.asking)
        self._probing = Probing(self.run, hands, ROOM, clock)
        self._floating = WidestFirst(graph.size)
        self._inbox: list[Event] = []
        self._fed = dict.fromkeys(stems, 0)  # how much of each view of the query is in the view here
        self._parts: tuple[int, ...] = ()
        self._may_ask = False

    @property
    def finished(self) -> bool:
        """It is never at an end before the query is."""
        return False

    @property
    def idle(self) -> bool:
        """Whether there is nothing to do for now."""
        if not self._parts:
            return not self._inbox
        behind = any(v.count > self._fed[name] for name, v in self._main.run.views.items())
        return not (self._floating or self._inbox or self.asking.delivered or behind or self._ahead.can_send)

    @property
    def load(self) -> int:
        """Rows that wait for a turn."""
        if not self._parts:
            return 0
        return self._floating.rows + sum(v.count - self._fed[n] for n, v in self._main.run.views.items())

    def admit(self, event: Event) -> None:
        """Something came of a lookup that was sent from here. Others may profit from it at once."""
        self.asking.share(event)
        self._inbox.append(event)

    def leave(self, ask: Ask) -> list[Command]:
        """The query has asked for something itself, which was perhaps under way from here."""
        self.asking.leave(ask)
        return self.asking.commanded()

    def look(self, parts: tuple[int, ...], may_ask: bool) -> list[Command]:
        """From now on these parts are joined, from the beginning. Without any it rests, and what it asked is called
        back."""
        self._take_in()
        for name in self._fed:
            self._catch_up(name)
        self._floating = WidestFirst(self._graph.size)
        self._ahead.forget()
        self._parts, self._may_ask = parts, may_ask
        if not (parts and may_ask):
            self.asking.stop()
        for part in parts:
            for batch in self.run.everything(self._first(part)).parts(self.run.largest_batch):
                if len(batch):
                    self._floating.push(batch)
        return self.asking.commanded()

    def give_up(self) -> list[Command]:
        """Nothing more is joined, as a condition has failed in the middle of it; what it asked is called back."""
        self._inbox.clear()
        self._floating = WidestFirst(self._graph.size)
        self._ahead.forget()
        self._parts = ()
        self.asking.stop()
        return self.asking.commanded()

    def turn(self, hops: int = 1) -> tuple[list[Batch], list[Command]]:
        """Move up to `hops` batches; those that span a part, and what is to be asked."""
        self._take_in()
        if self._parts:
            for name in self._fed:
                for batch in self._catch_up(name):
                    self._push(batch)
        found: list[Batch] = []
        while hops > 0 and self._floating:
            hops -= 1
            self._step(self._floating.pop(), found)
        if self._may_ask and self._parts:
            self._ahead.send()
        return found, self.asking.commanded()

    def _step(self, batch: Batch, found: list[Batch]) -> None:
        spanned = batch.signature.spanned
        part = next(p for p in self._parts if not spanned & ~p)
        if spanned == part:
            found.append(batch)
            return
        where = Probe(batch.cut if batch.cut >= 0 else self._next(spanned, part))
        ((_, _, parts, _),) = self._probing.all([(batch, where)])
        for some, met in parts:
            for wider in (met.wider, met.rest):
                if wider is not None:
                    self._floating.push(wider)
            done = some if met.rest is None else some.take(slice(0, met.done))
            if self._may_ask and len(done):
                self._ahead.consider(done, where.alias)

    def _first(self, part: int) -> int:
        """Where to begin: with what is fed by nothing in the part, so that its rows can feed the others."""
        chosen = self._main.asking.chosen
        return min(bits(part), key=lambda a: (bool(chosen[a].depends & part), self.run.aliases[a].selected))

    def _next(self, spanned: int, part: int) -> int:
        """Where what spans these goes: to what it can feed, and of those to the one with the fewest rows."""
        chosen = self._main.asking.chosen
        joined = [a for a in bits(part & ~spanned) if self._graph.joined(spanned, a)] or bits(part & ~spanned)
        return min(joined, key=lambda a: (not feeds(spanned, chosen[a]), self.run.aliases[a].selected))

    def _take_in(self) -> None:
        for event in self._inbox:
            if isinstance(event, Arrived):
                relation = self.asking.relation_of(event.ask)
                if relation is not None:
                    self._deliver(relation, self.run.views[relation].stem.build(event.landing, self._clock()))
            elif isinstance(event, Exhausted):
                self.asking.exhausted(event)
            else:
                self.asking.failed(event)
        self._inbox.clear()
        for relation, ids in self.asking.delivered:
            self._deliver(relation, ids)
        self.asking.delivered.clear()

    def _deliver(self, relation: str, ids: Rows) -> None:
        """Rows that a lookup brought, behind what the query has been given by now."""
        for batch in [*self._catch_up(relation), *self.run.deliver(relation, ids)]:
            self._push(batch)

    def _catch_up(self, relation: str) -> list[Batch]:
        """Into the view here goes what the query has been given since."""
        given = self._main.run.views[relation].given(self._fed[relation])
        self._fed[relation] += len(given)
        return self.run.deliver(relation, given) if len(given) else []

    def _push(self, batch: Batch) -> None:
        if any(not batch.signature.spanned & ~part for part in self._parts):
            self._floating.push(batch)
