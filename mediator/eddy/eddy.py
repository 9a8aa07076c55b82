"""The eddy: takes events in, routes batches between SteMs, access modules and predicates, gives commands out.

It never awaits and looks at no clock of its own. `start` asks the first questions, `admit` takes what happened, `turn`
moves batches by a few hops and returns what is to be done. It is finished when nothing floats, nothing is asked that an
answer may depend on, and no row is owed a lookup.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import count

import numpy as np

from mediator.binding.model import Provider, Verdict
from mediator.clock import Clock
from mediator.eddy.asking import Asking
from mediator.eddy.backlog import BACKLOG, Backlog
from mediator.eddy.constraints import Graph, legal
from mediator.eddy.contents import Contents
from mediator.eddy.debts import settle
from mediator.eddy.decisions import Decisions, Watch
from mediator.eddy.destinations import Destination, Hold, Leave, LookUp, Probe, Select
from mediator.eddy.floating import Floating
from mediator.eddy.goals.thrift import Release, Thrift
from mediator.eddy.intake import Intake
from mediator.eddy.joining import Met
from mediator.eddy.policy import Policy, Visit
from mediator.eddy.preferring import Preferring
from mediator.eddy.probing import Probing
from mediator.eddy.recounting import recount
from mediator.eddy.routing import Router
from mediator.eddy.run import Run
from mediator.eddy.selecting import SLICE, Selecting
from mediator.eddy.situating import Situating
from mediator.eddy.unbuilt import Unbuilt
from mediator.eddy.wording import Wording
from mediator.flow.batch import Batch, Signature
from mediator.flow.events import Command, Emit, Event
from mediator.query.model import Preference
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
        slice: float = SLICE,
        backlog: int = BACKLOG,
        watch: Watch | None = None,
        thrift: Thrift | None = None,
        preferences: Sequence[Preference] = (),
        urgent: bool = True,
    ) -> None:
        self.run = run
        self.asking = Asking(
            run, verdict, clock, max_age, count() if numbers is None else numbers, urgent=urgent
        )
        self.finished = False
        self._thrift = thrift
        self._glances = policy.glances
        self.unbuilt = Unbuilt(run, policy, verdict.providers)
        if thrift is not None:  # it counts what is still to be asked by the rows that the query has seen
            self.unbuilt.build_all()
        self._graph = Graph.of(run.block)
        # No methods of this eddy's: what refers to itself keeps its memory until the garbage collector comes round.
        self.wording = Wording(run.block, partial(_providers, self.asking))
        decisions = Decisions(watch, policy, self.wording, clock) if watch is not None else None
        may_go = partial(_legal, self._graph, self.asking)
        self._effort = effort or clock
        self._hands = hands or Hands()
        self._probing = Probing(run, self._hands, room, self._effort)
        names = [alias.relation.name for alias in run.block.aliases]
        self.backlog = Backlog(self.asking, names, backlog)
        self._floating = self.floating = Preferring(floating, run, preferences)
        situating = Situating(
            self._probing, self.asking, self.unbuilt, names, partial(_worth, self._floating)
        )
        self._router = self.routing = Router(policy, may_go, max(1, revisit), decisions, situating)
        self.asking.weigh = self._floating.weights
        self.asking.urging.worth = self._floating.worth
        self._recounts = False  # who waits for what is to be counted again
        self._intake = Intake(
            run, self.asking, self.unbuilt, self._floating, self._hands, clock, self._router.forget
        )
        self._selecting = Selecting(run, clock, self._effort, slice)
        self.contents = Contents(run, self._probing, policy, self.unbuilt, self._selecting, self._router)
        self._out: list[Command] = []
        self._left = 0  # rows that have left in this turn

    def start(self) -> list[Command]:
        """Ask everything that needs no row's help."""
        if self.run.block.never:
            self.finished = True
        else:
            for alias in range(self._graph.size):
                if self._thrift is None or not self._thrift.puts_off(self.asking.chosen[alias]):
                    self.asking.begin(alias)
        return self._drain()

    def admit(self, event: Event) -> None:
        """Something happened. Other queries may profit from it at once, this one in its next turn."""
        self._intake.admit(event)

    def turn(self, hops: int = 1, most: float = float("inf")) -> list[Command]:
        """Take in what was admitted, move up to `hops` batches one step each, and say what is to be done. No more are
        moved when `most` answers have been found."""
        self._left = 0
        self._intake.take_in()
        for batch in self.backlog.due():
            self._floating.push(batch)
        if self._recounts and not self.finished:
            self._recounts = False
            recount(self.run, self.asking, self._graph, self._floating.weights)
        while hops > 0 and self._left < most and self._floating and not self.finished:
            some = self._next(hops)
            hops -= len(some)
            self._hop(some)
        if not self.finished and not self._floating and not self.asking.delivered:
            self._rest()
        return self._drain()

    @property
    def idle(self) -> bool:
        """Whether a turn would do nothing until something is admitted."""
        return self.finished or not (self._floating or self._recounts or not self._intake.idle)

    @property
    def load(self) -> int:
        """Rows that wait for a turn."""
        return self._intake.rows + self._floating.rows

    def prefer(self, preferences: Sequence[Preference]) -> None:
        """From now on rows that satisfy these come first. It counts for what floats and what waits as well."""
        if not self.finished:
            self._floating.prefer(preferences)
            self.asking.prefer(self._floating.worth)
            self._recounts = True

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
        return [part for batch in some for part in self.contents.parts(batch)]

    def _hop(self, batches: list[Batch]) -> None:
        """Each of the batches one step; probes, which only read, at the same time."""
        steps = [step for batch in batches if (step := self._step(batch)) is not None]
        for batch, where in steps:
            if batch.cut < 0:  # else it is the rest of one that was sent there before
                self._router.flows.sent(batch.signature, where, len(batch))
        self._probe([(batch, where) for batch, where in steps if isinstance(where, Probe)])
        for batch, where in steps:
            if not isinstance(where, Probe):
                began = self._effort()
                out = self._visit(batch, where)
                seconds = self._effort() - began
                if isinstance(where, Select):
                    seconds = max(seconds, self._selecting.took)
                self._router.learn(Visit(batch.signature, where, len(batch), out, seconds))

    def _step(self, batch: Batch) -> tuple[Batch, Destination] | None:
        if batch.cut >= 0:
            return self._resumed(batch), Probe(batch.cut)
        if batch.favour.weight > 1.0 and batch.signature.completing >= 0:
            return batch, self._at_once(batch.signature)
        while True:
            where, sample = self._router.next(batch)
            if isinstance(where, Probe):
                batch = self.unbuilt.arriving(batch, where.alias)
            sample = self._tried(batch, where, sample)
            if sample and (seen := self._glance(batch, where)):
                self._router.learn(seen, wanted=True)
                continue
            if not sample or len(batch) <= 2 * sample:
                going = self._cut(batch, where)
                return None if going is None else (going, where)
            self._look(batch.take(np.arange(sample) * len(batch) // sample), where)

    def _tried(self, batch: Batch, where: Destination, sample: int) -> int:
        """How many of so many rows are worth trying there before the batch goes; 0: nothing is to be learnt by that."""
        match where:
            case Probe():
                return sample if batch.seen[where.alias] else 0
            case Select():  # where so few go at once, the first step is the trial
                return sample if self._selecting.most(where.predicate) > 2 * sample else 0
            case _:
                return 0

    def _glance(self, batch: Batch, where: Destination) -> Visit | None:
        """What would come of going there, as far as a few keys tell it."""
        return self._probing.glance(batch, where) if self._glances and isinstance(where, Probe) else None

    def _resumed(self, batch: Batch) -> Batch:
        """Of a batch that found too much to go on at once, so much as goes on there. If that was a surprise it is the
        row that was in the middle of it alone, and the others are routed anew."""
        signature = batch.signature
        if batch.own is not None or len(batch) < 2 or not self._router.due(signature):
            return batch
        self._router.flows.recalled(signature, Probe(batch.cut), len(batch) - 1)
        self._floating.push(batch.take(slice(1, None)))
        return batch.take(slice(0, 1)).with_(cut=batch.cut, taken=batch.taken)

    def _at_once(self, signature: Signature) -> Destination:
        """Where rows go that bounced and that the user prefers: they are looked up, also where a scan would bring their
        matches by and by."""
        legal = _legal(self._graph, self.asking, signature)
        lookups = [where for where in legal if isinstance(where, LookUp)]
        return min(lookups, key=lambda where: where.provider) if lookups else legal[0]

    def _cut(self, batch: Batch, where: Destination) -> Batch | None:
        """So much of the batch as goes there at once, if any. The rest is routed anew."""
        if isinstance(where, Select):
            batch, rest = self._selecting.cut(batch, where.predicate)
            if rest is not None:
                self._floating.push(rest)
            return batch
        if not self._router.remote(where):
            return batch
        return self.backlog.cut(batch, where, self._router.array(batch.signature))

    def _look(self, sample: Batch, where: Destination) -> None:
        """What would come of going there, for the policy alone: to go on with a few rows apart from the others costs
        more than to find their matches again."""
        if isinstance(where, Probe):
            met, seconds = self._probing.one(sample, where, 16 * len(sample))
            out = 0 if met.wider is None else len(met.wider)
            visit = Visit(sample.signature, where, max(1, met.done), out, seconds, sample.seen[where.alias])
        elif isinstance(where, Select):
            out = int(np.count_nonzero(self._selecting.test(sample, where.predicate)))
            visit = Visit(sample.signature, where, len(sample), out, self._selecting.took)
        else:
            raise AssertionError("only what finds or tests rows can be tried")
        self._router.learn(visit, wanted=True)

    def _probe(self, steps: list[tuple[Batch, Probe]]) -> None:
        wider: list[Batch] = []
        for batch, where, found, seconds in self._probing.all(steps):
            wider += [met.wider for _, met in found if met.wider is not None]
            out = sum([self._met(part, where, met) for part, met in found])
            if batch.seen[where.alias] > batch.since:  # where nothing was there yet, nothing can be learnt
                done = max(1, sum([met.done for _, met in found]))  # the rest comes again, and counts then
                visible = batch.seen[where.alias] - batch.since
                self._router.learn(Visit(batch.signature, where, done, out, seconds, visible))
        for some in wider if len(wider) == 1 else self.unbuilt.together(wider):
            self._floating.push(some)

    def _met(self, batch: Batch, where: Probe, met: Met) -> int:
        """Let what is left of a batch that probed float on, and what bounced; how much it found."""
        if met.rest is not None:
            self._floating.push(met.rest)
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
                self._left += len(batch)
                return len(batch)
            case Hold():
                self._hold(batch, where.alias)
                return 0
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

    def _hold(self, batch: Batch, alias: int) -> None:
        """Leave the rows where they are stored until nothing else can move; what they need is asked then."""
        self.asking.tallies[self.run.block.aliases[alias].relation.name].held += len(batch)
        self.asking.owed = True

    def _select(self, batch: Batch, number: int) -> int:
        keep = self._selecting.test(batch, number)
        signature = batch.signature._replace(passed=batch.signature.passed | 1 << number)
        passing = batch if keep.all() else batch.take(np.flatnonzero(keep))
        if len(passing):
            self._floating.push(passing.signed(signature))
        return len(passing)

    def _rest(self) -> None:
        """Nothing floats: wait, pay what is owed, or end."""
        if not self._hopeless():
            for batch in self.unbuilt.due(self.asking.promised):
                self._floating.push(batch)
            waiting = self.asking.waiting()
            for batch in self.backlog.due(resting=not waiting):
                self._floating.push(batch)
            if self._floating or waiting:
                return
            if self._paid():
                return
        self._end()

    def _paid(self) -> bool:
        """Whether anything had to be asked before the end: what the goal has waited with, or what is owed."""
        changed = self.asking.chosen
        paid = self._thrift is not None and self._thrift.release(self.run, self.asking)
        if not paid and self.asking.owed and (self._thrift is None or not self._thrift.certain):
            paid = settle(self.run, self.asking, self._graph)
        if self.asking.chosen is not changed:
            self._router.forget()
        return paid

    @property
    def releases(self) -> tuple[Release, ...]:
        """What was asked when everything else rested, in its order, and why."""
        return () if self._thrift is None else tuple(self._thrift.released)

    def rely(self, provider: Provider) -> bool:
        """Let this provider bring its alias's rows from now on; whether it can."""
        found = self.asking.rely(provider)
        self._router.forget()
        return found

    def _end(self) -> None:
        self.asking.stop()
        self.unbuilt.forget()
        self.backlog.forget()
        self.finished = True

    def _hopeless(self) -> bool:
        """Whether some alias has arrived completely and has no row: nothing can be joined with it."""
        return any(
            not view.selected and alias not in self.unbuilt.passing and self.asking.promised(alias)
            for alias, view in enumerate(self.run.aliases)
        )

    def _drain(self) -> list[Command]:
        commands = [*self._out, *self.asking.commands, *self.asking.urging.commands()]
        self._out = []
        self.asking.commands = []
        return commands


def _worth(floating: Preferring) -> Mapping[str, float]:
    return floating.worth


def _providers(asking: Asking) -> Sequence[Sequence[Provider]]:
    return asking.providers


def _legal(graph: Graph, asking: Asking, signature: Signature) -> tuple[Destination, ...]:
    return legal(signature, graph, asking.providers, asking.chosen)
