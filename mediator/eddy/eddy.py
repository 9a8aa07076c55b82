"""The eddy: takes events in, routes batches between SteMs, access modules and predicates, gives commands out.

It never awaits and looks at no clock of its own. `start` asks the first questions, `admit` takes what happened, `turn`
moves batches by a few hops and returns what is to be done. It is finished when nothing floats, nothing is asked that an
answer may depend on, and no row is owed a lookup.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import count

import numpy as np

from mediator.binding.model import Verdict
from mediator.clock import Clock
from mediator.eddy.asking import Asking
from mediator.eddy.constraints import Graph, legal
from mediator.eddy.debts import settle
from mediator.eddy.destinations import Destination, Leave, LookUp, Probe, Select
from mediator.eddy.floating import Floating
from mediator.eddy.joining import Join, Met, meet, prepare, rejoined
from mediator.eddy.policy import Policy, Visit
from mediator.eddy.routing import Router
from mediator.eddy.run import Run
from mediator.eddy.unbuilt import Unbuilt
from mediator.flow.batch import Batch, Rows, Signature, joined
from mediator.flow.events import Arrived, Command, Emit, Event, Exhausted, Failed
from mediator.state.hands import Hands

_MANY = 4_096  # rows that landed together; from here on indexes are brought up to date side by side
ROOM = 1 << 17  # matches that one probe may bring before it is cut short


class Eddy:
    def __init__(
        self,
        run: Run,
        verdict: Verdict,
        policy: Policy,
        floating: Floating,
        clock: Clock,
        *,
        effort: Clock | None = None,
        numbers: Iterator[int] | None = None,
        max_age: float = float("inf"),
        revisit: int = 16,
        room: int = ROOM,
        hands: Hands | None = None,
    ) -> None:
        self.run = run
        self.asking = Asking(run, verdict, clock, max_age, count() if numbers is None else numbers)
        self.finished = False
        self.unbuilt = Unbuilt(run, policy, verdict.providers)
        self._graph = Graph.of(run.block)
        # Not a method of this eddy's: what refers to itself keeps its memory until the garbage collector comes round.
        self._router = Router(policy, partial(_legal, self._graph, self.asking), revisit)
        self._floating = floating
        self._clock = clock
        self._effort = effort or clock
        self._room = room
        self._hands = hands or Hands()
        self._inbox: list[Event] = []
        self._joins: dict[tuple[int, int], Join] = {}
        self._out: list[Command] = []

    def start(self) -> list[Command]:
        """Ask everything that needs no row's help."""
        if self.run.block.never:
            self.finished = True
        else:
            for alias in range(self._graph.size):
                self.asking.begin(alias)
        return self._drain()

    def admit(self, event: Event) -> None:
        """Something happened. Other queries may profit from it at once, this one in its next turn."""
        if not isinstance(event, Arrived):
            self._decide()
            self.asking.share(event)
            self._inbox.append(event)
            return
        relation = self.asking.relation_of(event.ask)
        if relation is not None:
            self.unbuilt.came(relation, event.landing.rows.num_rows)
            if not self.unbuilt.puts_off(relation, event):
                self._place(event, relation)

    def turn(self, hops: int = 1) -> list[Command]:
        """Take in what was admitted, move up to `hops` batches one step each, and say what is to be done."""
        self._take_in()
        while hops > 0 and self._floating and not self.finished:
            some = self._next(hops)
            hops -= len(some)
            self._hop(some)
        if not self.finished and not self._floating and not self.asking.delivered:
            self._rest()
        return self._drain()

    @property
    def idle(self) -> bool:
        """Whether a turn would do nothing until something is admitted."""
        return self.finished or not (
            self._floating or self._inbox or self.unbuilt.landed or self.asking.delivered
        )

    @property
    def load(self) -> int:
        """Rows that wait for a turn."""
        landed: int = sum(e.landing.rows.num_rows for e in self._inbox if isinstance(e, Arrived))
        delivered = sum(len(ids) for _, ids in self.asking.delivered)
        return landed + self.unbuilt.landed + self.unbuilt.waiting + delivered + self._floating.rows

    def stop(self) -> list[Command]:
        """End early: everything that is under way is cancelled."""
        self._end()
        return self._drain()

    def _decide(self) -> None:
        """Deal with what was put off, now that there is more to go by."""
        for event in self.unbuilt.decided():
            relation = self.asking.relation_of(event.ask)
            if relation is not None:
                self._place(event, relation)

    def _place(self, event: Arrived, relation: str) -> None:
        unbuilt = self.unbuilt.takes(relation, event.landing)
        self.asking.share(event, built=not unbuilt)
        if not unbuilt:
            self._inbox.append(event)

    def _take_in(self) -> None:
        """Build what landed, all rows of a relation in one step, before the ends that came after them count."""
        if self._inbox or self.asking.delivered:
            self._decide()
        landed: dict[str, list[Arrived]] = {}
        for event in self._inbox:
            if isinstance(event, Arrived):
                relation = self.asking.relation_of(event.ask)
                if relation is not None:
                    landed.setdefault(relation, []).append(event)
            else:
                self._land(landed)
                self._note(event)
        self._inbox.clear()
        self._land(landed)
        for relation, ids in self.asking.delivered:
            self._deliver(relation, ids)
        self.asking.delivered.clear()
        for batch in self.unbuilt.batches():
            self._floating.push(batch)

    def _land(self, landed: dict[str, list[Arrived]]) -> None:
        if not landed:
            return
        rows = sum(e.landing.rows.num_rows for events in landed.values() for e in events)
        parts = self._hands.each([partial(self._build, r, events) for r, events in landed.items()], rows)
        if rows >= _MANY:
            self._hands.each([i.extend for name in landed for i in self.run.views[name].stem.apart()], rows)
        for (relation, events), ids in zip(landed.items(), parts, strict=True):
            for event in events:
                self.asking.overtaken(event)
            self._deliver(relation, ids)
        landed.clear()

    def _build(self, relation: str, events: list[Arrived]) -> Rows:
        stem = self.run.views[relation].stem
        return joined([stem.build(e.landing, self._clock()) for e in events])

    def _deliver(self, relation: str, ids: Rows) -> None:
        for batch in self.run.deliver(relation, ids):
            self._floating.push(batch)

    def _note(self, event: Event) -> None:
        if isinstance(event, Exhausted):
            self.asking.exhausted(event)
        elif isinstance(event, Failed):
            self.asking.failed(event)
            self._router.forget()

    def _next(self, most: int) -> list[Batch]:
        """The next batch, and as many more as there are hands for. Small ones go one by one: what comes of one is then
        still in the cache when it goes on."""
        some = [self._floating.pop()]
        while (
            len(some) < min(most, self._hands.reach) and self._floating and self._hands.worth(len(some[-1]))
        ):
            some.append(self._floating.pop())
        return some

    def _hop(self, batches: list[Batch]) -> None:
        """Each of the batches one step; probes, which only read, at the same time."""
        steps = [self._step(batch) for batch in batches]
        self._probe([(batch, where) for batch, where in steps if isinstance(where, Probe)])
        for batch, where in steps:
            if not isinstance(where, Probe):
                began = self._effort()
                out = self._visit(batch, where)
                self._router.learn(Visit(batch.signature, where, len(batch), out, self._effort() - began))

    def _step(self, batch: Batch) -> tuple[Batch, Destination]:
        if batch.cut >= 0:
            return batch, Probe(batch.cut)
        while True:
            where, sample = self._router.next(batch.signature)
            if not isinstance(where, Probe):
                return batch, where
            batch = self.unbuilt.arriving(batch, where.alias)
            # From a SteM that is empty yet nothing can be learnt.
            if not sample or not batch.seen[where.alias] or len(batch) <= 2 * sample:
                return batch, where
            self._look(batch.take(slice(0, sample)), where)

    def _look(self, sample: Batch, where: Probe) -> None:
        """What a probe would find, for the policy alone: to go on with a few rows apart from the others costs more than
        to find their matches again."""
        join = self._join(sample.signature.spanned, where.alias)
        prepare(self.run, join, sample)
        met, seconds = self._timed_meet(join, sample)
        out = 0 if met.wider is None else len(met.wider)
        self._router.learn(Visit(sample.signature, where, max(1, met.done), out, seconds))

    def _probe(self, steps: list[tuple[Batch, Probe]]) -> None:
        """Probes in parts that are worth a hand each."""
        rows = sum(len(batch) for batch, _ in steps)
        pieces = [batch.parts(self._hands.share(rows)) for batch, _ in steps]
        tasks = []
        for (batch, where), parts in zip(steps, pieces, strict=True):
            join = self._join(batch.signature.spanned, where.alias)
            prepare(self.run, join, batch)
            tasks += [partial(self._timed_meet, join, part) for part in parts]
        found = iter(self._hands.each(tasks, rows))
        for (batch, where), parts in zip(steps, pieces, strict=True):
            timed = [next(found) for _ in parts]
            out = 0
            for part, met in rejoined(batch, parts, [met for met, _ in timed]):
                out += self._met(part, where, met)
            seconds = sum(seconds for _, seconds in timed)
            if batch.seen[where.alias] > batch.since:  # where nothing was there yet, nothing can be learnt
                self._router.learn(Visit(batch.signature, where, len(batch), out, seconds))

    def _timed_meet(self, join: Join, batch: Batch) -> tuple[Met, float]:
        began = self._effort()
        return meet(self.run, join, batch, self._room), self._effort() - began

    def _met(self, batch: Batch, where: Probe, met: Met) -> int:
        """Let what a probe found float on, with what is left of it and what bounced; how much was found."""
        for part in (met.wider, met.rest):
            if part is not None:
                self._floating.push(part)
        done = batch if met.rest is None else batch.take(slice(0, met.done))
        if batch.own is None:
            self._bounce(done, where.alias, met)
        elif len(done):
            self.unbuilt.wait(done, where.alias, met, self._join(batch.signature.spanned, where.alias).single)
        return 0 if met.wider is None else len(met.wider)

    def _visit(self, batch: Batch, where: Destination) -> int:
        """A step that is no probe; how many rows go on."""
        match where:
            case LookUp():
                self.asking.look_up(batch, self.asking.providers[where.alias][where.provider])
                return 0
            case Select():
                return self._select(batch, where.predicate)
            case Leave():
                self._out.append(Emit(batch))
                return len(batch)
            case _:
                self._park(batch, where.alias)
                return 0

    def _bounce(self, batch: Batch, alias: int, met: Met) -> None:
        """Rows whose matches may not all have been there become prior probers: for the alias's access modules only."""
        doubtful = self.asking.uncovered(batch, alias) if len(batch) else None
        if doubtful is None:
            return
        if self._join(batch.signature.spanned, alias).single:
            # The first row of the rest may have matches already.
            doubtful[met.at[met.at < len(batch)]] = False
        if doubtful.any():
            rows = batch if doubtful.all() else batch.take(np.flatnonzero(doubtful))
            self._floating.push(rows.signed(batch.signature._replace(completing=alias)))

    def _park(self, batch: Batch, alias: int) -> None:
        """Leave the rows where they are stored. If nobody promised their matches, they are looked over at the end."""
        relation = self.run.block.aliases[alias].relation.name
        self.asking.tallies[relation].parked += len(batch)
        self.asking.owed |= bool(self.asking.chosen[alias].depends)

    def _select(self, batch: Batch, number: int) -> int:
        predicate = self.run.block.predicates[number]
        keep = predicate.test({c: self.run.gather(batch, c) for c in predicate.reads})
        signature = batch.signature._replace(passed=batch.signature.passed | 1 << number)
        passing = batch if keep.all() else batch.take(np.flatnonzero(keep))
        if len(passing):
            self._floating.push(passing.signed(signature))
        return len(passing)

    def _rest(self) -> None:
        """Nothing floats: wait, pay what is owed, or end."""
        if not self._hopeless():
            for batch in self.unbuilt.due([a for a in range(self._graph.size) if self.asking.promised(a)]):
                self._floating.push(batch)
            if self._floating or self.asking.waiting():
                return
            if self.asking.owed and settle(self.run, self.asking, self._graph):
                return
        self._end()

    def _end(self) -> None:
        self.asking.stop()
        self.unbuilt.forget()
        self.finished = True

    def _hopeless(self) -> bool:
        """Whether some alias has arrived completely and has no row: nothing can be joined with it."""
        return any(
            not view.selected and alias not in self.unbuilt.passing and self.asking.promised(alias)
            for alias, view in enumerate(self.run.aliases)
        )

    def _join(self, spanned: int, alias: int) -> Join:
        join = self._joins.get((spanned, alias))
        if join is None:
            join = self._joins[spanned, alias] = Join.of(self.run.block, spanned, alias)
        return join

    def _drain(self) -> list[Command]:
        commands = self._out + self.asking.commands
        self._out = []
        self.asking.commands = []
        return commands


def _legal(graph: Graph, asking: Asking, signature: Signature) -> tuple[Destination, ...]:
    return legal(signature, graph, asking.providers, asking.chosen)
