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
from mediator.eddy.intake import Intake
from mediator.eddy.joining import Met
from mediator.eddy.policy import Policy, Visit
from mediator.eddy.probing import Probing
from mediator.eddy.routing import Router
from mediator.eddy.run import Run
from mediator.eddy.unbuilt import Unbuilt
from mediator.flow.batch import Batch, Signature
from mediator.flow.events import Command, Emit, Event
from mediator.state.hands import Hands

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
        self._effort = effort or clock
        self._hands = hands or Hands()
        self._intake = Intake(
            run, self.asking, self.unbuilt, floating, self._hands, clock, self._router.forget
        )
        self._probing = Probing(run, self._hands, room, self._effort)
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
        self._intake.admit(event)

    def turn(self, hops: int = 1) -> list[Command]:
        """Take in what was admitted, move up to `hops` batches one step each, and say what is to be done."""
        self._intake.take_in()
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
        return self.finished or not (self._floating or not self._intake.idle)

    @property
    def load(self) -> int:
        """Rows that wait for a turn."""
        return self._intake.rows + self._floating.rows

    def stop(self) -> list[Command]:
        """End early: everything that is under way is cancelled."""
        self._end()
        return self._drain()

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
        met, seconds = self._probing.one(sample, where)
        out = 0 if met.wider is None else len(met.wider)
        self._router.learn(Visit(sample.signature, where, max(1, met.done), out, seconds))

    def _probe(self, steps: list[tuple[Batch, Probe]]) -> None:
        for batch, where, found, seconds in self._probing.all(steps):
            out = sum([self._met(part, where, met) for part, met in found])
            if batch.seen[where.alias] > batch.since:  # where nothing was there yet, nothing can be learnt
                self._router.learn(Visit(batch.signature, where, len(batch), out, seconds))

    def _met(self, batch: Batch, where: Probe, met: Met) -> int:
        """Let what a probe found float on, with what is left of it and what bounced; how much was found."""
        for part in (met.wider, met.rest):
            if part is not None:
                self._floating.push(part)
        done = batch if met.rest is None else batch.take(slice(0, met.done))
        if batch.own is None:
            self._bounce(done, where.alias, met)
        elif len(done):
            self.unbuilt.wait(
                done, where.alias, met, self._probing.join(batch.signature.spanned, where.alias).single
            )
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
        if self._probing.join(batch.signature.spanned, alias).single:
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

    def _drain(self) -> list[Command]:
        commands = self._out + self.asking.commands
        self._out = []
        self.asking.commands = []
        return commands


def _legal(graph: Graph, asking: Asking, signature: Signature) -> tuple[Destination, ...]:
    return legal(signature, graph, asking.providers, asking.chosen)
