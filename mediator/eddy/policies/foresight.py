"""The cheapest way to the end, by what was measured (the default).

Of every step from signature to signature it is learnt how many rows come of a pair of rows and what that costs. A
choice adds up what follows from it: a batch goes where the work from there to the answer is least, for the rows that it
may meet now. So a join that brought nothing because its other side had not arrived is not taken to be selective, one
that pays only together with the next is found, and correlated predicates are known by what they do together.

To think takes time as well, and where some step thins the batch out the one that does so most for its cost is seldom
wrong. So there, what adding up would cost has to be earned by work first; where every step multiplies the batch, all
hangs on what follows, and it is always done.

How long visits are remembered is learnt too (`ratio.py`). What is not chosen is looked at with a few rows now and then,
for a small share of the work: what has become better there is found, and no more is lost by looking.

SteMs whose rows must be looked up at a site come after those whose rows arrive by themselves: a row that the others
rule out is then never asked for, and a call costs more than any probe. Among several the look-ahead decides, by what a
lookup takes and how often it finds something.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mediator.eddy.constraints import Graph
from mediator.eddy.destinations import Destination, Probe, Select
from mediator.eddy.policies.expectation import Expectation
from mediator.eddy.policies.lattice import Held, Lattice, Legal, Node, Step
from mediator.eddy.policies.outlook import Outlook
from mediator.eddy.policies.prior import NO_PRIOR, Prior
from mediator.eddy.policies.rank import completion
from mediator.eddy.policies.ratio import Ratio
from mediator.eddy.policies.usual import Usual
from mediator.eddy.policy import AGAIN, Situation, Visit
from mediator.flow.batch import Signature

_TRIAL = 256  # rows that show what a destination is like
_PORTION = 16  # of a batch that is larger, so many of it are tried at most
_SHARE = 0.02  # of all work that may go into looking at what was not chosen
_GRANT = 1e-4  # seconds of looking that nobody has to earn
_STALE = 0.05  # share of all work after which a step is looked at again
_HOP = 6e-5  # seconds that looking takes, however few rows it is done with
_SURVEY = 1e-3  # seconds that a survey takes
_YOUNG = 1.5e-3  # seconds of work before which none can be afforded
_AGAIN = 8  # times as many rows until there is another look at what tells them apart
HELD = 1e-3  # seconds of work for which a choice is not thought over: to think takes some hundredths of that
_CALM = 60  # visits to a step that were like those before: the more, the fewer of the next it is told of
_UNTOLD = 2e-3  # seconds of work at a step that it need not be told of
_FEWEST = 256  # rows of a batch that may be parted
_LESS = 0.7  # times as many matches: less than in general
_THOUGHT = 5e-5  # seconds that it takes to think a choice over
_THINKING = 0.03  # share of all work that may go into that where the next step thins the batch out


class Foresight(Usual):
    glances = True

    def __init__(
        self,
        graph: Graph,
        legal: Legal,
        kept: float = float("inf"),
        held: float = HELD,
        prior: Prior = NO_PRIOR,
    ) -> None:
        """A choice is not thought over for `held` seconds of work; where that is 0 it is told of every visit too. The
        prior is what it believes until it sees for itself."""
        super().__init__(kept)
        self._held = held
        self._lattice = Lattice(graph, legal, prior)
        self._usual = Expectation()
        self._outlook = Outlook(self._lattice)
        self._unsettled: dict[Ratio, None] = {}
        self._trial: tuple[Signature, Destination, int] | None = None
        self._work = self._looked = 0.0
        self._surveys = 0
        self._thought = 0.0  # seconds that choices have taken, about

    def choose(self, signature: Signature, legal: Sequence[Destination], situation: Situation) -> Destination:
        self._trial = None
        if signature.completing >= 0:
            return completion(legal)
        node, rows = self._lattice.node(signature), float(situation.rows)
        if (
            node.held is not None
            and node.held.still(self._work, situation)
            and node.held.destination in legal
        ):
            return node.held.destination
        self._begin(situation)
        if self._busy(node, situation):
            best = self._at_a_glance(node, legal, situation)
            if best is not None:
                return best
        self._thought += _THOUGHT
        steps = self._outlook.nearest([self._lattice.step(node, d) for d in legal])
        local = not self._outlook.remote(steps[0])
        untried = self._untried(steps) if local else ()
        if len(steps) == 1:
            chosen = steps[0]
        elif untried:
            chosen = min(untried, key=lambda s: s.tries)
            self._trial = signature, chosen.destination, _TRIAL
        else:
            chosen, least = self._outlook.cheapest(steps, rows, node.came)
            if local and self._outlook.fan_out(chosen) is None:
                self._trial = signature, chosen.destination, _TRIAL
            elif local and (looked_at := self._curious(signature, chosen, steps, rows, least)):
                chosen = looked_at
            elif local:
                self._hold(node, chosen.destination, chosen.alias, situation)
        chosen.tries += 1
        return chosen.destination

    def _busy(self, node: Node, situation: Situation) -> bool:
        """Whether so much has gone into thinking that what can be seen at a glance is not thought over. There is more
        to lookups, to costly predicates and to parts than can be seen so."""
        if not self._held or situation.remote or self._lattice.selects or node.signature.part:
            return False
        return self._thought >= _THINKING * self._work

    def _at_a_glance(
        self, node: Node, legal: Sequence[Destination], situation: Situation
    ) -> Destination | None:
        """Where the batch is thinned out most for what that costs; before that, where nothing is known yet. None where
        no step thins it out, as then all hangs on what follows, and where to find out would take long."""
        best, least = None, float("inf")
        for destination in legal:
            known = self._lattice.known(node, destination)
            if known is None:
                continue
            assert isinstance(destination, Probe)
            seen = situation.seen[destination.alias]
            share = known.share if seen else 0.0
            if share is None:
                if self._outlook.taking_in(destination.alias) >= self._outlook.hop:
                    return None
                self._trial = node.signature, destination, _TRIAL
                return destination
            rank = (share * seen - 1.0) / known.cost.times
            if rank < least:
                best, least = destination, rank
        if best is None or least > 0.0:
            return None
        self._hold(node, best, best.alias, situation)
        return best

    def _hold(self, node: Node, destination: Destination, alias: int, situation: Situation) -> None:
        """Let this choice stand for a while."""
        until = self._work + self._held
        node.held = Held(alias, destination, until, float(situation.rows), situation.seen.count(0))

    def learn(self, visit: Visit) -> int:
        step = self._lattice.taken(visit.signature, visit.destination)
        if step is None:
            return 0
        if visit.compared:
            return self._compared(step, visit)
        times = 1 + visit.alike
        step.calm += step.calm < _CALM
        untold = min(step.calm, int(_UNTOLD / max(visit.seconds, 1e-6))) if self._held else 0
        rows = visit.rows_in + visit.rows_out
        self._work += times * visit.seconds
        step.before.came += times * visit.rows_in
        if step.parent is not None:
            step.parent.before.came += times * visit.rows_in
        step.at = self._work
        step.cost.add(rows, visit.seconds)
        if step.alias >= 0:
            self._usual.add(rows, visit.seconds)
        self._looked_at(step, visit)
        pairs = visit.rows_in * (visit.visible if step.alias >= 0 else 1)
        self._unsettled[step.own] = self._unsettled[step.shared] = None
        step.shared.add(pairs, visit.rows_out)
        new = not step.own.known
        if new:
            step.before.held = None
        if step.own.add(pairs, visit.rows_out):
            step.calm = 0
            step.before.held = None
            self._outlook.moved()
            return AGAIN
        return AGAIN if new else untold

    def _compared(self, step: Step, visit: Visit) -> int:
        self._looked += visit.seconds + _HOP
        step.at = self._work
        self._trial = None
        self._unsettled[step.shared] = None
        step.shared.add(visit.rows_in * visit.visible, visit.rows_out)
        return 0

    def _looked_at(self, step: Step, visit: Visit) -> None:
        trial = self._trial
        if (
            trial is not None
            and trial[:2] == (visit.signature, visit.destination)
            and visit.rows_in <= trial[2]
        ):
            self._looked += visit.seconds + _HOP
            self._trial = step.before.held = None

    def sample(self, signature: Signature, destination: Destination) -> int:
        trial = self._trial
        return trial[2] if trial is not None and trial[:2] == (signature, destination) else 0

    def survey(
        self, signature: Signature, legal: Sequence[Destination], rows: int
    ) -> tuple[int, Mapping[Destination, float]] | None:
        """Worth a look where rows that match at one destination match less at the other than rows do in general: to
        send them all the same way then finds out late. It is paid for when that has cost as much as a survey does."""
        node = self._lattice.node(signature)
        if node.came < node.survey_at or len(legal) < 2 or rows < _FEWEST or self._work < _YOUNG:
            return None
        near = self._outlook.nearest([self._lattice.step(node, d) for d in legal])
        if node.came * self._wasted(near) < _SURVEY * (1 + self._surveys):
            return None
        self._surveys += 1
        node.survey_at = _AGAIN * node.came
        return min(rows, _TRIAL), {s.destination: self._outlook.row * s.cost.times for s in near}

    def _wasted(self, steps: Sequence[Step]) -> float:
        """Seconds for each row that goes all of a way of which the second step finds less than it does elsewhere; of
        several such ways the least, 0 where there is none."""
        least = 0.0
        for first in steps:
            for second in steps:
                then = self._lattice.steps(first.after).get(second.destination)
                if then is None or not (then.own.known and second.own.known):
                    continue
                if then.own.value < _LESS * second.own.value:
                    found = self._outlook.fan_out(first) or 0.0
                    wasted = found * self._outlook.row * then.cost.times
                    least = min(least or wasted, wasted)
        return least

    def why(
        self, signature: Signature, legal: Sequence[Destination], situation: Situation
    ) -> Mapping[Destination, Mapping[str, float]]:
        if signature.completing >= 0:
            return {}
        self._begin(situation)
        node = self._lattice.node(signature)
        found: dict[Destination, dict[str, float]] = {}
        for destination in legal:
            if isinstance(destination, Probe | Select):
                step = self._lattice.step(node, destination)
                fan_out = self._outlook.fan_out(step)
                found[destination] = {} if fan_out is None else {"fan-out": fan_out}
                found[destination] |= {
                    "us a row": 1e6 * self._outlook.row * step.cost.times,
                    "ms to the end": 1e3 * self._outlook.through(step, float(situation.rows), node.came),
                }
        return found

    def _begin(self, situation: Situation) -> None:
        """Let all that was seen count."""
        for ratio in self._unsettled:
            ratio.settle()
        self._unsettled.clear()
        self._outlook.begin(self._usual, situation)

    def _untried(self, steps: Sequence[Step]) -> Sequence[Step]:
        """Steps of which nothing is known; but none that an index would have to be made for, where another is known."""
        unknown = [s for s in steps if self._outlook.fan_out(s) is None]
        if len(unknown) == len(steps):
            return unknown
        return [
            s for s in unknown if len(s.link.singles) < 2 or self._outlook.indexing(s) < self._outlook.hop
        ]

    def _curious(
        self, signature: Signature, chosen: Step, steps: Sequence[Step], rows: float, least: float
    ) -> Step | None:
        """A step that was not chosen, and is worth a look; the one that has not been looked at for longest."""
        if self._looked + _HOP > _GRANT + _SHARE * self._work:
            return None
        others = [
            s
            for s in steps
            if s is not chosen
            and self._work - s.at > _STALE * self._work
            and self._outlook.first(s, rows) < least
        ]
        if not others:
            return None
        step = min(others, key=lambda s: (s.own.known, s.at))
        few = min(_TRIAL, int(rows) // _PORTION)
        price = (
            _HOP
            + self._outlook.indexing(step)
            + few * self._outlook.row * step.cost.times * (1.0 + (self._outlook.fan_out(step) or 0.0))
        )
        if few and self._looked + price <= _GRANT + _SHARE * self._work:
            self._trial = signature, step.destination, few
            return step
        return None
